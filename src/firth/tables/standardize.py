"""Standardize: z-scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import NumberEncoding, Plan


@dataclass(frozen=True, kw_only=True)
class Standardize(NumberEncoding):
    """Scale numeric columns to mean 0 and standard deviation 1: z = (x − μ) / σ.

    μ and σ are computed over the non-missing cells, and σ divides by n, not n − 1. A constant column becomes 0, and so
    does a table of one row; later numbers x in such a column become x − μ. `EncodingMethod` describes what all encoders
    have in common.
    """

    summary: ClassVar[str] = "tables: numbers scaled to mean 0 and standard deviation 1 (z-scores)"

    def plan(self) -> Plan:
        """Return the codes of the columns."""
        return Plan(self.categorical, "standardize")
