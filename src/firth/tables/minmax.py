"""Min–max scaling to a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.errors import FirthError
from firth.core.options import option
from firth.tables.encoder_model import NumberEncoding, Plan


@dataclass(frozen=True, kw_only=True)
class MinMax(NumberEncoding):
    """Scale numeric columns to the range from `low` to `high`: low + (high − low) · (x − min) / (max − min).

    A constant column becomes `low`, and so does a table of one row. Later numbers outside min and max are not clipped.
    `EncodingMethod` describes what all encoders have in common.
    """

    summary: ClassVar[str] = "tables: numbers scaled to a range, such as 0 to 1 (min–max)"

    low: float = option(0.0, "lower end of the range", low=-1e9, high=1e9)
    high: float = option(1.0, "upper end of the range", low=-1e9, high=1e9)

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
        """Return the codes of the columns."""
        return Plan(self.categorical, "normalize", low=self.low, high=self.high)
