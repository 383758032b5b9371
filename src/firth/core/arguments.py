"""Checks of arguments: counts, choices and arrays of real numbers."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError


def check_count(option: str, value: Any) -> int:
    """Check for an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise FirthError(
            "invalid_type", "{option} must be an integer; got {got}.", option=option, got=type(value).__name__
        )
    if value < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option=option, got=value)
    return int(value)


def check_share(option: str, value: float) -> None:
    """Raise invalid_value unless the value is from 0 to 1."""
    if not 0 <= value <= 1:
        raise FirthError("invalid_value", "{option} must be from 0 to 1; got {got}.", option=option, got=value)


def check_choice(option: str, value: Any, choices: Collection[str]) -> str:
    """Raise invalid_value unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r:.80}.",
            option=option,
            choices=", ".join(choices),
            got=value,
        )
    return value


def as_floats(what: str, values: Any, dtype: type[np.floating[Any]] = np.float32) -> NDArray[Any]:
    """Convert to an array of floats. Booleans become 0 and 1; numbers that exceed the dtype become infinite.

    Strings, complex numbers, dates, missing values and ragged rows are refused; NumPy would convert some of them.
    """
    try:
        array = np.asarray(values)
    except Exception as error:  # ragged rows, a tensor on a GPU or with a gradient, …
        raise not_numbers(what, str(error)) from None
    if np.ma.is_masked(values):
        raise FirthError("missing_value", "{what} must not contain missing (masked) values.", what=what)
    if array.dtype == object:
        invalid = [value for value in array.flat if not isinstance(value, (Real, Decimal))]
        if invalid or not array.ndim:
            raise not_numbers(what, f"got {type(invalid[0] if array.ndim else values).__name__}")
    elif array.dtype.kind not in "biuf" and not np.can_cast(array.dtype, np.float32):  # bfloat16 can be cast
        raise not_numbers(what, f"got {array.dtype}")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(dtype, copy=False)
    except OverflowError:
        raise FirthError("out_of_range", "{what} must not contain integers that exceed float64.", what=what) from None
    except (TypeError, ValueError, ArithmeticError) as error:  # of a Decimal, a signalling NaN
        raise not_numbers(what, str(error)) from None


def not_numbers(what: str, reason: str) -> FirthError:
    """Return the error for values that are not a matrix of numbers."""
    return FirthError(
        "invalid_type",
        "{what} must be real numbers in rows of equal length ({reason}).",
        what=what,
        reason=reason.partition("\n")[0].rstrip("."),
    )
