"""The common base and the model of the table encoders: one-hot, ordinal, binary, standardize and min–max."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.vectors import Vectors
from firth.data.table import Table
from firth.data.vocabulary import HasVocabulary, Vocabulary
from firth.tables.column_codes import MISSING, UNSEEN, CategoryColumn, Column, DroppedColumn, NumberColumn, number_of
from firth.tables.table_model import Coded, TableModel, matched

TABLE_BYTES = 1 << 30  # largest table of category codes that `tables` lists


class Plan(NamedTuple):
    """The code of categorical and numeric columns ("drop" = none), and its settings."""

    category: str
    numeric: str
    order: str = "appearance"
    low: float = 0.0
    high: float = 1.0


class EncoderModel(TableModel):
    """Fitted encoders of the columns of a table: `transform`, `inverse`, `feature_names`.

    `tables` has the codes of the categories of each encoded column; `vectors` is the first of these tables.
    """

    method: EncodingMethod

    def __init__(self, method: EncodingMethod, columns: Sequence[Column], training: Mapping[str, Any]) -> None:
        self.method, self.columns, self.training = method, list(columns), training
        self.names = [column.name for column in columns]

    def features(self, names: Sequence[str]) -> list[str]:
        """Return feature names such as color=red, color_0 (a bit) or age."""
        return [f for column, name in zip(self.columns, names, strict=True) for f in column.features(name)]

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(column.width for column in self.columns)

    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        """Return the features of `data`, one row per table row."""
        table = self.open(data)
        unseen = np.zeros(len(table), np.int64)
        if sparse:
            return Coded(self._sparse(table, unseen), unseen)
        try:
            matrix = np.zeros((len(table), self.width), order="F")  # filled column by column
        except MemoryError:
            raise FirthError(
                "out_of_memory",
                "A {n_rows:,} × {width:,} matrix does not fit into memory. Use OneHot(sparse=True) or Binary.",
                n_rows=len(table),
                width=self.width,
            ) from None
        for column, cells, offset in self._read(table, unseen):
            column.write(cells, matrix[:, offset : offset + column.width])
        return Coded(matrix, unseen)

    def _sparse(self, table: Table, unseen: NDArray[np.int64]) -> Any:
        from scipy.sparse import csr_matrix, hstack

        blocks = [csr_matrix((len(table), 0))]
        for column, cells, _ in self._read(table, unseen):
            if column.code == "onehot":
                present = cells >= 0
                starts = np.concatenate([[0], np.cumsum(present)])
                block = csr_matrix((np.ones(starts[-1]), cells[present], starts), shape=(len(table), column.width))
            else:
                dense = np.zeros((len(table), column.width))
                column.write(cells, dense)
                block = csr_matrix(dense)
            blocks.append(block)
        return hstack(blocks, format="csr")

    def _read(
        self, table: Table, unseen: NDArray[np.int64]
    ) -> Iterator[tuple[CategoryColumn | NumberColumn, NDArray[Any], int]]:
        """Yield each encoded column with its cells and the offset of its first feature; update the counts `unseen`."""
        offset = 0
        for column in self.columns:
            if isinstance(column, DroppedColumn):
                continue
            cells: NDArray[Any] = column.read(table)
            if isinstance(column, CategoryColumn):
                self._check_unseen(column, table, cells)
                unseen += cells == UNSEEN
                missing = cells == MISSING
            else:
                missing = np.isnan(cells)
            refuse_missing(self.method.missing, missing, table, column.name)
            if isinstance(column, NumberColumn) and self.method.missing == "mean":
                cells = np.where(missing, column.mean, cells)
            yield column, cells, offset
            offset += column.width

    def _check_unseen(self, column: CategoryColumn, table: Table, ids: NDArray[np.int64]) -> None:
        rows = np.flatnonzero(ids == UNSEEN)
        if len(rows) and self.method.unseen == "error":
            value = table.slice(int(rows[0]), int(rows[0]) + 1).categories(column.name)[0]
            examples = ", ".join(map(repr, column.levels[:3])) or "none"
            raise FirthError(
                "unknown_category",
                "Column {name!r}, row {row} has the category {value!r}, which is not one of the {n_levels:,} of the "
                "training data ({examples}, …). Fit with it, or set unseen='missing' to encode it as missing.",
                name=column.name,
                row=table.row_number(rows[0]),
                value=value,
                n_levels=len(column.levels),
                examples=examples,
            )

    def open(self, data: Any) -> Table:
        """Return `data` as a table that has this model's columns."""
        texts = [c.name for c in self.columns if isinstance(c, CategoryColumn) and c.type == "text"]
        is_file = isinstance(data, (str, os.PathLike))  # keep text columns as text: 007 must not become 7
        table = Table(data, categories=texts if is_file else ())
        return matched(table, self.names, [c.name for c in self.columns if not isinstance(c, DroppedColumn)])

    def inverse(self, matrix: Any) -> Table:
        """Return the table whose `transform` is `matrix`, without dropped columns.

        In a one-hot code the largest number counts; if none is above 0, the category is missing. An unused ordinal or
        binary code is refused. Unseen categories become missing, and numbers become floats.
        """
        codes = matrix.tocsc() if hasattr(matrix, "tocsc") else np.asarray(matrix)
        if codes.ndim != 2 or codes.shape[1] != self.width:
            raise FirthError(
                "shape_mismatch",
                "inverse needs a matrix with {width} columns; got shape {got}.",
                width=self.width,
                got=codes.shape,
            )
        columns, offset = {}, 0
        for column in self.columns:
            block = codes[:, offset : offset + column.width]
            offset += column.width
            if isinstance(column, CategoryColumn):
                columns[column.name] = column.values(column.ids_of(block))
            elif isinstance(column, NumberColumn):
                columns[column.name] = column.values(block)
        return Table(columns)

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        """The codes of the categories, by column; a column whose codes exceed 1 GiB is left out."""
        tables = {}
        for column in self.columns:
            if isinstance(column, CategoryColumn) and 4 * len(column.levels) * column.width <= TABLE_BYTES:
                codes = np.zeros((len(column.levels), column.width), np.float32)
                column.write(np.arange(len(column.levels)), codes)
                tables[column.name] = Vectors(
                    column.levels, codes, missing=f"column {column.name} has no such category"
                )
        return tables

    @property
    def vectors(self) -> Vectors:
        """The codes of the first categorical column."""
        nothing = Vectors([], np.zeros((0, 0)), missing="the model has no categorical column whose codes are listed")
        return next(iter(self.tables.values()), nothing)

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        return column_parts(self.columns)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> EncoderModel:
        """Return the saved model, checked."""
        assert isinstance(method, EncodingMethod)
        return cls(method, list(stored_columns(parts)), training)

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.columns)} columns → {self.width:,} features"


def column_parts(columns: Sequence[Column]) -> Parts:
    """Return columns as stored: the parameters of numeric columns, and a document per column."""
    numbers = [column for column in columns if isinstance(column, NumberColumn)]
    parameters = [[getattr(column, parameter) for parameter in NumberColumn.PARAMETERS] for column in numbers]
    documents = [
        {"name": column.name, "code": column.code}
        | ({"type": column.type, "categories": list(column.levels)} if isinstance(column, CategoryColumn) else {})
        for column in columns
    ]
    return Parts(
        {"numbers": np.array(parameters, np.float64).reshape(-1, len(NumberColumn.PARAMETERS))}, {"columns": documents}
    )


def stored_columns(parts: Parts) -> Iterator[Column]:
    """Yield the columns of a saved model, checked."""
    parameters, documents = parts.arrays["numbers"], parts.documents["columns"]
    damaged = FirthError(
        "damaged_model",
        "{name}.json must give a name and a code for each column, and numbers the parameters of numeric columns.",
        name="columns",
    )
    if parameters.ndim != 2 or parameters.shape[1] != len(NumberColumn.PARAMETERS) or not isinstance(documents, list):
        raise damaged
    rows = iter(parameters.tolist())
    for document in documents:
        fields = document if isinstance(document, dict) else {}
        name, code, type, levels = (fields.get(key, "") for key in ("name", "code", "type", "categories"))
        if not isinstance(name, str):
            raise damaged
        if code in DroppedColumn.CODES:
            yield DroppedColumn(name)
        elif code in NumberColumn.CODES:
            row = next(rows, None)
            if row is None or not np.isfinite(row[1:]).all() or row[2] == 0 or row[3] == row[4]:
                raise damaged
            yield NumberColumn(name, code, *row)
        elif code in CategoryColumn.CODES and type in CategoryColumn.TYPES and are_levels(levels, type):
            yield CategoryColumn(name, code, type, levels)
        else:
            raise damaged


def are_levels(levels: Any, type: str) -> bool:
    """Return whether these are valid categories of a column."""
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        return False
    try:
        return len(set(map(number_of, levels) if type == "number" else levels)) == len(levels)
    except ValueError:
        return False


def refuse_missing(policy: str, is_missing: NDArray[np.bool_], table: Table, name: str) -> None:
    """Refuse missing cells if the option `missing` is error."""
    if policy == "error" and is_missing.any():
        row = table.row_number(int(is_missing.argmax()))
        raise FirthError(
            "missing_value",
            "Column {name!r}, row {row} is missing. Fill it, or set missing='keep' or missing='mean'.",
            name=name,
            row=row,
        )


@dataclass(frozen=True, kw_only=True)
class EncodingMethod(Method):
    """Encode each column of a table by its type.

    - Missing cells: see `missing`. A missing category is all zeros (onehot, binary) or NaN (label).
    - Unseen categories, those not in the data of `fit`: see `unseen`.
    - Infinite numbers are refused, in `fit` and later. Replace them or mark them as missing.
    - A column without any values is numeric and stays NaN. A table without rows or columns cannot be fitted; later, a
      table without rows gives a matrix without rows.
    - Later tables must have the columns of the first one, by name; additional columns are ignored. Columns without
      names (arrays, lists) are matched by position, and their number must be equal.
    """

    limits: ClassVar[tuple[str, ...]] = (
        "Categories and ranges of numbers are those of the training data; unseen categories follow the option unseen.",
        "Columns are encoded one by one, without the relations between them.",
    )
    data = Table
    model: ClassVar[type[EncoderModel]] = EncoderModel

    missing: str = option(
        "keep",
        "missing cells: keep (numbers stay NaN, categories get the code of missing), mean (numbers become the mean of "
        "the column) or error",
        choices=("keep", "mean", "error"),
    )
    unseen: str = option(
        "error",
        "categories not in the training data: raise an error, or encode as missing",
        choices=("error", "missing"),
    )

    @abstractmethod
    def plan(self) -> Plan:
        """Return the codes of the columns."""

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> EncoderModel:
        """Fit the codes of a `Table` (or of anything it accepts), a `Vocabulary` or `Tokens`."""
        if start is not None:
            raise FirthError(
                "unsupported_start",
                "{method} cannot continue from a model. Fit all data at once.",
                method=type(self).__name__,
            )
        words = data.vocabulary if isinstance(data, HasVocabulary) else data
        if isinstance(words, Vocabulary):
            return self._model([CategoryColumn("word", self.plan().category, "text", words.tokens)], len(words))
        table = Table(data)
        if not len(table):
            raise FirthError(
                "too_few",
                "{method} needs at least one row and one column; got {got}.",
                method=type(self).__name__,
                got=table,
            )
        return self._model([self._column(table, name) for name in table.names], len(table))

    def _column(self, table: Table, name: str) -> Column:
        plan = self.plan()
        code = plan.category if table.kind(name) == "category" else plan.numeric
        if code in DroppedColumn.CODES:
            return DroppedColumn(name)
        if code in CategoryColumn.CODES:
            refuse_missing(self.missing, table.codes(name).ids < 0, table, name)
            return CategoryColumn.fitted(table, name, code, plan.order)
        column = NumberColumn.fitted(table, name, code, plan.low, plan.high)
        refuse_missing(self.missing, np.isnan(table.numbers(name)), table, name)
        if self.missing == "mean" and np.isnan(column.mean):
            raise FirthError(
                "empty_data", "Column {name!r} has no values, so it has no mean. Leave the column out.", name=name
            )
        return column

    def _model(self, columns: Sequence[Column], rows: int) -> EncoderModel:
        features = sum(column.width for column in columns)
        return EncoderModel(self, columns, {"rows": rows, "columns": len(columns), "features": features})


@dataclass(frozen=True, kw_only=True)
class CategoryEncoding(EncodingMethod):
    """An encoding of categorical columns, with the option `numeric` for numeric columns."""

    code: ClassVar[str]

    order: str = option(
        "appearance", "order of the categories: by first appearance, or sorted", choices=("appearance", "sorted")
    )
    numeric: str = option(
        "keep",
        "numeric columns: keep, scale (standardize, normalize), encode as categories, or drop",
        choices=("keep", "standardize", "normalize", "encode", "drop"),
    )

    def plan(self) -> Plan:
        """Return the codes of the columns."""
        return Plan(self.code, self.code if self.numeric == "encode" else self.numeric, self.order)


@dataclass(frozen=True, kw_only=True)
class NumberEncoding(EncodingMethod):
    """A scaling of numeric columns, with the option `categorical` for categorical columns."""

    categorical: str = option(
        "onehot", "code of categorical columns, or drop", choices=("onehot", "label", "binary", "drop")
    )
