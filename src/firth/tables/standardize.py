"""Standardize: z-scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.tables.encoder_model import NumberEncoding, Plan


@dataclass(frozen=True, kw_only=True)
class Standardize(NumberEncoding):
    """z = (x − μ) / σ: every column of numbers gets mean 0 and standard deviation 1.

    σ is the root of the mean squared deviation (divided by n, not n − 1). A constant column, and a table of one row,
    become 0; later numbers x of such a column x − μ. μ and σ are those of the cells that are not missing. What holds
    for all encoders stands at `EncodingMethod`.
    """

    summary: ClassVar[str] = "tables: numbers to mean 0 and standard deviation 1 (z-scores)"

    def plan(self) -> Plan:
        return Plan(self.categorical, "standardize")
