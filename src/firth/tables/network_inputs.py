"""Conversion of tables to network inputs (scaled numbers and category ids) and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Parts
from firth.core.vectors import Vectors
from firth.data.table import Table
from firth.tables.column_codes import CategoryColumn, Column, DroppedColumn, NumberColumn
from firth.tables.encoder_model import column_parts, stored_columns
from firth.tables.table_model import matched

Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """Table rows as network inputs."""

    numbers: Floats  # (rows, numeric columns); NaN = missing
    ids: NDArray[np.int64]  # (rows, categorical columns); −1 = missing or unseen
    unseen: NDArray[np.int64]  # (rows,): number of unseen categories


class Limits(NamedTuple):
    """The range of a numeric column in the training data, and whether all its numbers were integers."""

    low: float
    high: float
    integral: bool


@dataclass(frozen=True)
class Layout:
    """The fitted columns of a table, in its order. Columns without values are dropped."""

    columns: Sequence[Column]
    limits: Sequence[Limits]  # of the numeric columns
    gaps: Sequence[int]  # numbers of the numeric columns that had missing cells

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.columns]

    @property
    def numbers(self) -> list[NumberColumn]:
        """The numeric columns."""
        return [column for column in self.columns if isinstance(column, NumberColumn)]

    @property
    def categories(self) -> list[CategoryColumn]:
        """The categorical columns."""
        return [column for column in self.columns if isinstance(column, CategoryColumn)]

    @property
    def shared_scale(self) -> bool:
        """Whether all numeric columns have the same scale, as pixels do."""
        scales = {column.scale for column in self.numbers if column.code == "standardize"}
        return len(self.numbers) > 1 and len(scales) == 1

    @property
    def varies(self) -> tuple[bool, ...]:
        """Whether each numeric column varies."""
        return tuple(limits.low < limits.high for limits in self.limits)

    @classmethod
    def fitted(cls, table: Table, numeric: str) -> Layout:
        """Fit scales and categories of the columns; `numeric` is an option of `CompressingOptions`."""
        columns, limits, gaps = list[Column](), list[Limits](), list[int]()
        for name in table.names:
            if table.kind(name) == "category":
                columns.append(CategoryColumn.fitted(table, name, "onehot", "appearance"))
                continue
            column = NumberColumn.fitted(table, name, "keep" if numeric == "keep" else "standardize", 0.0, 1.0)
            numbers = table.numbers(name)
            missing = np.isnan(numbers)
            numbers = numbers[~missing]
            if not len(numbers):
                columns.append(DroppedColumn(name))
                continue
            if missing.any():
                gaps.append(len(limits))
            limits.append(
                Limits(float(numbers.min()), float(numbers.max()), bool((np.floor(numbers) == numbers).all()))
            )
            columns.append(column)
        layout = cls(columns, limits, gaps)
        return layout.with_shared_scale() if numeric == "common" else layout

    def with_shared_scale(self) -> Layout:
        """Return this layout with one scale for all numeric columns, the root of their mean variance."""
        varying = [column.scale**2 for column, varies in zip(self.numbers, self.varies, strict=True) if varies]
        scale = float(np.sqrt(np.mean(varying))) if varying else 1.0
        columns = [
            NumberColumn(column.name, column.code, column.mean, column.shift, scale)
            if isinstance(column, NumberColumn)
            else column
            for column in self.columns
        ]
        return Layout(columns, self.limits, self.gaps)

    def open(self, data: Any) -> Table:
        """Return `data` as a table with these columns."""
        if isinstance(data, Vectors):
            data = finite(data)
        texts = [column.name for column in self.categories if column.type == "text"]
        table = Table(data, categories=texts if isinstance(data, (str, os.PathLike)) else ())
        return matched(
            table, self.names, [column.name for column in self.columns if not isinstance(column, DroppedColumn)]
        )

    def read(self, table: Table) -> Cells:
        """Return the cells of a table as network inputs."""
        numbers = np.empty((len(table), len(self.numbers)))
        for position, column in enumerate(self.numbers):
            column.write(column.read(table), numbers[:, position : position + 1])
        ids = np.empty((len(table), len(self.categories)), np.int64)
        for position, category in enumerate(self.categories):
            ids[:, position] = category.read(table)
        return Cells(numbers, np.maximum(ids, -1), (ids < -1).sum(axis=1))

    def table(self, numbers: Floats, ids: NDArray[np.int64], *, like_data: bool = False) -> Table:
        """Return the table with these cells; `like_data` clips and rounds numbers as in the training data."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        positions = {column.name: position for position, column in enumerate(self.numbers)}
        positions |= {column.name: position for position, column in enumerate(self.categories)}
        for column in self.columns:
            position = positions.get(column.name, -1)
            if isinstance(column, NumberColumn):
                values = column.values(numbers[:, position : position + 1])
                columns[column.name] = clip_to_limits(values, self.limits[position]) if like_data else values
            elif isinstance(column, CategoryColumn):
                columns[column.name] = column.values(ids[:, position])
            else:
                columns[column.name] = pa.nulls(len(numbers))
        return Table(columns)

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        stored = column_parts(self.columns)
        limits = np.array(self.limits, np.float64).reshape(-1, len(Limits._fields))
        return Parts({**stored.arrays, "limits": limits, "gaps": np.array(self.gaps, np.int64)}, stored.documents)

    @classmethod
    def from_parts(cls, parts: Parts) -> Layout:
        """Return the saved layout, checked."""
        columns = list(stored_columns(parts))
        limits, gaps = parts.arrays["limits"], parts.arrays["gaps"]
        count = sum(isinstance(column, NumberColumn) for column in columns)
        if limits.shape != (count, len(Limits._fields)) or not np.isfinite(limits).all() or gaps.ndim != 1:
            raise FirthError("damaged_model", "{name} must have the limits of each numeric column.", name="limits")
        if len(gaps) and not (int(gaps.min()) >= 0 and int(gaps.max()) < count):
            raise FirthError("damaged_model", "{name} must contain numbers of numeric columns.", name="gaps")
        return cls(
            columns, [Limits(low, high, bool(integral)) for low, high, integral in limits.tolist()], gaps.tolist()
        )


def clip_to_limits(values: Any, limits: Limits) -> Any:
    """Clip numbers to the range of the training data, and round them if all of those were integers."""
    import pyarrow as pa

    clipped = np.clip(values.to_numpy(zero_copy_only=False), limits.low, limits.high)
    if limits.integral and max(abs(limits.low), abs(limits.high)) < 2**63:
        return pa.array(np.rint(clipped).astype(np.int64))
    return pa.array(clipped)


def finite(vectors: Vectors) -> NDArray[np.float32]:
    """Return the matrix of `vectors`; refuse NaN and infinity."""
    non_finite = np.flatnonzero(~np.isfinite(vectors.matrix).all(axis=1))
    if len(non_finite):
        raise FirthError(
            "non_finite",
            "The vector of {key!r} contains NaN or infinity. Leave such vectors out.",
            key=vectors.keys[non_finite[0]],
        )
    return vectors.matrix


def keys_of(table: Table, keys: str | Sequence[str] | None) -> list[str]:
    """Return the keys of rows: the values of a key column, the given keys, or row numbers from 1."""
    if keys is None:
        return [str(row + 1) for row in range(len(table))]
    row_keys: Sequence[str | None] = table.categories(keys) if isinstance(keys, str) else keys
    if len(row_keys) != len(table):
        raise FirthError(
            "shape_mismatch",
            "keys must have one key per row; got {got:,} keys for {n_rows:,} rows.",
            got=len(row_keys),
            n_rows=len(table),
        )
    present_keys = [key for key in row_keys if key is not None]
    if len(present_keys) < len(row_keys):
        raise FirthError("malformed_data", "Row {row} has no key.", row=table.row_number(row_keys.index(None)))
    return present_keys


def describe(names: Sequence[str]) -> str:
    """Return a short list such as "'a', 'b', 'c' and 4 more"."""
    first_names = ", ".join(map(repr, names[:3]))
    return first_names if len(names) <= 3 else f"{first_names} and {len(names) - 3} more"
