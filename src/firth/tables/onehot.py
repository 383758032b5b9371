"""One-hot: a category is a 1 among zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.options import option
from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class OneHot(CategoryEncoding):
    """Category i of n becomes the i-th unit vector of length n: all are equally far from each other.

    Missing is all zeros, and so is unseen with `unseen="missing"`; the inverse of all zeros is missing. A column with
    one category is a column of ones. What holds for all encoders stands at `EncodingMethod`.
    """

    summary: ClassVar[str] = "tables: each category a feature of its own, 1 or 0"
    code: ClassVar[str] = "onehot"

    sparse: bool = option(False, "transform gives a sparse matrix: for many categories")
