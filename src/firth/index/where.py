"""Filters: `year >= 2020 and language in ("en", "de")` as a condition on attributes, for Arrow columns and for SQL.

A column whose name is no word of Python stands in quotes, left of the comparison: `"due date" >= "2024"`. As in SQL, a
comparison with a missing value is neither true nor false, and such rows are left out; `== None` and `!= None` ask for
them. `firth.index.grammar` reads the text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.index.grammar import Condition, Junction, parse, repr_of, written

__all__ = ["check", "mask", "parse", "quoted", "sql", "written"]

COMPARISONS = {
    "==": ("equal", "="),
    "!=": ("not_equal", "<>"),
    "<": ("less", "<"),
    "<=": ("less_equal", "<="),
    ">": ("greater", ">"),
    ">=": ("greater_equal", ">="),
}


def mask(found: Condition, table: Any) -> NDArray[np.bool_]:
    """Which rows of an Arrow table it holds for."""
    true = pyarrow.compute.fill_null(arrow(found, table), False)
    return np.asarray(true.to_numpy(zero_copy_only=False) if isinstance(true, pyarrow.Array) else true.to_numpy())


def check(found: Condition, columns: dict[str, Any]) -> None:
    """Refuses values that do not fit their columns, where these are compared elsewhere. A type of None fits all."""
    if isinstance(found, Junction):
        for part in found.parts:
            check(part, columns)
    elif columns.get(found.column) is not None:
        arrow(found, pyarrow.schema([(found.column, columns[found.column])]).empty_table())


def arrow(found: Condition, table: Any) -> Any:
    compute = pyarrow.compute
    if isinstance(found, Junction):
        joined = arrow(found.parts[0], table)
        if found.word == "not":
            return compute.invert(joined)
        for part in found.parts[1:]:
            joined = (compute.and_kleene if found.word == "and" else compute.or_kleene)(joined, arrow(part, table))
        return joined
    column = table.column(found.column)
    if found.value is None:
        return column.is_null() if found.operator == "==" else column.is_valid()
    try:
        if pyarrow.types.is_dictionary(column.type):  # a data frame's categories
            column = column.cast(column.type.value_type)
        if found.operator == "in":
            values = pyarrow.array([fitting(value, column.type) for value in found.value], column.type)
            true = compute.is_in(column, values)
            return compute.if_else(column.is_valid(), true, pyarrow.scalar(None, pyarrow.bool_()))
        true = getattr(compute, COMPARISONS[found.operator][0])(column, fitting(found.value, column.type))
        return true.cast(pyarrow.bool_())  # a column of nulls gives nulls
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):  # also beyond 64 bits, or no Unicode
        raise FirthError(
            "invalid_filter",
            "where cannot compare the column {column} of {type} with {value:.80}.",
            column=found.column,
            type=str(column.type),
            value=repr_of(found.value),
        ) from None


def fitting(value: Any, kind: Any) -> Any:
    """A value for a column of this type; a date is written as a text."""
    if is_text(kind) and not isinstance(value, str):
        raise pyarrow.ArrowInvalid("of another kind")  # a number would be turned into a text
    return pyarrow.scalar(value).cast(kind) if isinstance(value, str) and not is_text(kind) else value


def is_text(kind: Any) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def sql(found: Condition) -> tuple[str, list[Any]]:
    """A condition of SQL with %s for its values. Columns are known names, quoted."""
    if isinstance(found, Junction):
        parts = [sql(part) for part in found.parts]
        values = [value for _, own in parts for value in own]
        if found.word == "not":
            return f"NOT ({parts[0][0]})", values
        return "(" + f" {found.word.upper()} ".join(part for part, _ in parts) + ")", values
    name = quoted(found.column)
    if found.value is None:
        return f"{name} IS NULL" if found.operator == "==" else f"{name} IS NOT NULL", []
    if found.operator == "in":
        # One by one: a list of texts would be no list of dates.
        return (f"{name} IN ({', '.join(['%s'] * len(found.value))})" if found.value else "FALSE"), found.value
    return f"{name} {COMPARISONS[found.operator][1]} %s", [found.value]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
