"""Small GGUF files, written with the package gguf."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")


def write_gguf(
    path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, tuple[np.ndarray, str]], architecture: str = "llama"
) -> None:
    """Write metadata and tensors, each with the name of its type."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        if isinstance(value, list | tuple):
            writer.add_array(key, list(value))
        else:
            kinds = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING"}
            writer.add_key_value(key, value, gguf.GGUFValueType[kinds[type(value)]])
    for name, (array, kind) in tensors.items():
        stored = gguf.quants.quantize(array, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(name, stored, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def small_file(path: Path) -> dict[str, np.ndarray]:
    """Write a file with a tensor of each type and a value of each kind; return the tensors."""
    rng = np.random.default_rng(1)
    arrays = {f"t.{kind}": rng.normal(size=(5, 64)).astype(np.float32) for kind in TYPES}
    arrays["norm"] = rng.normal(size=7).astype(np.float32)
    metadata = {"a.text": "naïve", "a.int": 7, "a.float": 0.5, "a.bool": True, "a.texts": ["x", "", "川"]}
    metadata |= {"a.ints": [1, 2, 3], "a.floats": [0.5, 1.5]}
    write_gguf(path, metadata, {name: (array, name[2:] if name[1] == "." else "F32") for name, array in arrays.items()})
    return arrays
