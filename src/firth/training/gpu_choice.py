"""Decides whether windows are trained on a GPU, without importing torch if there is none."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from firth.core.errors import FirthError
from firth.core.extras import how_to_install
from firth.core.method import Method
from firth.core.run import Run

#: From this size training on a GPU is faster despite the time to load torch and compile kernels: with 5.3 million words
#: per core, 16 cores took 8.0 s and a new process with a GPU 3.9 s, or 5.7 s without compiled kernels
#: (benchmarks/gpu_words.py).
MIN_UNITS_PER_CORE = 5_000_000
MAX_NEGATIVES = 127
NVIDIA_PATHS = ("/dev/nvidiactl", "/dev/dxg")  # Linux, and WSL


def unsupported_option(method: Method) -> str:
    """Return the option of a method that the GPU kernels do not support, or an empty string."""
    options = method.options()
    if options["loss"] != "negative":
        return f"loss={options['loss']}"
    if options.get("share_negatives") is False:
        return "share_negatives=False"
    if (options["negatives"] or 0) > MAX_NEGATIVES:
        return f"negatives above {MAX_NEGATIVES}"
    return ""


def on_gpu(method: Method, run: Run, units: int) -> bool:
    """Return whether a run over `units` units uses the GPU; refuse device=cuda if that is not possible."""
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
    """Return whether Triton interprets kernels without a GPU, as tests do."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def missing_requirement() -> str:
    """Return what this machine lacks for training on a GPU, or an empty string."""
    if not any(Path(path).exists() for path in NVIDIA_PATHS):
        return "there is no NVIDIA GPU"
    for package in ("torch", "triton"):
        if find_spec(package) is None:
            return f"the package {package} is not installed (on Linux {how_to_install('neural')})"
    import torch

    return "" if torch.cuda.is_available() else "torch finds no GPU"
