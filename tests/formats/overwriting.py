"""Overwrites vectors with a fault at every file system operation: `python overwriting.py FOLDER NAME [embed]`.

Afterwards the old or the new table is read, never a mixture and never nothing, and the next write succeeds. `embed`
writes in the same way as `firth embed`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults import every_fault

import firth
from firth import Vectors

OLD = Vectors(["a", "b", "c"], np.arange(6, dtype=np.float32).reshape(3, 2) + 1)
# As many rows as OLD, so that a mixture would be readable.
NEW = Vectors(["x", "y", "z"], -np.arange(6, dtype=np.float32).reshape(3, 2) - 1)
RENAMED = Vectors(["a", "b", "new"], OLD.matrix)


def contents(path: Path) -> tuple[list[str], list[list[float]]]:
    if path.suffix in (".parquet", ".jsonl"):
        import pandas

        frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_json(path, lines=True)
        return list(frame["key"]), [list(map(float, row)) for row in frame["vector"]]
    vectors = firth.read_vectors(path)
    return list(vectors.keys), vectors.matrix.tolist()


def both(vectors: Vectors) -> tuple[list[str], list[list[float]]]:
    return list(vectors.keys), vectors.matrix.tolist()


def write(vectors: Vectors, path: Path, how: str) -> None:
    if how != "embed":
        firth.write_vectors(vectors, path)
        return
    from firth.cli.row_writers import EmbeddedBatch, writer

    with writer(str(path)) as add:
        for row in range(3):
            add(EmbeddedBatch([vectors.keys[row]], vectors.matrix[row : row + 1], [0]))


def main() -> None:
    os.fsync = lambda fd: None  # power failures are not simulated
    folder, name, how = Path(sys.argv[1]), sys.argv[2], "".join(sys.argv[3:])
    path, backup = folder / "work" / name, folder / "backup"
    write(NEW, path, how)  # everything is imported before the first fault
    contents(path)
    faults = 0
    for old, new in ((OLD, NEW), (OLD, RENAMED), (None, NEW)):
        shutil.rmtree(folder / "work")
        shutil.rmtree(backup, ignore_errors=True)
        (folder / "work").mkdir()
        if old is not None:
            write(old, path, how)
        shutil.copytree(folder / "work", backup)

        def begin() -> None:
            shutil.rmtree(folder / "work")
            shutil.copytree(backup, folder / "work")

        def check(through: bool, old: Vectors | None = old, new: Vectors = new) -> None:
            if through:
                assert contents(path) == both(new)
            elif old is not None:
                assert contents(path) in (both(old), both(new))
            elif path.exists():  # there was nothing before: now there is nothing or everything
                assert contents(path) == both(new)
            write(RENAMED if through else NEW, path, how)  # the next write succeeds
            assert contents(path) == both(RENAMED if through else NEW)
            left = [each.name for each in path.parent.iterdir() if len(each.name) > 60]
            assert not left, left

        faults += every_fault(begin, lambda new=new: write(new, path, how), check)  # type: ignore[misc]
    print(faults)


if __name__ == "__main__":
    main()
