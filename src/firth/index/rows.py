"""Validation of what goes into an index: keys, vectors, attributes, and the model that computed the vectors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import ArrayLike

from firth.core.arguments import as_floats, check_choice
from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.train import model_hash
from firth.core.vectors import METRICS, Matrix
from firth.data.corpus import as_arrow
from firth.index.segment import KEY, MAX_DIM, TEXT
from firth.index.where import first_line


def check_space(name: str, dim: Any, metric: Any, dtype: Any, choices: Iterable[str]) -> None:
    """Validate the dimension, the metric and the storage dtype of a new index."""
    if type(dim) is not int or not 1 <= dim <= MAX_DIM:
        raise FirthError(
            "invalid_value",
            "{option} must be an integer from 1 to {most:,}; got {got:.80}.",
            option=f"{name}.dim",
            most=MAX_DIM,
            got=repr(dim),
        )
    check_choice(f"{name}.metric", metric, METRICS)
    check_choice(f"{name}.dtype", dtype, tuple(choices))


def check_json(values: Mapping[str, Any]) -> None:
    """Check that metadata can be stored as JSON."""
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FirthError("invalid_type", "Metadata must be JSON: {reason}.", reason=str(error)) from None


def is_key(key: object) -> bool:
    """Return whether a value can be a key: a string that can be encoded as UTF-8."""
    return isinstance(key, str) and key == key.encode(errors="replace").decode()


def check_known(keys: Sequence[str], known: Container[str]) -> None:
    """Raise unknown_key unless the index has all keys."""
    missing = [key for key in keys if key not in known]
    if missing:
        raise FirthError(
            "unknown_key",
            "The index has no key {missing!r} ({n_missing:,} of {n_keys:,} are missing).",
            missing=missing[0],
            n_missing=len(missing),
            n_keys=len(keys),
        )


def check_keys(keys: Sequence[str]) -> list[str]:
    """Return keys as a list of unique strings."""
    if isinstance(keys, str):
        raise FirthError("invalid_type", "Keys must be a list; got a single {got}. Put it in a list.", got="str")
    try:
        listed = list(keys)
    except Exception:  # an arbitrary object can raise anything here
        raise FirthError("invalid_type", "Keys must be a list; got {got}.", got=type(keys).__name__) from None
    invalid = [key for key in listed if not isinstance(key, str)]
    if invalid:
        raise FirthError(
            "invalid_type",
            "Keys must be strings; got {got!r:.80} ({row_type}).",
            got=invalid[0],
            row_type=type(invalid[0]).__name__,
        )
    try:
        "".join(listed).encode()
    except UnicodeEncodeError:
        key = next(key for key in listed if not is_key(key))
        raise FirthError("invalid_encoding", "The key {key!r:.80} is not valid Unicode. Rename it.", key=key) from None
    if len(set(listed)) < len(listed):
        key, count = Counter(listed).most_common(1)[0]
        raise FirthError(
            "duplicate_name",
            "Keys must be unique; {key!r} occurs {count} times. Remove the duplicates, or take keys from another "
            "column (--key). Without that option, texts are numbered.",
            key=key,
            count=count,
        )
    return listed


def check_matrix(vectors: ArrayLike, keys: Sequence[str], dim: int) -> Matrix:
    """Return vectors as a float32 matrix with one row per key."""
    matrix = as_floats("The vectors", vectors)
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        shape = " × ".join(map(str, matrix.shape)) or "one number"
        raise FirthError(
            "shape_mismatch", "The index has vectors of dimension {dim}; got the shape {shape}.", dim=dim, shape=shape
        )
    if len(matrix) != len(keys):
        raise FirthError(
            "shape_mismatch",
            "There must be one key per row; got {n_keys:,} keys for {n_rows:,} rows.",
            n_keys=len(keys),
            n_rows=len(matrix),
        )
    non_finite = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(non_finite):
        raise FirthError(
            "non_finite",
            "The vector of {key!r} (row {row:,}) contains NaN, infinity, or a value beyond float32.",
            key=keys[non_finite[0]],
            row=non_finite[0] + 1,
        )
    return np.ascontiguousarray(matrix)


def attribute_table(keys: Sequence[str], attributes: Any, schema: Any) -> Any:
    """Return an Arrow table of the column key and the attributes, with the columns and types of `schema` if given."""
    try:
        if attributes is None:
            table = pyarrow.table({}) if not keys else None
        elif isinstance(attributes, Mapping):
            table = pyarrow.table(dict(attributes))
        else:
            table = as_arrow(attributes)
    except Exception as error:  # Arrow's errors, and those of an arbitrary object that is no table
        raise FirthError(
            "shape_mismatch",
            "Attributes must be a table or a mapping of lists, with one value per row: {reason}.",
            reason=first_line(error),
        ) from None
    names = table.column_names if table is not None else []
    if KEY in names or len(set(names)) < len(names):
        raise FirthError(
            "duplicate_name",
            "Attribute names must be unique and different from {key!r}; got {got}.",
            key=KEY,
            got=", ".join(names),
        )
    if table is not None and names and table.num_rows != len(keys):
        raise FirthError(
            "shape_mismatch",
            "Attributes must have one value per row; got {n_values:,} for {n_keys:,} keys.",
            n_values=table.num_rows,
            n_keys=len(keys),
        )
    columns = {name: table.column(name) for name in names} if table is not None else {}
    if schema is not None:
        columns = match_schema(columns, schema)
    if TEXT in columns:
        columns[TEXT] = cast(columns[TEXT], pyarrow.large_string(), TEXT)
    return pyarrow.table({KEY: pyarrow.array(keys, pyarrow.large_string()), **columns})


def match_schema(columns: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return attributes in the order and with the types of an index's columns."""
    expected = {column.name: column.type for column in schema if column.name != KEY}
    if set(columns) != set(expected):
        got, required = ", ".join(columns) or "none", ", ".join(expected) or "none"
        raise FirthError(
            "shape_mismatch",
            "All rows of an index must have the same attributes; expected {expected}; got {got}.",
            expected=required,
            got=got,
        )
    return {name: cast(columns[name], column_type, name) for name, column_type in expected.items()}


def cast(column: Any, column_type: Any, name: str) -> Any:
    """Convert an attribute to the type that its column has in the index."""
    try:
        return column.cast(column_type)
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise FirthError(
            "invalid_type",
            "The attribute {name} has the type {expected} in the index; got {got} ({reason}).",
            name=name,
            expected=column_type,
            got=column.type,
            reason=str(error),
        ) from None


def identity_of(model: Model, path: str | None = None) -> dict[str, Any]:
    """Return what identifies a model: its method, its fingerprint and its path."""
    return {"method": type(model.method).method_name(), "fingerprint": model_hash(model), "path": path}


def check_identity(stored: Mapping[str, Any] | None, model: Model, where: str) -> None:
    """Refuse a model that did not compute the vectors of an index."""
    if stored is None:
        raise FirthError(
            "model_mismatch",
            "{where} does not record the model of its vectors, so text queries are not possible. Search it with "
            "vectors.",
            where=where,
        )
    current = identity_of(model)
    if current["fingerprint"] != stored["fingerprint"]:
        path = f", {stored['path']}" if stored.get("path") else ""
        raise FirthError(
            "model_mismatch",
            "{where} was created with another model: expected {expected_method} {expected_fingerprint}…{path}; got "
            "{method} {fingerprint}…. Vectors of different models cannot be compared.",
            where=where,
            expected_method=stored["method"],
            expected_fingerprint=stored["fingerprint"][:12],
            path=path,
            method=current["method"],
            fingerprint=current["fingerprint"][:12],
        )
