"""Ordinal encoding: each category is an integer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import CategoryEncoding


@dataclass(frozen=True, kw_only=True)
class Ordinal(CategoryEncoding):
    """Encode categories as integers from 0; one feature per column.

    A missing category is NaN, and so is an unseen one with `unseen="missing"`. The inverse of NaN is missing; the
    inverse of an unused number is an error. float32 (`embed`, `vectors`) distinguishes 16,777,216 categories,
    `transform` has no such limit. `EncodingMethod` describes what all encoders have in common.
    """

    summary: ClassVar[str] = "tables: each category as an integer, 0, 1, 2, …"
    code: ClassVar[str] = "label"
