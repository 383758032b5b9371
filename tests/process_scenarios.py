"""What each of several processes does in tests/training/test_several_processes.py."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breaking import Breaks
from counting import answers, training, weights

from firth.core.run import Run
from firth.core.storage import write_arrays
from firth.training.gradient_loop import GradientLoop

CPU: dict[str, Any] = {"deterministic": True, "device": "cpu"}
ODD: dict[str, dict[str, Any]] = {"whole": {}, "odd": {"batch_tokens": 17 * 16, "held_out": 0.0}}


def leave() -> None:
    import torch.distributed as dist

    dist.barrier()  # neither process closes its connections while the other one is still at work
    dist.destroy_process_group()


def steps_as_slices() -> None:
    from firth.training import epoch_loop

    epoch_loop.SLICE_SECONDS = 1e-9


def curve(task: GradientLoop) -> list[float]:
    return [epoch["loss"] for epoch in task.progress.epochs]


def interrupted(folder: Path, steps: int, **options: Any) -> None:
    """Train for some steps and leave a checkpoint."""
    run = Run(**CPU, checkpoint_folder=folder, report=Breaks(steps), shard_weights=options.pop("shard_weights", False))
    with pytest.raises(KeyboardInterrupt):
        training(run, **options).go()


def sharded_and_not(folder: Path) -> None:
    """Train with divided weights; 17 rows per step leave one process without a batch in some of them."""
    for name, options in ODD.items():
        task = training(Run(**CPU, shard_weights=True), epochs=2, **options)
        assert task.sharded is not None
        metrics = task.go()
        if task.rank == 0:
            np.save(folder / f"{name}.npy", answers(task))
            held_out = metrics.get("held_out_loss", 0.0)
            (folder / f"{name}.json").write_text(json.dumps([*curve(task), held_out, metrics["parameters"]]))


def resumed_exactly(folder: Path) -> None:
    """Interrupt and resume with dropout, with and without divided weights; the bytes are those without the break."""
    steps_as_slices()
    for sharded in (False, True):
        settings: dict[str, Any] = {**CPU, "shard_weights": sharded}
        uninterrupted = training(Run(**settings), dropout=0.2, epochs=1)
        uninterrupted.go()
        interrupted(folder / f"run-{sharded}", 4, dropout=0.2, epochs=1, shard_weights=sharded)
        task = training(
            Run(**settings, checkpoint_folder=folder / f"run-{sharded}", report=Breaks(-1)), dropout=0.2, epochs=1
        )
        task.go()
        assert weights(task) == weights(uninterrupted)
        if task.rank == 0:
            (folder / f"same-{sharded}").write_text(str(task.progress.steps))


def left_unfinished(folder: Path) -> None:
    steps_as_slices()
    interrupted(folder / "left", 5, epochs=2, held_out=0.0, shard_weights=True)


def finished(folder: Path) -> None:
    task = training(Run(**CPU, checkpoint_folder=folder / "left", report=Breaks(-1)), epochs=2, held_out=0.0)
    task.go()
    if task.rank == 0:
        np.save(folder / "finished.npy", answers(task))


def killed_while_writing(folder: Path) -> None:
    """One process is killed while it writes its part of the second checkpoint."""
    steps_as_slices()
    written: list[Path] = []

    def writing(path: Path, arrays: Any) -> None:
        written.append(path)
        if len(written) == 2 and "00002-of-00002" in path.name:
            path.write_bytes(b"\x10\x00\x00")
            os.kill(os.getpid(), signal.SIGKILL)
        write_arrays(path, arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firth.core.checkpoint.write_arrays", writing)
        training(Run(**CPU, checkpoint_folder=folder / "left", checkpoint_every=1e-9), epochs=2, held_out=0.0).go()
