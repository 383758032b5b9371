"""Compressed storage of rows: half precision, or int8 with one scale per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.vectors import Matrix

STORAGES = ("float", "half", "int8")


def quantize_rows(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize rows to int8 codes from −127 to 127 and one scale per row; the error is at most half a scale.

    The scale is the largest absolute value of the row divided by 127; a row of zeros has the scale 0.
    """
    largest = np.maximum(matrix.max(axis=1, initial=0), -matrix.min(axis=1, initial=0))
    scales = (largest.astype(np.float64) / 127).astype(np.float32)
    # The division is in float64. The divisor is 1 for rows whose scale is 0: zeros or extremely small numbers.
    codes = np.empty(matrix.shape, dtype=np.int8)
    divisor = np.where(scales == 0, 1, scales).astype(np.float64)[:, None]
    step = max(1, (1 << 20) // max(1, matrix.shape[1]))
    for first in range(0, len(matrix), step):
        rounded = np.rint(matrix[first : first + step] / divisor[first : first + step])
        codes[first : first + step] = np.clip(rounded, -127, 127)
    return codes, scales


def dequantize_rows(codes: NDArray[np.int8], scales: NDArray[np.float32]) -> Matrix:
    """Return the rows of `quantize_rows`, up to rounding."""
    return np.multiply(codes, scales[:, None], dtype=np.float32)


def pack_rows(matrix: Matrix, storage: str) -> dict[str, NDArray[Any]]:
    """Return the arrays that store a matrix in a safetensors file: "vectors", and "scales" for int8."""
    check_choice("storage", storage, STORAGES)
    if storage == "float":
        return {"vectors": matrix}
    if storage == "int8":
        codes, scales = quantize_rows(matrix)
        return {"vectors": codes, "scales": scales}
    with np.errstate(over="ignore"):
        half = matrix.astype(np.float16)
    if not np.isfinite(half).all():
        raise FirthError(
            "out_of_range",
            "storage='half' can store numbers up to 65,504; the largest number is {got:g}. Use storage='float'.",
            got=float(np.abs(matrix).max()),
        )
    return {"vectors": half}


def unpack_rows(arrays: Mapping[str, NDArray[Any]], limit: int | None = None) -> Matrix:
    """Return the first `limit` rows (None: all) that `pack_rows` stored; float32 stays memory-mapped."""
    vectors = arrays.get("vectors")
    if vectors is None or vectors.ndim != 2:
        raise FirthError("damaged_file", 'the matrix "{name}" is missing', name="vectors")
    if vectors.dtype == np.int8:
        scales = arrays.get("scales")
        if scales is None or scales.dtype != np.float32 or scales.shape != vectors.shape[:1]:
            raise FirthError("damaged_file", 'int8 vectors need a float32 array "{name}", one per row', name="scales")
        return dequantize_rows(vectors[:limit], scales[:limit])
    if vectors.dtype.kind != "f":
        raise FirthError("damaged_file", "vectors must be float or int8; got {got}", got=vectors.dtype)
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused when used
        return np.asarray(vectors[:limit], dtype=np.float32)
