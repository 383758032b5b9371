"""Rows in fewer bytes: half precision, or int8 with one scale a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix

STORAGES = ("float", "half", "int8")


def quantize_rows(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Codes −127 … 127 and a scale a row; codes × scale is within half a scale of the row.

    The scale is the row's largest absolute value / 127; a row of zeros has scale 0.
    """
    largest = np.maximum(matrix.max(axis=1, initial=0), -matrix.min(axis=1, initial=0))
    scales = (largest.astype(np.float64) / 127).astype(np.float32)
    # Divided in doubles and by 1 for rows of zeros, or of numbers so small that their scale is 0.
    codes = np.empty(matrix.shape, dtype=np.int8)
    divisor = np.where(scales == 0, 1, scales).astype(np.float64)[:, None]
    step = max(1, (1 << 20) // max(1, matrix.shape[1]))
    for first in range(0, len(matrix), step):
        rounded = np.rint(matrix[first : first + step] / divisor[first : first + step])
        codes[first : first + step] = np.clip(rounded, -127, 127)
    return codes, scales


def dequantize_rows(codes: NDArray[np.int8], scales: NDArray[np.float32]) -> Matrix:
    """The inverse of `quantize_rows`, up to its rounding."""
    return np.multiply(codes, scales[:, None], dtype=np.float32)


def pack_rows(matrix: Matrix, storage: str) -> dict[str, NDArray[Any]]:
    """The arrays that hold a matrix in a safetensors file: "vectors", and for int8 "scales"."""
    if storage == "float":
        return {"vectors": matrix}
    if storage == "int8":
        codes, scales = quantize_rows(matrix)
        return {"vectors": codes, "scales": scales}
    if storage != "half":
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="storage",
            choices=", ".join(STORAGES),
            got=storage,
        )
    with np.errstate(over="ignore"):
        half = matrix.astype(np.float16)
    if not np.isfinite(half).all():
        raise FirthError(
            "out_of_range",
            "half holds numbers up to 65,504; the largest here is {max:g}: store float.",
            max=np.abs(matrix).max(),
        )
    return {"vectors": half}


def unpack_rows(arrays: Mapping[str, NDArray[Any]]) -> Matrix:
    """The inverse of `pack_rows`; float32 stays mapped from its file."""
    vectors = arrays.get("vectors")
    if vectors is None or vectors.ndim != 2:
        raise FirthError("damaged_file", 'there must be a matrix named "vectors"')
    if vectors.dtype == np.int8:
        scales = arrays.get("scales")
        if scales is None or scales.dtype != np.float32 or scales.shape != vectors.shape[:1]:
            raise FirthError("damaged_file", 'int8 vectors need float32 "scales", one a row')
        return dequantize_rows(vectors, scales)
    if vectors.dtype.kind != "f":
        raise FirthError("damaged_file", "vectors must be float or int8; got {got}", got=vectors.dtype)
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite and is refused at its use
        return np.asarray(vectors, dtype=np.float32)
