"""Parser of filter expressions such as `year >= 2020 and language in ("en", "de")` into a tree of comparisons.

The grammar is a subset of Python's: comparisons of a column with a value, `in`, `and`, `or`, `not` and brackets.

    either     = both ("or" both)*
    both       = negated ("and" negated)*
    negated    = "not" negated | comparison
    comparison = operand (operator operand)*
    operand    = column | value | "(" either ")" | list of values

Python's own parser is not used, because untrusted input can exhaust its stack. The cost of a filter is bounded by its
length, its nesting depth and its number of comparisons, each of which reads a column.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from firth.core.errors import FirthError

MAX_CHARACTERS = 65_536
MAX_DEPTH = 50  # of nested brackets and `not`
MAX_COMPARISONS = 1_000
EXAMPLE = 'year >= 2020 and language in ("en", "de")'
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TOKEN = re.compile(
    r"""\s*(?:(?P<number>\.?[0-9](?:[eE][+-]|[\w.])*)
    |(?P<text>[rRuU]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[^\W\d]\w*)
    |(?P<sign>==|!=|<=|>=|[<>()\[\]{},+-]))""",
    re.VERBOSE | re.DOTALL,
)


class Compare(NamedTuple):
    """A comparison of a column with a value. The operator is one of `OPERATORS`, or `in` with a list as value."""

    column: str
    operator: str
    value: Any


class Junction(NamedTuple):
    """Conditions joined by and or or, or one condition negated by not."""

    word: str  # and, or, not
    parts: tuple[Condition, ...]


Condition = Compare | Junction


class Column(NamedTuple):
    """The name of a column, as an operand."""

    name: str


class Value(NamedTuple):
    """A literal or a list of literals, as an operand."""

    value: Any


Operand = Column | Value | Condition


def parse(text: str, columns: Sequence[str]) -> Condition:
    """Parse a filter expression. Every column it names must be in `columns`."""
    if not isinstance(text, str):
        raise FirthError("invalid_type", "where must be a string; got {got}.", got=type(text).__name__)
    if len(text) > MAX_CHARACTERS:
        raise FirthError(
            "invalid_filter",
            "where must have at most {longest:,} characters; got {got:,}.",
            longest=MAX_CHARACTERS,
            got=len(text),
        )
    return Parser(text, columns).parse_all()


def written(column: str) -> str:
    """Return a column's name as it is written in a filter, quoted if necessary."""
    return column if plain(column) else json.dumps(column, ensure_ascii=False)


def plain(column: str) -> bool:
    """Return whether a column's name can be written without quotes. Python normalizes identifiers (NFKC)."""
    return column.isidentifier() and not keyword.iskeyword(column) and unicodedata.normalize("NFKC", column) == column


class Token(NamedTuple):
    """A lexical token of a filter expression."""

    kind: str  # number, text, name, word (a keyword), sign, or end
    text: str
    start: int  # offset in the expression


class Parser:
    """A recursive-descent parser with one token of lookahead."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self.text, self.columns = text, columns
        self.comparisons = self.depth = 0
        self.end = 0  # offset behind the current token
        self.token = self._next()

    def parse_all(self) -> Condition:
        """Parse the whole expression."""
        condition = self.either()
        if self.token.kind != "end":
            self.unexpected()
        return self.condition(condition)

    # ---- tokens ----

    def _next(self) -> Token:
        match = TOKEN.match(self.text, self.end)
        if match is None:
            rest = self.text[self.end :].lstrip()
            start = len(self.text) - len(rest)
            if rest:
                self.refuse(f"unexpected {rest[0]!r} at character {start + 1}")
            return Token("end", "the end", start)
        self.end = match.end()
        kind = str(match.lastgroup)
        text, start = match.group(kind), match.start(kind)
        return Token("word" if kind == "name" and keyword.iskeyword(text) else kind, text, start)

    def take(self, *texts: str) -> str | None:
        """Consume the current token if it is one of these signs or keywords; return its text, or None."""
        text = self.token.text
        if self.token.kind not in ("sign", "word") or text not in texts:
            return None
        self.token = self._next()
        return text

    def refuse(self, reason: str) -> NoReturn:
        """Raise invalid_filter with a reason and an example."""
        quoted_names = [name for name in self.columns if name in self.text and not plain(name)]
        raise FirthError(
            "invalid_filter",
            "Cannot parse where ({reason}): {text:.200}. Example: {example}{hint}.",
            reason=reason,
            text=repr(self.text),
            example=EXAMPLE,
            hint=f"; put the column {quoted_names[0]!r} in quotes" if quoted_names else "",
        )

    def unexpected(self) -> NoReturn:
        """Raise invalid_filter for the current token."""
        if self.token.kind == "end":
            self.refuse("unexpected end")
        self.refuse(f"unexpected {self.token.text!r:.40} at character {self.token.start + 1}")

    # ---- rules ----

    def either(self) -> Operand:
        """Parse conditions joined by `or`."""
        return self._joined("or", self.both)

    def both(self) -> Operand:
        """Parse conditions joined by `and`."""
        return self._joined("and", self.negated)

    def _joined(self, word: str, rule: Any) -> Operand:
        first: Operand = rule()
        if self.token.kind != "word" or self.token.text != word:
            return first
        parts = [self.condition(first)]
        while self.take(word):
            parts.append(self.condition(rule()))
        return Junction(word, tuple(parts))

    def negated(self) -> Operand:
        """Parse a comparison, or `not` and a condition."""
        if not self.take("not"):
            return self.comparison()
        self._deeper()
        condition = Junction("not", (self.condition(self.negated()),))
        self.depth -= 1
        return condition

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"brackets and `not` can be nested at most {MAX_DEPTH} deep")

    def comparison(self) -> Operand:
        """Parse one comparison or a chain of them, such as `1 < year < 5`."""
        left = self.operand()
        comparisons = list[Condition]()
        while operator := self._operator():
            right = self.operand()
            comparisons.append(self.compare(left, operator, right))
            left = right
        if not comparisons:
            return left
        return comparisons[0] if len(comparisons) == 1 else Junction("and", tuple(comparisons))  # 2019 <= year < 2023

    def _operator(self) -> str | None:
        if operator := self.take(*OPERATORS, "in", "is"):
            return "is not" if operator == "is" and self.take("not") else operator
        if self.take("not"):
            if not self.take("in"):
                self.refuse(f"`in` expected at character {self.token.start + 1}")
            return "not in"
        return None

    def operand(self) -> Operand:
        """Parse a column, a value, a list of values or a condition in parentheses."""
        token = self.token
        if token.kind == "name":
            self.token = self._next()
            return Column(unicodedata.normalize("NFKC", token.text))
        if token.kind in ("number", "text") or token.text in ("True", "False", "None", "+", "-"):
            return Value(self.literal())
        if opening := self.take("(", "[", "{"):
            return self.bracket(opening, {"(": ")", "[": "]", "{": "}"}[opening])
        return self.unexpected()

    def bracket(self, opening: str, closing: str) -> Operand:
        """Parse a condition or value in brackets, or a list of values."""
        self._deeper()
        values = list[Any]()
        comma = opening != "("
        while not self.take(closing):
            operand = self.either()
            if not comma and self.take(closing):
                self.depth -= 1
                return operand
            if not isinstance(operand, Value):
                self.refuse("a list can only contain values")
            values.append(operand.value)
            if not self.take(","):
                if not self.take(closing):
                    self.refuse(f"{closing!r} or a comma expected at character {self.token.start + 1}")
                break
            comma = True
        self.depth -= 1
        return Value(values)

    def literal(self) -> Any:
        """Parse a number with optional signs, adjacent string literals, True, False or None."""
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign == "-"
            if self.token.kind != "number" and self.token.text not in ("+", "-"):
                self.refuse(f"a number expected at character {self.token.start + 1}")
        if self.token.kind == "word":
            return {"True": True, "False": False, "None": None}[str(self.take("True", "False", "None"))]
        if self.token.kind == "number":
            value = self._evaluated()
            return -value if negative else value
        texts = list[str]()
        while self.token.kind == "text":
            texts.append(self._evaluated())
        return "".join(texts)

    def _evaluated(self) -> Any:
        """Consume one number or string literal and return its Python value."""
        token = self.token
        self.token = self._next()
        is_integer = token.text.replace("_", "").isdigit() or token.text[:2].lower() in ("0x", "0o", "0b")
        try:
            if token.kind == "text":
                return ast.literal_eval(token.text)
            return int(token.text, 0) if is_integer else float(token.text)
        except (ValueError, SyntaxError):  # 0777, 1j, 5,000 digits, \x without digits
            return self.refuse(f"{token.text:.40} at character {token.start + 1} is not a valid {token.kind}")

    # ---- meaning ----

    def condition(self, operand: Operand) -> Condition:
        """Return an operand as a condition; a bare column means `column == True`."""
        if isinstance(operand, Column):
            return self._counted(Compare(column_named(operand.name, self.columns), "==", True))
        if isinstance(operand, Value):
            raise FirthError(
                "invalid_filter",
                "where must be a comparison, or comparisons joined by and, or, not; got {got:.80}. Example: {example}.",
                got=repr_of(operand.value),
                example=EXAMPLE,
            )
        return operand

    def _counted(self, condition: Compare) -> Compare:
        self.comparisons += 1
        if self.comparisons > MAX_COMPARISONS:
            raise FirthError(
                "invalid_filter",
                "where must have at most {most:,} comparisons. Use `in` to compare a column with many values.",
                most=MAX_COMPARISONS,
            )
        return condition

    def compare(self, left: Operand, operator: str, right: Operand) -> Condition:
        """Return the condition for two operands and an operator, with their types checked."""
        if isinstance(left, Value) and isinstance(right, Column) and operator in OPERATORS:
            left, right, operator = right, left, MIRRORED.get(operator, operator)
        name = left.name if isinstance(left, Column) else left.value if isinstance(left, Value) else None
        if not isinstance(name, str) or not isinstance(right, Value):
            raise FirthError(
                "invalid_filter",
                "where must compare a column with a value; got {got:.200}. Put strings in quotes: {example}.",
                got=repr(self.text),
                example=EXAMPLE,
            )
        column, value = column_named(name, self.columns), right.value
        if operator in ("is", "is not") and value is None:
            operator = "==" if operator == "is" else "!="
        if operator in ("in", "not in"):
            if not isinstance(value, list) or not all(isinstance(each, (str, int, float)) for each in value):
                raise FirthError(
                    "invalid_filter",
                    "where: `in` must be followed by a list of values; got {got:.80}. Example: {example}.",
                    example=EXAMPLE,
                    got=repr_of(value),
                )
            condition = self._counted(Compare(column, "in", value))
            return condition if operator == "in" else Junction("not", (condition,))
        if operator not in OPERATORS or isinstance(value, list):
            raise FirthError(
                "invalid_filter",
                "where cannot compare {column} with {got:.80}. Use a string, a number, True or False.",
                column=column,
                got=repr_of(value),
            )
        if value is None and operator not in ("==", "!="):
            raise FirthError(
                "invalid_filter", "where: None can only be compared with == or !=; got {column}.", column=column
            )
        return self._counted(Compare(column, operator, value))


def repr_of(value: Any) -> str:
    """Return `repr(value)` for a message. Python refuses to format integers of more than 4,300 digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number with thousands of digits"


def column_named(name: str, columns: Sequence[str]) -> str:
    """Return the name of a column, or raise unknown_column."""
    if name not in columns:
        available = f"available: {', '.join(columns)}" if columns else "it has none"
        raise FirthError(
            "unknown_column",
            "where uses the column {name!r:.80}, which the index does not have; {available}. `firth index build "
            "--attributes` stores more columns.",
            name=name,
            available=available,
        )
    return name
