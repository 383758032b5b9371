"""What the views share: the model that is asked, files that can't be read, and numbers as JSON has them."""

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
from firth.server.models import Models, abilities

MAX_TEXT = 20_000  # characters of a text that a view takes
MAX_KEY = 200  # of a word
MAX_MODELS = 20  # beside each other


def model_with(request: Request, name: str, ability: str, hint: str) -> Any:
    """The model of that name, which must have an ability of server.models; `others` names the models that do."""
    served: Models = request.app.state.models
    model = served.get(name)
    if ability not in abilities(model):
        method = getattr(model, "method", None)
        kind = "a file of vectors" if method is None else type(method).method_name()
        raise RequestError(400, f"{name} can't do this ({kind}); {hint}.", field="model")
    return model


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a reader stumbles over in a data file is an error of the file (400), not of the server."""
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
    """Nested lists; NaN, which JSON lacks, is null."""
    values = np.asarray(array, np.float64).round(digits)
    non_finite = ~np.isfinite(values)
    if not non_finite.any():
        return values.tolist()
    with_nulls = values.astype(object)
    with_nulls[non_finite] = None
    return with_nulls.tolist()
