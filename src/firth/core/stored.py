"""Checks of the parts of a saved model: dtypes and shapes of arrays, texts, finite numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def check_arrays(arrays: Mapping[str, NDArray[Any]], **declared: str) -> dict[str, int]:
    """Check arrays against declarations: a dtype ("float" for any float) and the size of each dimension, a number or a
    name that stands for the same number in all arrays. Returns the sizes by name.

    check_arrays(arrays, users="float users dim", starts="int64 users+1", scale="float 1")
    """
    sizes: dict[str, int] = {}
    for name, text in declared.items():
        kind, *dimensions = text.split()
        array = arrays[name]
        valid = array.ndim == len(dimensions) and (array.dtype.kind == "f" if kind == "float" else array.dtype == kind)
        for dimension, size in zip(dimensions, array.shape, strict=False):
            word, more = re.fullmatch(r"(\w*?)\+?(\d*)", dimension).groups()  # type: ignore[union-attr]
            least = int(more or 0)
            valid = valid and (sizes.setdefault(word, size - least) + least == size if word else least == size)
        if not valid:
            where = ", ".join(f"{word} = {size:,}" for word, size in sizes.items())
            raise FirthError(
                "damaged_model",
                "The array {name} must be {expected}{where}; got {dtype} of shape {shape}.",
                name=name,
                expected=f"{kind} ({', '.join(dimensions)})",
                where=f" with {where}" if where else "",
                dtype=array.dtype,
                shape=array.shape,
            )
    return sizes


def check_texts_of(values: Any, what: str, count: int | None = None) -> list[str]:
    """Check for a list of `count` strings from a JSON file."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FirthError("damaged_model", "{what} must be a list of strings.", what=what)
    if count is not None and len(values) != count:
        raise FirthError(
            "damaged_model",
            "{what} must be {count:,} strings; got {got:,}.",
            what=what,
            count=count,
            got=len(values),
        )
    return values


def check_finite(arrays: Mapping[str, Any]) -> None:
    """Raise an error for NaN and infinity in arrays or tensors that are read when a model is opened."""
    for name, array in arrays.items():
        values = np.asarray(array)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise FirthError(
                "damaged_model",
                "{name} contains NaN or infinity: the file is damaged, or training diverged.",
                name=name,
            )


def finite_rows(rows: AnyArray, what: str) -> AnyArray:
    """Check rows that a model computed for NaN and infinity. Large arrays are not read when a model is opened, so
    damage shows here."""
    if not np.isfinite(rows).all():
        invalid = np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
        raise FirthError(
            "non_finite",
            "{what} {number:,} has values that are not finite: the model contains NaN, infinity or numbers that "
            "overflow. `firth verify` checks whether its files were changed.",
            what=what,
            number=int(invalid[0]) + 1,
        )
    return rows
