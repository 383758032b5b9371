"""Conversion of pickled weights to safetensors, by torch's restricted loader, on explicit request."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.remote import AnyPath
from firth.core.storage import CONFIG, FOREIGN_ARRAYS, new_folder, write_arrays
from firth.transformers.huggingface_folder import network_folder, read_modules

PICKLES = "pytorch_model*.bin"
COPIED_SUFFIXES = (".json", ".txt")  # config, tokenizer and pooling files
FIRST_SAFE_TORCH = (2, 6)  # earlier versions had CVE-2025-32434 in the restricted loader


def convert_pickled(source: Path, target: AnyPath) -> int:
    """Copy the folder `source` with its weights as safetensors; return the number of converted arrays."""
    network = network_folder(source)
    files = {part: sorted(part.glob(PICKLES)) for part in (network, *(part for _, part in read_modules(source)))}
    if not any(files.values()) or not (network / CONFIG).is_file():
        raise FirthError(
            "not_found",
            "{source} has nothing to convert: it needs {config} and {pickles}.",
            source=source,
            config=CONFIG,
            pickles=PICKLES,
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FirthError("output_exists", "{target} exists. Choose another folder.", target=target)
    arrays = {
        part: {name: array for file in pickles for name, array in read_pickled(file).items()}
        for part, pickles in files.items()
        if pickles
    }
    with new_folder(target) as work:
        for path in sorted([*source.glob("*"), *source.glob("*/*")]):
            safetensors = ".safetensors" in path.name and not files.get(
                path.parent, True
            )  # of a module without pickles
            text = path.suffix in COPIED_SUFFIXES and not path.name.endswith(".index.json")
            if path.is_file() and (safetensors or text):
                part = work / path.relative_to(source)
                part.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, part)
        for folder, part_arrays in arrays.items():
            write_arrays(work / folder.relative_to(source) / FOREIGN_ARRAYS, part_arrays, foreign=True)
    return sum(map(len, arrays.values()))


def read_pickled(path: Path) -> dict[str, NDArray[Any]]:
    """Read tensors with torch.load(weights_only=True), which builds tensors and plain containers only.

    Tied weights are returned once, as transformers writes them.
    """
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < FIRST_SAFE_TORCH:
        raise FirthError(
            "missing_package",
            "Reading pickled weights safely needs torch 2.6 or later; got {got}.",
            got=torch.__version__,
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # a crafted file can raise anything
        blocked = re.search(r"GLOBAL ([\w.]+)", str(error))  # torch's message suggests loading it unsafely
        detail = (
            f"contains more than tensors ({blocked[1]:.80})" if blocked else "is damaged or contains more than tensors"
        )
        raise FirthError(
            "unsafe_pickle",
            "{path} {detail}, so it was not opened. Get the weights as safetensors from their source.",
            path=path,
            detail=detail,
        ) from None
    tensors = content if isinstance(content, dict) else {}
    invalid = [
        name for name, value in tensors.items() if not isinstance(name, str) or not isinstance(value, torch.Tensor)
    ]
    if not tensors or invalid:
        detail = f"{invalid[0]!r:.60} is not a tensor" if invalid else f"got {type(content).__name__}"
        raise FirthError(
            "damaged_model",
            "{path} must be a state_dict of tensors by name; {detail}.",
            path=path,
            detail=detail,
        )
    seen, arrays = set[tuple[Any, ...]](), dict[str, NDArray[Any]]()
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
            raise FirthError(
                "damaged_model",
                "{path}: {name} has dtype {dtype} and layout {layout}, which safetensors does not support.",
                path=path,
                name=name,
                dtype=tensor.dtype,
                layout=tensor.layout,
            )
        storage_key = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride())
        if storage_key in seen and tensor.numel():
            continue
        seen.add(storage_key)
        dense = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
        arrays[name] = np.ascontiguousarray(dense.numpy())
    return arrays
