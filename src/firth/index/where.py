"""Filters: `year >= 2020 and language in ("en", "de")` as a condition on attributes, for Arrow columns and for SQL.

The grammar is Python's, of which only comparisons of a column with a value, `in`, `and`, `or`, `not` and brackets are
taken. A column whose name is no word of Python stands in quotes, left of the comparison: `"due date" >= "2024"`. As in
SQL, a comparison with a missing value is neither true nor false, and such rows are left out; `== None` and `!= None`
ask for them.
"""

from __future__ import annotations

import ast
import json
import keyword
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from firth.core.errors import FirthError

COMPARISONS = {
    ast.Eq: ("equal", "="),
    ast.NotEq: ("not_equal", "<>"),
    ast.Lt: ("less", "<"),
    ast.LtE: ("less_equal", "<="),
    ast.Gt: ("greater", ">"),
    ast.GtE: ("greater_equal", ">="),
}
TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
EXAMPLE = 'year >= 2020 and language in ("en", "de")'


class Compare(NamedTuple):
    column: str
    operator: type[ast.cmpop]
    value: Any


class Junction(NamedTuple):
    word: str  # and, or, not
    parts: tuple[Condition, ...]


Condition = Compare | Junction


def parse(text: str, columns: Sequence[str]) -> Condition:
    """The condition in a text; every column it names must be one of `columns`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", str(error))
        odd = next(
            (f"; the column {name!r} stands in quotes" for name in columns if name in text and not plain(name)), ""
        )
        raise FirthError(
            "invalid_filter",
            "where cannot be read ({reason}): {text!r}. Write it as in {example}{row}.",
            reason=reason,
            text=text,
            example=EXAMPLE,
            row=odd,
        ) from None
    return condition(tree, columns, text)


def written(column: str) -> str:
    """A column's name as a condition has it."""
    return column if plain(column) else json.dumps(column, ensure_ascii=False)


def plain(column: str) -> bool:
    """Python folds letters that look alike in names, so a name with such is not one."""
    return column.isidentifier() and not keyword.iskeyword(column) and unicodedata.normalize("NFKC", column) == column


def condition(node: ast.expr, columns: Sequence[str], text: str) -> Condition:
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        return Junction(word, tuple(condition(value, columns, text) for value in node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Junction("not", (condition(node.operand, columns, text),))
    if isinstance(node, ast.Name):
        return Compare(column_named(node.id, columns), ast.Eq, True)
    if not isinstance(node, ast.Compare):
        raise FirthError(
            "invalid_filter",
            "where takes comparisons, and, or, not; got {got!r}. As in {example}.",
            got=ast.unparse(node),
            example=EXAMPLE,
        )
    sides = [node.left, *node.comparators]
    pairs = [
        comparison(left, operator, right, columns)
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
    ]
    return pairs[0] if len(pairs) == 1 else Junction("and", tuple(pairs))  # 2019 <= year < 2023


def comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr, columns: Sequence[str]) -> Condition:
    kind = type(operator)
    if not isinstance(left, ast.Name) and isinstance(right, ast.Name) and (kind in COMPARISONS):
        left, right, kind = right, left, TURNED.get(kind, kind)
    name = left.id if isinstance(left, ast.Name) else left.value if isinstance(left, ast.Constant) else None
    if not isinstance(name, str) or isinstance(right, ast.Name):
        got = f"{ast.unparse(left)} and {ast.unparse(right)}"
        raise FirthError(
            "invalid_filter",
            "where compares a column with a value; got {got}. A text stands in quotes, as in {example}.",
            got=got,
            example=EXAMPLE,
        )
    column = column_named(name, columns)
    try:
        value = ast.literal_eval(right)
    except ValueError:
        raise FirthError(
            "invalid_filter",
            "where compares {column} with a value, not with {expected!r}.",
            column=column,
            expected=ast.unparse(right),
        ) from None
    if kind in (ast.Is, ast.IsNot) and value is None:
        kind = ast.Eq if kind is ast.Is else ast.NotEq
    if kind in (ast.In, ast.NotIn):
        if not isinstance(value, (tuple, list, set)) or None in value:
            raise FirthError(
                "invalid_filter",
                "where: after `in` stands a list of values, as in {example}; got {got}.",
                example=EXAMPLE,
                got=ast.unparse(right),
            )
        found = Compare(column, ast.In, list(value))
        return found if kind is ast.In else Junction("not", (found,))
    if kind not in COMPARISONS or not isinstance(value, (str, int, float, bool, type(None))):
        raise FirthError(
            "invalid_filter",
            "where cannot compare {column} with {expected}; take a text, a number or True.",
            column=column,
            expected=ast.unparse(right),
        )
    if value is None and kind not in (ast.Eq, ast.NotEq):
        raise FirthError(
            "invalid_filter",
            "where: None is missing, not more or less; got a comparison of {column} with it.",
            column=column,
        )
    return Compare(column, kind, value)


def column_named(name: str, columns: Sequence[str]) -> str:
    if name not in columns:
        have = f"there are {', '.join(columns)}" if columns else "there are none"
        raise FirthError(
            "unknown_column",
            "where names a column {name!r} that the index does not have; {got} (`firth index --attributes` keeps "
            "others).",
            name=name,
            got=have,
        )
    return name


def mask(found: Condition, table: Any) -> NDArray[np.bool_]:
    """Which rows of an Arrow table it holds for."""
    true = pyarrow.compute.fill_null(arrow(found, table), False)
    return np.asarray(true.to_numpy(zero_copy_only=False) if isinstance(true, pyarrow.Array) else true.to_numpy())


def arrow(found: Condition, table: Any) -> Any:
    compute = pyarrow.compute
    if isinstance(found, Junction):
        parts = [arrow(part, table) for part in found.parts]
        if found.word == "not":
            return compute.invert(parts[0])
        joined = parts[0]
        for part in parts[1:]:
            joined = (compute.and_kleene if found.word == "and" else compute.or_kleene)(joined, part)
        return joined
    column = table.column(found.column)
    if found.value is None:
        return column.is_null() if found.operator is ast.Eq else column.is_valid()
    try:
        if pyarrow.types.is_dictionary(column.type):  # a data frame's categories
            column = column.cast(column.type.value_type)
        if found.operator is ast.In:
            values = pyarrow.array([fitting(value, column.type) for value in found.value], column.type)
            true = compute.is_in(column, values)
            return compute.if_else(column.is_valid(), true, pyarrow.scalar(None, pyarrow.bool_()))
        return getattr(compute, COMPARISONS[found.operator][0])(column, fitting(found.value, column.type))
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):  # also beyond 64 bits, or no Unicode
        raise FirthError(
            "invalid_filter",
            "where cannot compare the column {column} of {type} with {value!r}.",
            column=found.column,
            type=column.type,
            value=found.value,
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
        return f"{name} IS {'' if found.operator is ast.Eq else 'NOT '}NULL", []
    if found.operator is ast.In:
        # One by one: a list of texts would be no list of dates.
        return (f"{name} IN ({', '.join(['%s'] * len(found.value))})" if found.value else "FALSE"), found.value
    return f"{name} {COMPARISONS[found.operator][1]} %s", [found.value]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
