"""Helpers shared by the views: models with an ability, errors of data files, and numbers for JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from fastapi import Request

from firth.core.errors import FirthError
from firth.server.errors import RequestError
from firth.server.models import Models, abilities, method_of

MAX_TEXT = 20_000  # characters of a text
MAX_KEY = 200  # characters of a word
MAX_MODELS = 20  # models that are compared


def model_with(request: Request, name: str, ability: str, hint: str) -> Any:
    """Return the model of that name, which must have an ability of server.models; `hint` names models that have it."""
    served: Models = request.app.state.models
    model = served.get(name)
    if ability not in abilities(model):
        method = method_of(model)
        kind = "a file of vectors" if method is None else type(method).method_name()
        raise RequestError(400, f"{name} ({kind}) does not support this; {hint}.", field="model")
    return model


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error while reading a data file into an error of the request (400), not of the server."""
    try:
        yield
    except FirthError:
        raise
    except (pyarrow.ArrowException, OSError, EOFError, ValueError, ArithmeticError) as error:
        raise FirthError(
            "malformed_data",
            "{name} cannot be read: {reason}",
            name=path.name,
            reason=(str(error) or type(error).__name__)[:200],
        ) from None


def rounded(array: Any, digits: int = 5) -> Any:
    """Return an array as nested lists, with null for NaN, which JSON does not have."""
    values = np.asarray(array, np.float64).round(digits)
    non_finite = ~np.isfinite(values)
    if not non_finite.any():
        return values.tolist()
    with_nulls = values.astype(object)
    with_nulls[non_finite] = None
    return with_nulls.tolist()
