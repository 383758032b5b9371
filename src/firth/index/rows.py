"""What may go into an index: keys, vectors, attributes, and the model that made them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import ArrayLike

from firth.core.arguments import as_floats, check_choice
from firth.core.errors import FirthError
from firth.core.train import model_hash
from firth.core.vectors import METRICS, Matrix
from firth.data.corpus import as_arrow
from firth.index.segment import KEY, TEXT, WIDEST_ROW
from firth.index.where import first_line


def check_space(name: str, dim: Any, metric: Any, numbers: Any, choices: Iterable[str]) -> None:
    """Of a new index."""
    if type(dim) is not int or not 1 <= dim <= WIDEST_ROW:
        raise FirthError(
            "invalid_value",
            "{option} must be a whole number from 1 to {most:,}; got {got:.80}.",
            option=f"{name}.dim",
            most=WIDEST_ROW,
            got=repr(dim),
        )
    check_choice(f"{name}.metric", metric, METRICS)
    check_choice(f"{name}.numbers", numbers, tuple(choices))


def check_json(facts: Mapping[str, Any]) -> None:
    """Of what is to be noted in an index."""
    try:
        json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FirthError("invalid_type", "A note must be JSON: {reason}.", reason=str(error)) from None


def is_key(key: object) -> bool:
    """Whether it may be a key: Unicode text."""
    return isinstance(key, str) and key == key.encode(errors="replace").decode()


def check_keys(keys: Sequence[str]) -> list[str]:
    if isinstance(keys, str):
        raise FirthError("invalid_type", "A list of keys is needed; got one key. Put it in a list.")
    try:
        listed = list(keys)
    except Exception:  # whatever an object says that is no list
        raise FirthError("invalid_type", "A list of keys is needed; got {got}.", got=type(keys).__name__) from None
    odd = [key for key in listed if not isinstance(key, str)]
    if odd:
        raise FirthError(
            "invalid_type", "Keys are texts; got {got!r:.80} ({row_type}).", got=odd[0], row_type=type(odd[0]).__name__
        )
    try:
        "".join(listed).encode()
    except UnicodeEncodeError:
        key = next(key for key in listed if not is_key(key))
        raise FirthError("invalid_encoding", "The key {key!r:.80} is not Unicode text; rename it.", key=key) from None
    if len(set(listed)) < len(listed):
        key, count = Counter(listed).most_common(1)[0]
        raise FirthError(
            "duplicate_name",
            "Every key may stand once; {key!r} stands {count} times. Take the others out, or take keys from "
            "another column (--key); without one, texts are numbered.",
            key=key,
            count=count,
        )
    return listed


def check_matrix(vectors: ArrayLike, keys: Sequence[str], dim: int) -> Matrix:
    """The rows as float32, each with a key."""
    matrix = as_floats("The vectors", vectors)
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        shape = " × ".join(map(str, matrix.shape)) or "one number"
        raise FirthError(
            "shape_mismatch", "The index holds vectors of {dim} numbers; got a matrix of {shape}.", dim=dim, shape=shape
        )
    if len(matrix) != len(keys):
        raise FirthError(
            "shape_mismatch",
            "An index needs one key a row; got {got:,} keys for {n_matrix:,} rows.",
            got=len(keys),
            n_matrix=len(matrix),
        )
    odd = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(odd):
        raise FirthError(
            "non_finite",
            "The vector of {key!r} (row {row:,}) holds NaN or infinity, or a number beyond float32.",
            key=keys[odd[0]],
            row=odd[0] + 1,
        )
    return np.ascontiguousarray(matrix)


def attribute_table(keys: Sequence[str], attributes: Any, schema: Any) -> Any:
    """An Arrow table of the column key and the attributes, with the columns and types of `schema` if it is given."""
    try:
        if attributes is None:
            table = pyarrow.table({}) if not keys else None
        elif isinstance(attributes, Mapping):
            table = pyarrow.table(dict(attributes))
        else:
            table = as_arrow(attributes)
    except Exception as error:  # Arrow's errors, and those of whatever object is no table
        raise FirthError(
            "shape_mismatch",
            "Attributes must be a table or lists by name, one value for each row: {reason}.",
            reason=first_line(error),
        ) from None
    names = table.column_names if table is not None else []
    if KEY in names or len(set(names)) < len(names):
        raise FirthError(
            "duplicate_name",
            "Attributes need different names, none of them {key!r}; got {got}.",
            key=KEY,
            got=", ".join(names),
        )
    if table is not None and names and table.num_rows != len(keys):
        raise FirthError(
            "shape_mismatch",
            "Attributes need one value a row; got {got:,} for {n_keys:,} keys.",
            got=table.num_rows,
            n_keys=len(keys),
        )
    columns = {name: table.column(name) for name in names} if table is not None else {}
    if schema is not None:
        columns = fitted(columns, schema)
    if TEXT in columns:
        columns[TEXT] = cast(columns[TEXT], pyarrow.large_string(), TEXT)
    return pyarrow.table({KEY: pyarrow.array(keys, pyarrow.large_string()), **columns})


def fitted(columns: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The same in the order and types of an index's columns."""
    wanted = {column.name: column.type for column in schema if column.name != KEY}
    if set(columns) != set(wanted):
        have, need = ", ".join(columns) or "none", ", ".join(wanted) or "none"
        raise FirthError(
            "shape_mismatch",
            "All rows of an index have the same attributes: it has {expected}; got {got}.",
            expected=need,
            got=have,
        )
    return {name: cast(columns[name], kind, name) for name, kind in wanted.items()}


def cast(column: Any, kind: Any, name: str) -> Any:
    try:
        return column.cast(kind)
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise FirthError(
            "invalid_type",
            "The attribute {name} holds {kind} in the index; got {got} ({reason}).",
            name=name,
            kind=kind,
            got=column.type,
            reason=str(error),
        ) from None


def identity_of(model: Any, path: str | None = None) -> dict[str, Any]:
    """What tells a model from others."""
    return {"method": type(model.method).method_name(), "fingerprint": model_hash(model), "path": path}


def check_identity(made: Mapping[str, Any] | None, model: Any, where: str) -> None:
    """Refuses a model that did not make the vectors."""
    if made is None:
        raise FirthError(
            "model_mismatch", "{where} does not say what model made its vectors; search it with vectors.", where=where
        )
    mine = identity_of(model)
    if mine["fingerprint"] != made["fingerprint"]:
        path = f", {made['path']}" if made.get("path") else ""
        raise FirthError(
            "model_mismatch",
            "{where} was made with another model ({method} {fingerprint}…{path}) than this one ({method_2} "
            "{fingerprint_2}…); their vectors can't be compared.",
            where=where,
            method=made["method"],
            fingerprint=made["fingerprint"][:12],
            path=path,
            method_2=mine["method"],
            fingerprint_2=mine["fingerprint"][:12],
        )
