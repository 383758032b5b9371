"""Label: a category is its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class Ordinal(CategoryEncoding):
    """Categories are numbered from 0 on, and the number is the code: one feature a column.

    Missing is NaN, and so is unseen with `unseen="missing"`; the inverse of NaN is missing, and of a number that is
    nobody's an error. Single precision (`embed`, `vectors`) tells 16,777,216 categories apart, `transform` any number.
    What holds for all encoders stands at `EncodingMethod`.
    """

    summary: ClassVar[str] = "tables: each category a whole number, 0, 1, 2, …"
    code: ClassVar[str] = "label"
