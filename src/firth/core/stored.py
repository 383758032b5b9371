"""What the parts of a saved model must be like, said once: shapes and dtypes by name, texts, finite numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError

Rows = TypeVar("Rows", bound=NDArray[Any])


def check_arrays(arrays: Mapping[str, NDArray[Any]], **declared: str) -> dict[str, int]:
    """Refuses arrays that are not as declared: the dtype ("float" is any), then the size of each dimension, which is a
    number or a name that means the same number everywhere. The sizes by their names.

    check_arrays(arrays, users="float users dim", starts="int64 users+1", scale="float 1")
    """
    sizes: dict[str, int] = {}
    for name, text in declared.items():
        kind, *dimensions = text.split()
        array = arrays[name]
        right = array.ndim == len(dimensions) and (array.dtype.kind == "f" if kind == "float" else array.dtype == kind)
        for dimension, size in zip(dimensions, array.shape, strict=False):
            word, more = re.fullmatch(r"(\w*?)\+?(\d*)", dimension).groups()  # type: ignore[union-attr]
            least = int(more or 0)
            right = right and (sizes.setdefault(word, size - least) + least == size if word else least == size)
        if not right:
            where = ", ".join(f"{word} = {size:,}" for word, size in sizes.items())
            raise FirthError(
                "damaged_model",
                "The array {name} must be {expected}{where}; it is {dtype} of shape {shape}.",
                name=name,
                expected=f"{kind} ({', '.join(dimensions)})",
                where=f" with {where}" if where else "",
                dtype=array.dtype,
                shape=array.shape,
            )
    return sizes


def check_texts_of(values: Any, what: str, count: int | None = None) -> list[str]:
    """A list of texts out of a JSON file, `count` of them."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FirthError("damaged_model", "{what} must be a list of texts.", what=what)
    if count is not None and len(values) != count:
        raise FirthError(
            "damaged_model",
            "{what} must be {count:,} texts; there are {got:,}.",
            what=what,
            count=count,
            got=len(values),
        )
    return values


def check_finite(arrays: Mapping[str, Any]) -> None:
    """Refuses NaN and infinity in arrays (or tensors) that are small, or that are read anyway when a model opens."""
    for name, array in arrays.items():
        values = np.asarray(array)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise FirthError(
                "damaged_model",
                "{name} holds NaN or infinity: the file is damaged, or the model diverged in training.",
                name=name,
            )


def finite_rows(rows: Rows, what: str) -> Rows:
    """The rows that a model computed. Large arrays are not read when a model opens, so that NaN, infinity and numbers
    too large to compute with show here."""
    if not np.isfinite(rows).all():
        odd = np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
        raise FirthError(
            "non_finite",
            "{what} {number:,} has values that are not finite: the model holds NaN, infinity or numbers too large to "
            "compute with. `firth verify` tells whether its files were changed.",
            what=what,
            number=int(odd[0]) + 1,
        )
    return rows
