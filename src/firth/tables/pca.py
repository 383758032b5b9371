"""PCA: principal component analysis of tables and vectors (Pearson 1901; Hotelling 1933)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.components import principal_components
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_finite, check_texts_of
from firth.core.vectors import Vectors
from firth.data.table import Table
from firth.tables.table_model import Coded, TableModel, matched, stored_points

Array = NDArray[np.float64]


class PCAModel(TableModel):
    """`transform` projects rows on the components, `inverse` maps projections back to rows.

    `mean` has the column means, `components` the directions (dim × columns), `variances` the variance along each
    direction (divided by rows − 1) and `explained_variance` its share of the total. `tables["columns"]` has the
    loadings of each column. If the model was fitted on `Vectors`, `tables["points"]`, the main table, has their
    projections.
    """

    method: PCA
    ordered = True  # dimensions are ordered by variance

    def __init__(
        self,
        method: PCA,
        names: Sequence[str],
        arrays: Mapping[str, Array],
        training: Mapping[str, Any],
        points: Vectors | None = None,
    ) -> None:
        self.method, self.names, self.training, self.points = method, list(names), training, points
        self.mean, self.components, self.variances, self.explained_variance = (
            arrays[name] for name in ("mean", "components", "variances", "explained")
        )

    def features(self, names: Sequence[str]) -> list[str]:
        """Return pca0, pca1, …, regardless of the column names."""
        return [f"pca{number}" for number in range(len(self.components))]

    def open(self, data: Any) -> Table:
        """Return `data` as a table that has this model's columns."""
        return matched(Table(data.matrix if isinstance(data, Vectors) else data), self.names, self.names)

    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        """Return (x − mean) · componentsᵀ for each row x of a table, an array, or vectors."""
        rows = numeric_rows(self.open(data), self.names)
        return Coded((rows - self.mean) @ self.components.T, np.zeros(len(rows), np.int64))

    def inverse(self, matrix: Any) -> Table:
        """Return the rows of these projections, without the components that were left out."""
        points = np.asarray(matrix, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.components):
            raise FirthError(
                "shape_mismatch",
                "inverse needs a matrix with {n_components} columns; got shape {got}.",
                n_components=len(self.components),
                got=points.shape,
            )
        rows = points @ self.components + self.mean
        return Table({name: rows[:, position] for position, name in enumerate(self.names)})

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The loadings of the columns and, if fitted on vectors, their projections."""
        columns = Vectors(self.names, self.components.T, missing="the table has no such column")
        return {"columns": columns} if self.points is None else {"points": self.points, "columns": columns}

    @property
    def vectors(self) -> Vectors:
        """The first of `tables`."""
        return next(iter(self.tables.values()))

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        arrays: dict[str, NDArray[Any]] = {
            "mean": self.mean,
            "components": self.components,
            "variances": self.variances,
            "explained": self.explained_variance,
        }
        documents: dict[str, Any] = {"columns": self.names}
        if self.points is not None:
            arrays["points"] = self.points.matrix
            documents["keys"] = list(self.points.keys)
        return Parts(arrays, documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> PCAModel:
        """Return the saved model, checked."""
        assert isinstance(method, PCA)
        sizes = check_arrays(
            parts.arrays,
            components="float dim columns",
            mean="float columns",
            variances="float dim",
            explained="float dim",
        )
        check_finite({name: parts.arrays[name] for name in ("components", "mean", "variances", "explained")})
        names = check_texts_of(parts.documents["columns"], "columns.json", sizes["columns"])
        return cls(method, names, parts.arrays, training, stored_points(parts, sizes["dim"]))

    def __repr__(self) -> str:
        share = f"{self.explained_variance.sum():.1%} of the variance"
        return f"PCA model: {len(self.names)} columns → {len(self.components)} components, {share}"


@dataclass(frozen=True, kw_only=True)
class PCA(Method):
    """Project rows on the `dim` orthogonal directions of largest variance, computed exactly by SVD.

    The data is a numeric `Table` (or anything it accepts) or `Vectors`. Missing and infinite cells, categorical columns
    (encode them first, with `OneHot`), fewer than 2 rows, and more components than the smaller of rows and columns are
    refused. Constant columns have loadings of 0; if nothing varies, all variances are 0. The largest loading of each
    direction is positive.
    """

    limits: ClassVar[tuple[str, ...]] = (
        "Directions are linear, and columns of large scale or with outliers dominate them.",
        "Missing values and categories are refused.",
    )
    summary: ClassVar[str] = "tables and vectors: projection on the directions of largest variance"
    data = Table
    model: ClassVar[type[PCAModel]] = PCAModel
    min_rows: ClassVar[int] = 2

    dim: int | None = option(None, "number of components; none = all", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> PCAModel:
        """Compute the principal components of a table or vectors."""
        if start is not None:
            raise FirthError(
                "unsupported_start", "{method} cannot continue from a model. Fit all data at once.", method="PCA"
            )
        table = Table(data.matrix if isinstance(data, Vectors) else data)
        rows, names = numeric_rows(table, table.names), table.names
        max_components = min(rows.shape)
        if self.dim is not None and self.dim > max_components and len(rows) > 1:
            raise FirthError(
                "invalid_value",
                "{option} must be at most {limit}, the smaller of {n_rows:,} rows and {n_columns:,} columns; "
                "got {got}.",
                option="PCA.dim",
                limit=max_components,
                n_rows=rows.shape[0],
                n_columns=rows.shape[1],
                got=self.dim,
            )
        components = principal_components(rows)
        dim = self.dim or max_components
        arrays = {
            "mean": components.mean,
            "components": components.directions[:dim],
            "variances": components.variances[:dim],
            "explained": components.variances[:dim] / (components.variances.sum() or 1.0),
        }
        points = Vectors(data.keys, components.points(rows, dim)) if isinstance(data, Vectors) else None
        training = {"rows": len(rows), "columns": len(names), "features": dim, "explained": arrays["explained"].sum()}
        return PCAModel(self, names, arrays, training, points)


def numeric_rows(table: Table, names: Sequence[str]) -> Array:
    """Return the columns as a matrix (rows × names); refuse categorical, missing and infinite cells."""
    rows = np.empty((len(table), len(names)), order="F")
    for position, name in enumerate(names):
        if table.kind(name) == "category":
            raise FirthError(
                "invalid_type",
                "PCA needs numeric columns; column {name!r} is categorical. Encode it first (OneHot).",
                name=name,
            )
        rows[:, position] = table.numbers(name)
        non_finite = np.flatnonzero(~np.isfinite(rows[:, position]))
        if len(non_finite):
            raise FirthError(
                "non_finite",
                "PCA needs finite numbers; column {name!r}, row {row} is {got}. Fill it (Standardize(missing='mean')) "
                "or leave it out.",
                name=name,
                row=table.row_number(non_finite[0]),
                got=float(rows[non_finite[0], position]),
            )
    return rows
