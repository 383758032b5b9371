"""Binary: a category is its number in base 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class Binary(CategoryEncoding):
    """Categories are numbered from 1 on, and each bit of the number is a feature, the highest first.

    n categories take as many bits as n has: 3 take 2, 4 take 3. 0 is nobody's number: missing is all zeros, and so is
    unseen with `unseen="missing"`; the inverse of all zeros is missing, and of a number above n an error. What holds
    for all encoders stands at `EncodingMethod`.
    """

    summary: ClassVar[str] = "tables: each category its number in base 2, few features for many categories"
    code: ClassVar[str] = "binary"
