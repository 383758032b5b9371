"""One-hot encoding: one binary feature per category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.options import option
from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class OneHot(CategoryEncoding):
    """Encode category i of n as the i-th unit vector of length n; all categories are equally far apart.

    A missing category is all zeros, and so is an unseen one with `unseen="missing"`. The inverse of all zeros is
    missing. A column with one category becomes a column of ones. `EncodingMethod` describes what all encoders have in
    common.
    """

    summary: ClassVar[str] = "tables: one 0/1 feature per category"
    code: ClassVar[str] = "onehot"

    sparse: bool = option(False, "transform returns a sparse matrix; for many categories")
