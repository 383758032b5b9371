"""What the workers of a sweep open in tests/studies/test_sweep_cluster.py; a module that Ray's workers can import."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

import firth
from firth import Run
from firth.studies.sweeping import SweepInputs
from firth.studies.tasks import Part, Task


def opened(folder: str, deadly: int = 0) -> SweepInputs:
    """Skip-gram, and a task whose scores depend on the vectors; it kills the process at `deadly` dimensions."""

    def values(model: Any) -> np.ndarray:
        with (Path(folder) / "log").open("a") as log:
            log.write(f"{model.method.dim} {os.getpid()}\n")
        if model.method.dim == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.asarray(np.abs(model.vectors.matrix[:20]).sum(axis=1), dtype=np.float64)

    part = Part(20, values)
    method = firth.SkipGram(epochs=1, dim=10, min_count=1)
    lines = Path(folder) / "text.txt"
    run = Run(deterministic=True, threads=1, checkpoint_every=0)
    return SweepInputs(method, firth.Corpus(lines), Task("sum", "a sum", part, part, "sum"), run)
