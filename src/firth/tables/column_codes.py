"""The columns of an encoded table: encoding of values as numbers, and the inverse.

`onehot`: category i of n is the i-th unit vector. `label`: it is the integer i, from 0. `binary`: it is i + 1 in base
2, highest bit first; 0 means missing. Numbers are scaled linearly, low + (high − low) · (x − shift) / scale: for
`standardize` shift and scale are the mean and the standard deviation, for `normalize` the minimum and the range, for
`keep` 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.data.table import Table, is_whole_text

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
MISSING, UNSEEN = -1, -2  # ids of cells without a known category


@dataclass(frozen=True)
class DroppedColumn:
    """A column that is left out: it has no features and no inverse."""

    CODES: ClassVar[tuple[str, ...]] = ("drop",)

    name: str
    code: str = "drop"
    width: ClassVar[int] = 0

    def features(self, name: str) -> list[str]:
        """Return no names."""
        return []


@dataclass(frozen=True)
class CategoryColumn:
    """A categorical column; `type` is the type of its values: text, boolean or number."""

    CODES: ClassVar[tuple[str, ...]] = ("onehot", "label", "binary")
    TYPES: ClassVar[tuple[str, ...]] = ("text", "boolean", "number")

    name: str
    code: str
    type: str
    levels: Sequence[str]

    @classmethod
    def fitted(cls, table: Table, name: str, code: str, order: str) -> CategoryColumn:
        """Return the categories of a column in the given order."""
        levels, type = table.codes(name).levels, table.type(name)
        if order == "sorted":
            levels = sorted(levels, key=number_of if type == "number" else None)
        return cls(name, code, type, levels)

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each category."""
        return {level: id for id, level in enumerate(self.levels)}

    @property
    def width(self) -> int:
        """The number of features."""
        return {"onehot": len(self.levels), "label": 1, "binary": len(self.levels).bit_length()}[self.code]

    def features(self, name: str) -> list[str]:
        """Return the names of the features of a column called `name`."""
        if self.code == "onehot":
            return [f"{name}={level}" for level in self.levels]
        return [name] if self.code == "label" else [f"{name}_{bit}" for bit in range(self.width)]

    def read(self, table: Table) -> Ids:
        """Return the category id of each row, or MISSING or UNSEEN."""
        ids, levels = table.codes(self.name)
        level_ids = [self.index.get(level, UNSEEN) for level in levels]
        return np.array([*level_ids, MISSING])[ids]  # id −1 selects the last entry

    def write(self, ids: Ids, out: NDArray[Any]) -> None:
        """Fill `out`, which is zero, with the features; ids below 0 are missing."""
        if self.code == "onehot":
            rows = np.flatnonzero(ids >= 0)
            out[rows, ids[rows]] = 1
        elif self.code == "label":
            out[:, 0] = np.where(ids < 0, np.nan, ids)
        else:
            bit_positions = np.arange(self.width)[::-1]
            out[:] = (np.maximum(ids + 1, 0)[:, None] >> bit_positions) & 1

    def ids_of(self, block: Any) -> Ids:
        """Return the category ids of features, the inverse of `write`.

        In a one-hot code the largest number counts, if it is above 0.
        """
        if self.code == "onehot":
            if not self.levels:
                return np.full(block.shape[0], MISSING)
            largest = block.max(axis=1)
            largest = largest.toarray() if hasattr(largest, "toarray") else largest
            return np.where(np.ravel(largest) > 0, np.ravel(block.argmax(axis=1)), MISSING)
        dense = block.toarray() if hasattr(block, "toarray") else block
        if self.code == "label":
            numbers, missing = dense[:, 0], np.isnan(dense[:, 0])
        else:
            numbers = np.where(dense == 1, 1.0, 0.0) @ (1 << np.arange(self.width)[::-1]) - 1
            numbers = np.where(np.isin(dense, (0, 1)).all(axis=1), numbers, np.nan)
            missing = numbers == MISSING
        invalid = np.flatnonzero(
            ~missing & ~((numbers >= 0) & (numbers < len(self.levels)) & (np.floor(numbers) == numbers))
        )
        if len(invalid):
            raise FirthError(
                "malformed_data",
                "Row {row:,} is not a valid code of column {name!r}, which has {n_levels:,} categories; got {got}.",
                row=invalid[0] + 1,
                name=self.name,
                n_levels=len(self.levels),
                got=dense[invalid[0]].tolist(),
            )
        return np.where(missing, MISSING, numbers).astype(np.int64)

    def values(self, ids: Ids) -> Any:
        """Return the categories of `ids` as an Arrow array."""
        import pyarrow as pa

        if self.type == "text":
            values = pa.array([*self.levels, None], pa.string())
        elif self.type == "boolean":
            values = pa.array([*(level == "true" for level in self.levels), None], pa.bool_())
        else:
            numbers = [number_of(level) for level in self.levels]
            integral = all(isinstance(number, int) and abs(number) < 2**63 for number in numbers)
            values = pa.array(
                [*(numbers if integral else map(float, numbers)), None], pa.int64() if integral else pa.float64()
            )
        return values.take(pa.array(np.where(ids < 0, len(self.levels), ids)))


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column and its linear scaling; `mean` can replace missing values."""

    CODES: ClassVar[tuple[str, ...]] = ("keep", "standardize", "normalize")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("mean", "shift", "scale", "low", "high")

    name: str
    code: str
    mean: float
    shift: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 1.0
    width: ClassVar[int] = 1

    @classmethod
    def fitted(cls, table: Table, name: str, code: str, low: float, high: float) -> NumberColumn:
        """Return the scaling of a column."""
        numbers = finite_numbers(table, name)
        missing = np.isnan(numbers)
        numbers = numbers[~missing] if missing.any() else numbers
        if not len(numbers):
            return cls(name, code, np.nan)
        smallest, largest = float(numbers.min()), float(numbers.max())
        if not np.isfinite(largest - smallest):
            raise FirthError(
                "out_of_range",
                "The range of column {name!r}, {smallest:g} to {largest:g}, is too large. Scale the column down first.",
                name=name,
                smallest=smallest,
                largest=largest,
            )
        extent = (largest - smallest) or 1.0  # constant columns become 0 (z-scores) or `low` (min–max)
        fractions = numbers - smallest
        fractions /= extent  # in [0, 1], so that squares neither overflow nor underflow
        mean = smallest + extent * float(fractions.mean())
        if code == "standardize":
            return cls(name, code, mean, mean, extent * float(fractions.std()) or 1.0)
        if code == "normalize":
            return cls(name, code, mean, smallest, extent, low, high)
        return cls(name, code, mean)

    def features(self, name: str) -> list[str]:
        """Return the name of the only feature."""
        return [name]

    def read(self, table: Table) -> Array:
        """Return the numbers of the column; NaN is missing."""
        return finite_numbers(table, self.name)

    def write(self, numbers: Array, out: NDArray[Any]) -> None:
        """Fill `out` with the scaled numbers."""
        codes = numbers - self.shift
        codes /= self.scale
        if self.code == "normalize":
            codes *= self.high - self.low
            codes += self.low
        out[:, 0] = codes

    def values(self, block: Any) -> Any:
        """Return the numbers of `block`, the inverse of `write`, as an Arrow array."""
        import pyarrow as pa

        codes = np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=np.float64)[:, 0]
        fractions = (codes - self.low) / (self.high - self.low)
        return pa.array(fractions * self.scale + self.shift, from_pandas=True)


Column = CategoryColumn | NumberColumn | DroppedColumn


def finite_numbers(table: Table, name: str) -> Array:
    """Return the numbers of a column; refuse infinity."""
    numbers = table.numbers(name)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise FirthError(
            "non_finite",
            "Column {name!r}, row {row} is infinite. Replace infinite numbers or mark them as missing.",
            name=name,
            row=table.row_number(infinite[0]),
        )
    return numbers


def number_of(text: str) -> int | float:
    """Parse a number; integers are exact."""
    return int(text) if is_whole_text(text) else float(text)
