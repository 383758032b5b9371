"""Damages the checkpoint of a broken-off run of each kind of training in every way of tests/damage.py, and goes on.

    python tests/fuzz/checkpoints.py [METHOD ...] [--part 1/3] [--seed 1]

Either the run is resumed and ends with finite vectors, or it is refused with a FirthError and the folder stays as it
was. With `hashes`, the record's own sha256 are those of the damaged files: as one who edits them on purpose would do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

#: One method for each way of training, with options that end soon.
RUNS: dict[str, dict[str, Any]] = {
    "skipgram": {"dim": 8, "epochs": 4, "min_count": 2},
    "fasttext": {"dim": 8, "epochs": 4, "min_count": 2, "buckets": 500},
    "fasttext_classifier": {"dim": 8, "epochs": 4},
    "doc2vec": {"dim": 8, "epochs": 4, "min_count": 2},
    "glove": {"dim": 8, "epochs": 4, "min_count": 2},
    "node2vec": {"dim": 8, "epochs": 4, "walks_per_node": 2, "walk_length": 8},
    "als": {"dim": 4, "epochs": 4},
    "bpr": {"dim": 4, "epochs": 4},
    "item2vec": {"dim": 4, "epochs": 4},
    "vae": {"dim": 2, "epochs": 6, "hidden_sizes": "8"},
    "multvae": {"dim": 4, "epochs": 6},
    "gpt": {
        "layers": 1,
        "dim": 8,
        "heads": 2,
        "context_length": 16,
        "vocabulary_size": 300,
        "epochs": 2,
        "batch_tokens": 4096,
    },
    "bert": {
        "layers": 1,
        "dim": 8,
        "heads": 2,
        "context_length": 32,
        "vocabulary_size": 300,
        "epochs": 2,
        "batch_tokens": 4096,
    },
    "seq2seq": {"layers": 1, "dim": 8, "heads": 2, "context_length": 64, "vocabulary_size": 300, "epochs": 2},
    "classify": {"epochs": 2},
}


def run_of(name: str, report: Any) -> tuple[Any, Any, Any, Any]:
    """Method, data, run and start."""
    from samples import sample_of
    from tiny import tiny_bert

    import firth
    from firth.core import registry

    ordered = name in ("skipgram", "node2vec")  # whose cursors stand in the state
    method = registry.method(name)(**RUNS[name])
    run = firth.Run(threads=1, deterministic=ordered, checkpoint_every=1e-9, report=report)
    return method, sample_of(type(method)).data(), run, tiny_bert(layers=1) if method.needs_start else None


def make_run(folder: Path, name: str) -> Path:
    """A folder with a run that was broken off after some checkpoints."""
    from breaking import Notes

    import firth

    class Stops(Notes):
        """Ctrl-C after some slices of training."""

        left = 2

        def begin(self, task: str, total: float, unit: str) -> None:
            self.training = task.startswith("training")

        def step(self, done: float, **figures: float) -> None:
            self.left -= self.training
            if not self.left:
                raise KeyboardInterrupt

    method, data, run, start = run_of(name, Stops())
    try:
        firth.train(method, data, folder / name, run=run, start=start)
    except KeyboardInterrupt:
        return folder / name
    raise AssertionError(f"{name} ended before it was broken off")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def resume(folder: Path) -> str:
    """What comes of going on: "resumed", "trained" (from the beginning), "refused CODE", or what is wrong."""
    import numpy as np
    from breaking import Notes

    import firth
    from firth.core import model as protocols

    before = contents(folder)
    method, data, run, start = run_of(folder.name, Notes())
    try:
        done = firth.train(method, data, folder, run=run, start=start)
    except firth.FirthError as error:
        if contents(folder) != before:
            return f"WRONG: refused ({error.code}), and the folder was changed"
        if error.code == "damaged_checkpoint" and "Delete this folder" not in str(error):
            return f"WRONG: no way out: {error}"
        return f"refused {error.code}"
    if (done.status == "trained") != (".unfinished/checkpoint.json" not in before):
        return f"WRONG: {done.status} with a checkpoint that is {'' if done.status == 'trained' else 'not '}there"
    tables = done.model.tables.values() if isinstance(done.model, protocols.HasVectors) else ()
    if not all(np.isfinite(table.matrix).all() for table in tables):
        return "WRONG: vectors that are not finite"
    return done.status


def fix_record(folder: Path) -> None:
    """Gives the record of a checkpoint the hashes of its files."""
    from firth.core.checkpoint import hash_of
    from firth.core.storage import fingerprint

    path = folder / ".unfinished/checkpoint.json"
    try:
        record = json.loads(path.read_bytes())
        arrays = folder / ".unfinished" / record["arrays"]
        state = hash_of(record["identity"], record["state"])
        record["sha256"] = {"arrays": fingerprint(arrays)["sha256"], "state": state}
        path.write_text(json.dumps(record))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass


def cases(folder: Path, seed: int) -> Iterator[tuple[str, Any, bool]]:
    from damage import damages

    for number, (what, damage) in enumerate(damages(folder, seed)):
        yield what, damage, True
        if number % 4 == 0:
            yield what, damage, False


def main() -> int:
    from damage import damaged_copy
    from worker import Worker, arguments, summary

    given = arguments(__doc__)
    if given.worker:
        Worker.serve(resume)
        return 0
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        worker = Worker(__file__)
        for name in given.names or RUNS:
            place = make_run(Path(scratch, "runs"), name)
            copy = Path(scratch, "copy", name)
            found.append((f"{name}: undamaged", worker.ask(damaged_copy(place, copy, lambda _: None))))
            for number, (what, damage, hashes) in enumerate(cases(place, given.seed)):
                if number % given.parts == given.part - 1:
                    damaged_copy(place, copy, damage)
                    if hashes:
                        fix_record(copy)
                    found.append((f"{name}: {what}{', hashes fixed' if hashes else ''}", worker.ask(copy)))
        worker.close()
    return summary(found)


if __name__ == "__main__":
    sys.exit(main())
