"""Speed of reading and writing vector files, compared with gensim if installed.

    python benchmarks/formats.py --rows 100000 --dim 100

Generates its files in a temporary folder. MB/s refer to the file size; every loaded matrix is compared with the source.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import firth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=100)
    settings = parser.parse_args()
    random = np.random.default_rng(1)
    matrix = random.normal(0, 0.1, (settings.rows, settings.dim)).astype(np.float32)
    vectors = firth.Vectors([f"word{row}" for row in range(settings.rows)], matrix)
    with tempfile.TemporaryDirectory() as folder:
        compare(vectors, Path(folder))


def compare(vectors: firth.Vectors, folder: Path) -> None:
    print(f"{len(vectors):,} × {vectors.dim}; MB/s")
    print(f"{'file':<22}{'MB':>8}{'write':>10}{'read':>10}{'gensim read':>14}{'ratio':>8}")
    for name in ("v.txt", "v.glove", "v.vec", "v.txt.gz", "v.bin", "v.npy", "v.safetensors"):
        path = folder / name
        if name.endswith(".gz"):
            writing = None
            with (folder / "v.txt").open("rb") as plain, gzip.open(path, "wb", compresslevel=1) as packed:
                packed.writelines(plain)
        else:
            writing = seconds(lambda file=path: firth.write_vectors(vectors, file))[0]
        reading, loaded = seconds(lambda file=path: opened_whole(file))
        assert loaded.keys == vectors.keys and np.array_equal(loaded.matrix, vectors.matrix)
        size = path.stat().st_size / 1e6
        line = f"{name:<22}{size:8.0f}{speed(size, writing):>10}{speed(size, reading):>10}"
        if name in ("v.txt", "v.bin", "v.glove", "v.txt.gz") and importlib.util.find_spec("gensim"):
            peer = seconds(lambda file=path: by_gensim(file))[0]
            line += f"{speed(size, peer):>14}{peer / reading:7.1f}×"
        print(line)
    for name in ("v.npy", "v.safetensors"):
        opening = seconds(lambda file=folder / name: firth.read_vectors(file))[0]
        first_key = seconds(lambda file=folder / name: firth.read_vectors(file).keys[0])[0]
        print(f"opening {name}: {opening * 1000:.1f} ms, with its keys {first_key * 1000:.0f} ms")


def opened_whole(path: Path) -> firth.Vectors:
    """Read a file completely; some formats otherwise open lazily."""
    vectors = firth.read_vectors(path)
    float(vectors.matrix.sum())
    len(vectors.keys)
    return vectors


def by_gensim(path: Path) -> Any:
    from gensim.models import KeyedVectors

    return KeyedVectors.load_word2vec_format(str(path), binary=path.suffix == ".bin", no_header=".glove" in path.name)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def speed(megabytes: float, duration: float | None) -> str:
    return f"{megabytes / duration:.0f}" if duration else "-"


if __name__ == "__main__":
    main()
