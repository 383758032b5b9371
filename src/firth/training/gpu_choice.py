"""Whether windows are trained on a GPU, decided without loading torch where there is none."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.extras import how_to_install
from firth.core.run import Run

#: From here on it pays to wait some seconds for torch, the card and its compiler: 5.3 million words for each of 16
#: cores took them 8.0 s, a new process with a GPU 3.9, or 5.7 with nothing compiled before (benchmarks/gpu_words.py).
MIN_UNITS_PER_CORE = 5_000_000
MAX_NEGATIVES = 127
NVIDIA_PATHS = ("/dev/nvidiactl", "/dev/dxg")  # of Linux, and of Linux within Windows


def unsupported_option(method: Any) -> str:
    """Which of a method's options the kernels of a GPU do not know; empty if none."""
    if method.loss != "negative":
        return f"loss={method.loss}"
    if getattr(method, "share_negatives", True) is False:
        return "share_negatives=False"
    if (method.negatives or 0) > MAX_NEGATIVES:
        return f"negatives above {MAX_NEGATIVES}"
    return ""


def on_gpu(method: Any, run: Run, units: int) -> bool:
    """Whether a run that trains on so many words is one for the GPU; says why where it was asked for and can't be."""
    name, unsupported = type(method).__name__, unsupported_option(method)
    if run.device == "cpu":
        return False
    if run.device == "auto":
        pays = units >= MIN_UNITS_PER_CORE * run.cores
        return pays and not unsupported and not run.deterministic and not missing_requirement()
    if unsupported:
        raise FirthError(
            "unsupported_device",
            "{method} with {option} does not run on a GPU. Use device=auto or device=cpu.",
            method=name,
            option=unsupported,
        )
    if run.deterministic:
        raise FirthError(
            "unsupported_device",
            "{option} is not available on CUDA, where updates are unordered. Use device=cpu.",
            option="deterministic=True",
        )
    problem = "" if runs_interpreted() else missing_requirement()
    if problem:
        raise FirthError(
            "no_gpu", "device=cuda is not available: {reason}. Use device=auto or device=cpu.", reason=problem
        )
    return True


def runs_interpreted() -> bool:
    """Whether Triton runs kernels step by step without a card, as tests do."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def missing_requirement() -> str:
    """What keeps this machine from training on a GPU; empty if nothing does."""
    if not any(Path(path).exists() for path in NVIDIA_PATHS):
        return "there is no NVIDIA GPU"
    for package in ("torch", "triton"):
        if find_spec(package) is None:
            return f"the package {package} is not installed (on Linux {how_to_install('neural')})"
    import torch

    return "" if torch.cuda.is_available() else "torch finds no GPU"
