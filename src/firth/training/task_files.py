"""The kernel's arguments as files, from which workers of a cluster read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.storage import read_arrays, write_arrays
from firth.kernels import predict as kernel

PAIRS = {"paths": kernel.Paths, "subwords": kernel.Lists, "tags": kernel.Lists}
ELSEWHERE = ("ids", "starts", "inputs", "outputs")  # arrays that workers have from other files


def write_task(task: kernel.Task, path: Path) -> dict[str, Any]:
    """Write the arrays of a task, and return its other values."""
    arrays, values = {}, {}
    for item in fields(task):
        value = getattr(task, item.name)
        if item.name in PAIRS:
            arrays |= {f"{item.name}.{part}": array for part, array in value._asdict().items()}
        elif isinstance(value, np.ndarray):
            arrays |= {} if item.name in ELSEWHERE else {item.name: value}
        else:
            values[item.name] = value
    write_arrays(path, arrays)
    return values


def read_task(path: Path, values: Mapping[str, Any], **others: Any) -> kernel.Task:
    """Read a task; `others` are the arrays that `write_task` leaves out."""
    arrays = read_arrays(path)
    lists = {
        name: kind(**{part: arrays.pop(f"{name}.{part}") for part in kind._fields}) for name, kind in PAIRS.items()
    }
    return kernel.Task(**arrays, **lists, **values, **others)
