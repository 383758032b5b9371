"""Checks of errors, warnings and notes by their code and values, never by their wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from firth.core.errors import FirthError, FirthWarning


@contextmanager
def refuses(code: str, **values: Any) -> Iterator[pytest.ExceptionInfo[FirthError]]:
    """The block must raise a FirthError with this code and, among others, these values.

    A value is compared as it is, or as text where that is equal: `path="model"` fits Path("model").

        with refuses("invalid_value", option="SkipGram.window", got=0):
            firth.SkipGram(window=0)
    """
    with pytest.raises(FirthError) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code}: {error}"
    for name, value in values.items():
        assert name in error.values, f"{code} has the values {sorted(error.values)}; expected {name!r}"
        actual = error.values[name]
        assert actual == value or str(actual) == str(value), f"{name}: expected {value!r}, got {actual!r}"


@contextmanager
def warns_code(*codes: str) -> Iterator[list[FirthWarning]]:
    """The block must issue a FirthWarning with each of these codes; yields the list that the warnings are put into."""
    issued = list[FirthWarning]()
    with pytest.warns(FirthWarning) as caught:
        yield issued
    issued += [entry.message for entry in caught if isinstance(entry.message, FirthWarning)]
    missing = set(codes) - {warning.code for warning in issued}
    assert not missing, f"not issued: {sorted(missing)}; issued: {sorted({warning.code for warning in issued})}"
