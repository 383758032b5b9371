"""Filters such as `year >= 2020 and language in ("en", "de")`, applied to Arrow columns or translated to SQL.

A column whose name is not a Python identifier is quoted, on the left of the comparison: `"due date" >= "2024"`. As in
SQL, a comparison with a missing value is neither true nor false, and such rows are left out; `== None` and `!= None`
test for missing values. `firth.index.grammar` parses the expressions.
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


def mask(condition: Condition, table: Any) -> NDArray[np.bool_]:
    """Return a mask of the rows of an Arrow table for which a condition is true."""
    true = pyarrow.compute.fill_null(arrow(condition, table), False)
    return np.asarray(true.to_numpy(zero_copy_only=False) if isinstance(true, pyarrow.Array) else true.to_numpy())


def check(condition: Condition, columns: dict[str, Any]) -> None:
    """Refuse values that do not fit their columns, for conditions that a database evaluates. None fits any type."""
    if isinstance(condition, Junction):
        for part in condition.parts:
            check(part, columns)
    elif columns.get(condition.column) is not None:
        arrow(condition, pyarrow.schema([(condition.column, columns[condition.column])]).empty_table())


def arrow(condition: Condition, table: Any) -> Any:
    """Evaluate a condition on an Arrow table, with null for unknown."""
    compute = pyarrow.compute
    if isinstance(condition, Junction):
        joined = arrow(condition.parts[0], table)
        if condition.word == "not":
            return compute.invert(joined)
        for part in condition.parts[1:]:
            joined = (compute.and_kleene if condition.word == "and" else compute.or_kleene)(joined, arrow(part, table))
        return joined
    column = table.column(condition.column)
    if condition.value is None:
        return column.is_null() if condition.operator == "==" else column.is_valid()
    try:
        if pyarrow.types.is_dictionary(column.type):  # a categorical column of a data frame
            column = column.cast(column.type.value_type)
        if condition.operator == "in":
            values = pyarrow.array([fitting(value, column.type) for value in condition.value], column.type)
            true = compute.is_in(column, values)
            return compute.if_else(column.is_valid(), true, pyarrow.scalar(None, pyarrow.bool_()))
        true = getattr(compute, COMPARISONS[condition.operator][0])(column, fitting(condition.value, column.type))
        return true.cast(pyarrow.bool_())  # a column of nulls gives nulls
    except (
        pyarrow.ArrowException,
        TypeError,
        ValueError,
        OverflowError,
    ):  # also integers beyond 64 bits and invalid Unicode
        raise FirthError(
            "invalid_filter",
            "where cannot compare the column {column}, of type {type}, with {value:.80}.",
            column=condition.column,
            type=str(column.type),
            value=repr_of(condition.value),
        ) from None


def fitting(value: Any, column_type: Any) -> Any:
    """Return a value for comparison with a column of this type. Dates are written as strings."""
    if is_text(column_type) and not isinstance(value, str):
        raise pyarrow.ArrowInvalid("wrong type")  # Arrow would convert a number to a string
    return pyarrow.scalar(value).cast(column_type) if isinstance(value, str) and not is_text(column_type) else value


def is_text(column_type: Any) -> bool:
    """Return whether an Arrow type is a string type."""
    return bool(pyarrow.types.is_string(column_type) or pyarrow.types.is_large_string(column_type))


def sql(condition: Condition) -> tuple[str, list[Any]]:
    """Return an SQL condition with %s placeholders, and its values. Column names were validated, and are quoted."""
    if isinstance(condition, Junction):
        parts = [sql(part) for part in condition.parts]
        values = [value for _, own in parts for value in own]
        if condition.word == "not":
            return f"NOT ({parts[0][0]})", values
        return "(" + f" {condition.word.upper()} ".join(part for part, _ in parts) + ")", values
    name = quoted(condition.column)
    if condition.value is None:
        return f"{name} IS NULL" if condition.operator == "==" else f"{name} IS NOT NULL", []
    if condition.operator == "in":
        # One placeholder per value: PostgreSQL does not cast an array of strings to an array of dates.
        return (
            f"{name} IN ({', '.join(['%s'] * len(condition.value))})" if condition.value else "FALSE"
        ), condition.value
    return f"{name} {COMPARISONS[condition.operator][1]} %s", [condition.value]


def quoted(name: str) -> str:
    """Return an SQL identifier in quotes, with % doubled for psycopg."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
