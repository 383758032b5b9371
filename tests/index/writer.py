"""A process that changes an index until it is killed: `python writer.py FOLDER ENDS [N]` kills itself at its N-th disk
operation. Each change is a function of the step, so the content of every commit is known. ENDS are the last commits of
the steps."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from firth.index import Index

DIM = 4
STEPS = 30


def step(index: Index, number: int) -> None:
    """One change."""
    rng = np.random.default_rng(number)
    keys = sorted(contents(index))
    if number % 6 == 5:
        index.optimize(approximate=True, threads=1)
    elif number % 4 == 3 and keys:
        index.delete([keys[i] for i in rng.choice(len(keys), size=min(5, len(keys)), replace=False)])
    elif number % 4 == 2 and keys:
        some = [*(keys[i] for i in rng.choice(len(keys), size=3, replace=False)), f"new-{number}"]
        index.update(some, rng.normal(size=(4, DIM)), {"step": [number] * 4, "text": [f"update {number}"] * 4})
    else:
        made = [f"{number}-{i}" for i in range(30)]
        index.add(made, rng.normal(size=(30, DIM)), {"step": [number] * 30, "text": [f"row {key}" for key in made]})


def contents(index: Index) -> dict[str, bytes]:
    """Every key with its vector."""
    store = index.store.state
    keys = [key for segment in store.segments for key in segment.table.column("key").to_pylist()]
    vectors = store.vectors(np.arange(store.rows))
    deleted = set(store.deleted.tolist())
    rows = enumerate(zip(keys, vectors, strict=True))
    return {key: row.tobytes() for position, (key, row) in rows if position not in deleted}


def replayed(steps: int) -> tuple[dict[int, dict[str, bytes]], list[int]]:
    """The content of each commit, and the last commit of each step."""
    index = Index.create(dim=DIM)
    states, ends = {0: contents(index)}, []
    for number in range(steps):
        before = index.store.manifest["commit"]
        step(index, number)
        ends.append(index.store.manifest["commit"])
        states |= {commit: contents(index) for commit in range(before + 1, ends[-1] + 1)}
    return states, ends


def end_at(touch: int) -> None:
    """Kills this process when it is about to sync, rename or remove something for the n-th time."""
    left = [touch]

    def watched(real):
        def call(*arguments, **settings):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **settings)

        return call

    os.fsync = watched(os.fsync)
    Path.replace = watched(Path.replace)  # type: ignore[method-assign]
    Path.unlink = watched(Path.unlink)  # type: ignore[method-assign]


def main() -> None:
    index = Index.open(sys.argv[1])
    ends = json.loads(sys.argv[2])
    first = next(number for number, end in enumerate(ends) if end > index.store.manifest["commit"])
    if len(sys.argv) > 3:
        end_at(int(sys.argv[3]))
    for number in range(first, len(ends)):
        step(index, number)
        print(index.store.manifest["commit"], flush=True)


if __name__ == "__main__":
    main()
