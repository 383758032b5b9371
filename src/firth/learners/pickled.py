"""Weights out of pickles, for those who ask for it: tensors alone, by torch's restricted loader."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import CONFIG, FOREIGN_ARRAYS, new_folder, write_arrays

PICKLES = "pytorch_model*.bin"
KEPT = (".json", ".txt")  # config, tokenizer, pooling
SAFE = (2, 6)  # before it, a crafted file got through the restricted loader (CVE-2025-32434)


def convert_pickled(source: Path, target: Path) -> int:
    """Writes the folder `source` again, with its weights as safetensors; how many arrays it has."""
    files = sorted(source.glob(PICKLES))
    if not files or not (source / CONFIG).is_file():
        raise FirthError(f"{source} has no {CONFIG} with {PICKLES} beside it: there is nothing to convert.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FirthError(f"{target} exists; choose another folder.")
    arrays = dict[str, NDArray[Any]]()
    for file in files:
        arrays |= read_pickled(file)
    with new_folder(target) as work:
        for path in sorted([*source.glob("*"), *source.glob("*/*")]):
            if path.is_file() and path.suffix in KEPT and not path.name.endswith(".index.json"):
                place = work / path.relative_to(source)
                place.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, place)
        write_arrays(work / FOREIGN_ARRAYS, arrays, foreign=True)
    return len(arrays)


def read_pickled(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by torch.load(weights_only=True), which builds tensors and plain containers only.

    Tensors that are one (tied weights) are given once, as transformers writes them.
    """
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < SAFE:
        raise FirthError(f"Pickled weights are read safely from torch 2.6 on; this is {torch.__version__}.")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # what a crafted file makes it raise is not for it to choose
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise FirthError(f"{path} holds more than tensors, or is damaged, and was not opened ({why:.200}).") from None
    tensors = found if isinstance(found, dict) else {}
    odd = [name for name, value in tensors.items() if not isinstance(name, str) or not isinstance(value, torch.Tensor)]
    if not tensors or odd:
        what = f"{odd[0]!r:.60} is none" if odd else f"it holds {type(found).__name__}"
        raise FirthError(f"{path} must be tensors by name, as a model's state_dict is; {what}.")
    seen, arrays = set[tuple[Any, ...]](), dict[str, NDArray[Any]]()
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
            raise FirthError(f"{path}: {name} is {tensor.dtype} ({tensor.layout}), which safetensors does not hold.")
        place = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride())
        if place in seen and tensor.numel():
            continue
        seen.add(place)
        plain = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
        arrays[name] = np.ascontiguousarray(plain.numpy())
    return arrays
