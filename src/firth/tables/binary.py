"""Binary encoding: each category is the binary code of its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class Binary(CategoryEncoding):
    """Number the categories from 1; each bit of the number is a feature, highest bit first.

    n categories need as many bits as n itself: 3 categories need 2 bits, 4 need 3. A missing category is all zeros, and
    so is an unseen one with `unseen="missing"`. The inverse of all zeros is missing; the inverse of a number above n is
    an error. `EncodingMethod` describes what all encoders have in common.
    """

    summary: ClassVar[str] = "tables: each category as a binary number; few features for many categories"
    code: ClassVar[str] = "binary"
