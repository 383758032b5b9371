"""`TableModel`: what all models of tables can do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Model, Parts
from firth.core.stored import check_arrays, check_texts_of
from firth.core.vectors import Matrix, Vectors
from firth.data.table import Table


class Coded(NamedTuple):
    """A table as numbers, with how many of each row's categories `fit` had not met."""

    matrix: Any  # an array of float64, or a scipy.sparse.csr_matrix
    unseen: NDArray[np.int64]


class TableModel(Model):
    """Turns the rows of a table into rows of numbers: `transform`, `inverse`, `feature_names`."""

    names: Sequence[str]  # the table's columns

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns that `transform` gives."""
        return self.features(self.names)

    @abstractmethod
    def features(self, names: Sequence[str]) -> list[str]:
        """`feature_names`, if the table's columns were called so."""

    @abstractmethod
    def open(self, data: Any) -> Table:
        """`data` (a `Table`, or what one can be made of) as a table, checked for this model's columns."""

    @abstractmethod
    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        """`data` as numbers, one row a row."""

    @abstractmethod
    def inverse(self, matrix: Any) -> Table:
        """The table that has these numbers."""

    def transform(self, data: Any) -> Any:
        """One row of float64 a row of `data`: an array, or a `scipy.sparse.csr_matrix` where the method says sparse."""
        return self.coded(data, sparse=getattr(self.method, "sparse", False)).matrix

    def reconstruct(self, inputs: Any) -> Table | Vectors:
        """What is left of `inputs` when only their codes are known: a table, or vectors of vectors."""
        table = self.inverse(self.coded(inputs).matrix)
        if not isinstance(inputs, Vectors):
            return table
        return Vectors(inputs.keys, np.stack([table.numbers(name) for name in table.names], axis=1))

    def embed(self, inputs: Any) -> Matrix:
        """`transform` as float32, never sparse."""
        return single_precision(self.coded(inputs).matrix)


def stored_points(parts: Parts, dim: int) -> Vectors | None:
    """The codes of the rows that a model was fitted on, where it keeps them; their keys are read at the first use."""
    if "points" not in parts.arrays:
        return None
    check_arrays(parts.arrays, points=f"float rows {dim}")

    def keys() -> list[str]:
        with parts.reading():
            return check_texts_of(parts.documents["keys"], "keys.json")

    return Vectors(keys, parts.arrays["points"])


def matched(table: Table, names: Sequence[str], needed: Sequence[str]) -> Table:
    """The table, which must have the columns `needed` out of `names`. Columns without names of their own are told by
    their place: there must be as many, and they get these names."""
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
    """float32; refuses numbers that are too large for it."""
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
