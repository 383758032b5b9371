"""MinMax: min–max scaling to a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.errors import FirthError
from firth.core.options import option
from firth.tables.encoder_model import NumberEncoding, Plan


@dataclass(frozen=True, kw_only=True)
class MinMax(NumberEncoding):
    """low + (high − low) · (x − min) / (max − min): every column of numbers gets the range from `low` to `high`.

    A constant column, and a table of one row, become `low`. Later numbers beyond min and max go beyond the range in the
    same measure: nothing is cut. What holds for all encoders stands at `EncodingMethod`.
    """

    summary: ClassVar[str] = "tables: numbers to a range, such as 0 to 1 (min–max)"

    low: float = option(0.0, "what the smallest number becomes", low=-1e9, high=1e9)
    high: float = option(1.0, "what the largest number becomes", low=-1e9, high=1e9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise FirthError(
                "invalid_value",
                "{option} must be below high; got low={got:g} and high={high:g}.",
                option="MinMax.low",
                got=self.low,
                high=self.high,
            )

    def plan(self) -> Plan:
        return Plan(self.categorical, "normalize", low=self.low, high=self.high)
