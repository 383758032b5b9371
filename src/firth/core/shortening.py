"""Truncation of vectors to their first dimensions: one rule for Python and the server."""

from __future__ import annotations

from typing import Any

from firth.core.errors import FirthError
from firth.core.model import Model


def check_shorter(model: Model, dim: Any, width: int, option: str = "dim") -> None:
    """Check that vectors with `width` dimensions can be truncated to `dim`: the model was trained for it, or its
    dimensions are ordered."""
    if type(dim) is not int or not 1 <= dim <= width:
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to {width}, the dimensions of the vectors; got {got!r}.",
            option=option,
            width=width,
            got=dim,
        )
    if dim < width and not model.ordered:
        raise FirthError(
            "unsupported_model",
            "{option}={got}: this model's {width} dimensions are not ordered by importance, and it was not trained for "
            "shorter vectors. Fine-tune a BERT for them (firth finetune sentence-encoder --matryoshka-dims {got}) or "
            "whiten it (firth pooling --whiten DATA --dim {got}), or train a model with fewer dimensions.",
            option=option,
            got=dim,
            width=width,
        )
