"""`TableModel`: the base class of models of tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Model, Parts
from firth.core.stored import check_arrays, check_texts_of
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.data.table import Table


class Coded(NamedTuple):
    """An encoded table, with the number of unseen categories in each row."""

    matrix: Any  # an array of float64, or a scipy.sparse.csr_matrix
    unseen: NDArray[np.int64]


class Errors(NamedTuple):
    """Reconstruction errors: (x − x̂)² of numbers, in units of the column's scale, and −log p of categories."""

    columns: list[str]
    cells: NDArray[np.float64]  # (rows, columns); 0 for missing cells

    @property
    def rows(self) -> NDArray[np.float64]:
        """The mean error of each row, which is large for outliers."""
        means: NDArray[np.float64] = self.cells.mean(axis=1)
        return means

    def outliers(self, k: int = 10) -> list[tuple[int, float, str]]:
        """Return the `k` rows with the largest errors: row number, error, and the column with the largest error."""
        order = np.argsort(-self.rows, kind="stable")[:k]
        return [(int(row), float(self.rows[row]), self.columns[int(self.cells[row].argmax())]) for row in order]


@runtime_checkable
class MeasuresErrors(Protocol):
    """Measures how well it reconstructs the cells of a table."""

    def open(self, data: Any) -> Table:
        """Return `data` as a table that has this model's columns."""

    def errors(self, data: Any) -> Errors:
        """Return the reconstruction errors of the rows."""

    def reconstruct(self, inputs: Any) -> Table | Vectors:
        """Encode and decode `inputs`."""


class TableModel(Model):
    """A model that encodes the rows of a table as numbers: `transform`, `inverse`, `feature_names`."""

    names: Sequence[str]  # of the columns

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns that `transform` returns."""
        return self.features(self.names)

    @abstractmethod
    def features(self, names: Sequence[str]) -> list[str]:
        """Return the feature names of a table with these column names."""

    @abstractmethod
    def open(self, data: Any) -> Table:
        """Return `data` (a `Table`, or anything it accepts) as a table that has this model's columns."""

    @abstractmethod
    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        """Return `data` as numbers, one row per table row."""

    @abstractmethod
    def inverse(self, matrix: Any) -> Table:
        """Return the table that a matrix encodes."""

    def transform(self, data: Any) -> Any:
        """Return one float64 row per row of `data`: an array, or a `scipy.sparse.csr_matrix` (option `sparse`)."""
        return self.coded(data, sparse=self.method.options().get("sparse", False)).matrix

    def reconstruct(self, inputs: Any) -> Table | Vectors:
        """Encode and decode `inputs`; return a table, or vectors if `inputs` are vectors."""
        table = self.inverse(self.coded(inputs).matrix)
        if not isinstance(inputs, Vectors):
            return table
        return Vectors(inputs.keys, np.stack([table.numbers(name) for name in table.names], axis=1))

    def embed(self, inputs: Any, *, normalize: bool = False) -> Matrix:
        """Return `transform` as dense float32, one row per row of a table, or of an iterator over rows.

        `normalize` scales the rows to length 1; zero rows stay zero.
        """
        rows = list(inputs) if isinstance(inputs, Iterator) else inputs
        matrix = single_precision(self.coded(rows).matrix)
        return unit_rows(matrix) if normalize else matrix


def stored_points(parts: Parts, dim: int) -> Vectors | None:
    """Return the stored codes of the vectors that a model was fitted on, if any; keys are read on first use."""
    if "points" not in parts.arrays:
        return None
    check_arrays(parts.arrays, points=f"float rows {dim}")

    def keys() -> list[str]:
        with parts.reading():
            return check_texts_of(parts.documents["keys"], "keys.json")

    return Vectors(keys, parts.arrays["points"])


def matched(table: Table, names: Sequence[str], needed: Sequence[str]) -> Table:
    """Return the table, checked for the columns `needed` out of `names`.

    Columns without names are matched by position: their number must be equal, and they are renamed.
    """
    if not table.named and not table.names:  # an empty list
        return Table(dict.fromkeys(names, ()))
    if not table.named:
        if len(table.names) != len(names):
            raise FirthError(
                "shape_mismatch",
                "The model has {expected} columns; got {got} columns without names.",
                expected=len(names),
                got=len(table.names),
            )
        return table.renamed(names)
    missing = [name for name in needed if name not in table.names]
    if missing:
        raise FirthError(
            "unknown_column",
            "The table has no column {missing!r}; it has {available}.",
            missing=missing[0],
            available=", ".join(table.names) or "none",
        )
    return table


def single_precision(matrix: NDArray[np.float64]) -> Matrix:
    """Return the matrix as float32; refuse numbers that are too large for it."""
    with np.errstate(over="ignore"):
        single = matrix.astype(np.float32, order="C")
    overflow = np.isinf(single)
    if overflow.any():
        row, column = (int(indices[0]) for indices in np.nonzero(overflow))
        raise FirthError(
            "out_of_range",
            "Row {row:,} contains {got:g}, which is too large for float32. Use transform, or scale the numbers "
            "(numeric='standardize').",
            row=row + 1,
            got=matrix[row, column],
        )
    return single
