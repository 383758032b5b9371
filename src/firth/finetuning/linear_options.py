"""Options that the linear classifier and the linear regressor share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.method import Method
from firth.core.options import option


@dataclass(frozen=True, kw_only=True)
class LinearOptions(Method):
    """Options for training a linear model on the vectors of another model."""

    needs_start: ClassVar[bool] = True

    held_out: float = option(0.1, "share of the texts held out for the score, without dev data", low=0, high=0.9)
