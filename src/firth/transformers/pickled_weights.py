"""Weights out of pickles, for those who ask for it: tensors alone, by torch's restricted loader."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.foreign import network_folder, read_modules
from firth.core.storage import CONFIG, FOREIGN_ARRAYS, new_folder, write_arrays

PICKLES = "pytorch_model*.bin"
COPIED_SUFFIXES = (".json", ".txt")  # config, tokenizer, pooling
FIRST_SAFE_TORCH = (2, 6)  # before it, a crafted file got through the restricted loader (CVE-2025-32434)


def convert_pickled(source: Path, target: Path) -> int:
    """Writes the folder `source` again, with its weights as safetensors; how many arrays were pickled."""
    network = network_folder(source)
    files = {part: sorted(part.glob(PICKLES)) for part in (network, *(part for _, part in read_modules(source)))}
    if not any(files.values()) or not (network / CONFIG).is_file():
        raise FirthError(
            "not_found",
            "{source} has no {config} with {pickles} beside it: there is nothing to convert.",
            source=source,
            config=CONFIG,
            pickles=PICKLES,
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FirthError("output_exists", "{target} exists; choose another folder.", target=target)
    arrays = {
        part: {name: array for file in pickles for name, array in read_pickled(file).items()}
        for part, pickles in files.items()
        if pickles
    }
    with new_folder(target) as work:
        for path in sorted([*source.glob("*"), *source.glob("*/*")]):
            safetensors = ".safetensors" in path.name and not files.get(
                path.parent, True
            )  # of a part that is no pickle
            text = path.suffix in COPIED_SUFFIXES and not path.name.endswith(".index.json")
            if path.is_file() and (safetensors or text):
                part = work / path.relative_to(source)
                part.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, part)
        for folder, part_arrays in arrays.items():
            write_arrays(work / folder.relative_to(source) / FOREIGN_ARRAYS, part_arrays, foreign=True)
    return sum(map(len, arrays.values()))


def read_pickled(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by torch.load(weights_only=True), which builds tensors and plain containers only.

    Tensors that are one (tied weights) are given once, as transformers writes them.
    """
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < FIRST_SAFE_TORCH:
        raise FirthError(
            "missing_package",
            "Pickled weights are read safely from torch 2.6 on; this is {version__}.",
            version__=torch.__version__,
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # what a crafted file makes it raise is not for it to choose
        blocked = re.search(r"GLOBAL ([\w.]+)", str(error))  # torch's own advice is to load it unsafely
        detail = f"holds more than tensors ({blocked[1]:.80})" if blocked else "is damaged, or holds more than tensors,"
        raise FirthError(
            "unsafe_pickle",
            "{path} {detail} and was not opened: Firth reads tensors alone. Get the weights as safetensors from "
            "where they were made.",
            path=path,
            detail=detail,
        ) from None
    tensors = content if isinstance(content, dict) else {}
    invalid = [
        name for name, value in tensors.items() if not isinstance(name, str) or not isinstance(value, torch.Tensor)
    ]
    if not tensors or invalid:
        detail = f"{invalid[0]!r:.60} is none" if invalid else f"it holds {type(content).__name__}"
        raise FirthError(
            "damaged_model",
            "{path} must be tensors by name, as a model's state_dict is; {detail}.",
            path=path,
            detail=detail,
        )
    seen, arrays = set[tuple[Any, ...]](), dict[str, NDArray[Any]]()
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
            raise FirthError(
                "damaged_model",
                "{path}: {name} is {dtype} ({layout}), which safetensors does not hold.",
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
