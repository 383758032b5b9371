"""The text of a filter, `year >= 2020 and language in ("en", "de")`, as a tree of comparisons.

The grammar is a part of Python's: comparisons of a column with a value, `in`, `and`, `or`, `not` and brackets.

    either     = both ("or" both)*
    both       = negated ("and" negated)*
    negated    = "not" negated | comparison
    comparison = operand (operator operand)*
    operand    = column | value | "(" either ")" | list of values

It is read here and not by Python's own parser, which follows a stranger's text as deep as its stack goes. What a filter
may cost is bounded by its length, its depth and the number of its comparisons, each of which reads a column.
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

LONGEST, DEEPEST, MOST_COMPARISONS = 65_536, 50, 1_000  # characters; brackets and `not` inside each other; comparisons
EXAMPLE = 'year >= 2020 and language in ("en", "de")'
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TOKEN = re.compile(
    r"""\s*(?:(?P<number>\.?[0-9](?:[eE][+-]|[\w.])*)
    |(?P<text>[rRuU]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[^\W\d]\w*)
    |(?P<sign>==|!=|<=|>=|[<>()\[\]{},+-]))""",
    re.VERBOSE | re.DOTALL,
)


class Compare(NamedTuple):
    """A column with a value; the operator is one of `OPERATORS` or `in`, whose value is a list."""

    column: str
    operator: str
    value: Any


class Junction(NamedTuple):
    word: str  # and, or, not
    parts: tuple[Condition, ...]


Condition = Compare | Junction


class Column(NamedTuple):
    name: str


class Value(NamedTuple):
    value: Any


Operand = Column | Value | Condition


def parse(text: str, columns: Sequence[str]) -> Condition:
    """The condition in a text; every column it names must be one of `columns`."""
    if not isinstance(text, str):
        raise FirthError("invalid_type", "where must be a text; got {got}.", got=type(text).__name__)
    if len(text) > LONGEST:
        raise FirthError(
            "invalid_filter",
            "where must have at most {longest:,} characters; got {got:,}.",
            longest=LONGEST,
            got=len(text),
        )
    return Parser(text, columns).whole()


def written(column: str) -> str:
    """A column's name as a condition has it."""
    return column if plain(column) else json.dumps(column, ensure_ascii=False)


def plain(column: str) -> bool:
    """Python folds letters that look alike in names, so a name with such is not one."""
    return column.isidentifier() and not keyword.iskeyword(column) and unicodedata.normalize("NFKC", column) == column


class Token(NamedTuple):
    kind: str  # number, text, name, word (a keyword), sign, or end
    text: str
    start: int  # in the condition


class Parser:
    """One way through a text, from left to right."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self.text, self.columns = text, columns
        self.comparisons = self.depth = 0
        self.end = 0  # of the token at hand
        self.token = self._next()

    def whole(self) -> Condition:
        found = self.either()
        if self.token.kind != "end":
            self.unexpected()
        return self.condition(found)

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
        found, start = match.group(kind), match.start(kind)
        return Token("word" if kind == "name" and keyword.iskeyword(found) else kind, found, start)

    def take(self, *texts: str) -> str | None:
        """The token at hand if it is one of these signs or words, and goes on to the next."""
        found = self.token.text
        if self.token.kind not in ("sign", "word") or found not in texts:
            return None
        self.token = self._next()
        return found

    def refuse(self, reason: str) -> NoReturn:
        odd = [name for name in self.columns if name in self.text and not plain(name)]
        raise FirthError(
            "invalid_filter",
            "where cannot be read ({reason}): {text:.200}. Write it as in {example}{hint}.",
            reason=reason,
            text=repr(self.text),
            example=EXAMPLE,
            hint=f"; the column {odd[0]!r} stands in quotes" if odd else "",
        )

    def unexpected(self) -> NoReturn:
        if self.token.kind == "end":
            self.refuse("it ends early")
        self.refuse(f"unexpected {self.token.text!r:.40} at character {self.token.start + 1}")

    # ---- rules ----

    def either(self) -> Operand:
        return self._joined("or", self.both)

    def both(self) -> Operand:
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
        if not self.take("not"):
            return self.comparison()
        self._deeper()
        found = Junction("not", (self.condition(self.negated()),))
        self.depth -= 1
        return found

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"brackets and `not` may stand {DEEPEST} deep")

    def comparison(self) -> Operand:
        left = self.operand()
        found = list[Condition]()
        while operator := self._operator():
            right = self.operand()
            found.append(self.compare(left, operator, right))
            left = right
        if not found:
            return left
        return found[0] if len(found) == 1 else Junction("and", tuple(found))  # 2019 <= year < 2023

    def _operator(self) -> str | None:
        if found := self.take(*OPERATORS, "in", "is"):
            return "is not" if found == "is" and self.take("not") else found
        if self.take("not"):
            if not self.take("in"):
                self.refuse(f"`in` expected at character {self.token.start + 1}")
            return "not in"
        return None

    def operand(self) -> Operand:
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
        """A condition or value in brackets, or a list of values."""
        self._deeper()
        values = list[Any]()
        comma = opening != "("
        while not self.take(closing):
            found = self.either()
            if not comma and self.take(closing):
                self.depth -= 1
                return found
            if not isinstance(found, Value):
                self.refuse("a list holds values")
            values.append(found.value)
            if not self.take(","):
                if not self.take(closing):
                    self.refuse(f"{closing!r} or a comma expected at character {self.token.start + 1}")
                break
            comma = True
        self.depth -= 1
        return Value(values)

    def literal(self) -> Any:
        """A number, with signs before it, texts side by side, True, False or None."""
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
        """The value of one number or text, as Python has it."""
        token = self.token
        self.token = self._next()
        whole = token.text.replace("_", "").isdigit() or token.text[:2].lower() in ("0x", "0o", "0b")
        try:
            if token.kind == "text":
                return ast.literal_eval(token.text)
            return int(token.text, 0) if whole else float(token.text)
        except (ValueError, SyntaxError):  # 0777, 1j, 5,000 digits, \x without digits
            return self.refuse(f"{token.text:.40} at character {token.start + 1} is no {token.kind}")

    # ---- meaning ----

    def condition(self, found: Operand) -> Condition:
        if isinstance(found, Column):
            return self._counted(Compare(column_named(found.name, self.columns), "==", True))
        if isinstance(found, Value):
            raise FirthError(
                "invalid_filter",
                "where takes comparisons, and, or, not; got {got:.80}. As in {example}.",
                got=repr_of(found.value),
                example=EXAMPLE,
            )
        return found

    def _counted(self, found: Compare) -> Compare:
        self.comparisons += 1
        if self.comparisons > MOST_COMPARISONS:
            raise FirthError(
                "invalid_filter",
                "where must have at most {most:,} comparisons; ask for many values of one column with `in`.",
                most=MOST_COMPARISONS,
            )
        return found

    def compare(self, left: Operand, operator: str, right: Operand) -> Condition:
        if isinstance(left, Value) and isinstance(right, Column) and operator in OPERATORS:
            left, right, operator = right, left, TURNED.get(operator, operator)
        name = left.name if isinstance(left, Column) else left.value if isinstance(left, Value) else None
        if not isinstance(name, str) or not isinstance(right, Value):
            raise FirthError(
                "invalid_filter",
                "where compares a column with a value; got {got:.200}. A text stands in quotes, as in {example}.",
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
                    "where: after `in` stands a list of values, as in {example}; got {got:.80}.",
                    example=EXAMPLE,
                    got=repr_of(value),
                )
            found = self._counted(Compare(column, "in", value))
            return found if operator == "in" else Junction("not", (found,))
        if operator not in OPERATORS or isinstance(value, list):
            raise FirthError(
                "invalid_filter",
                "where cannot compare {column} with {expected:.80}; take a text, a number or True.",
                column=column,
                expected=repr_of(value),
            )
        if value is None and operator not in ("==", "!="):
            raise FirthError(
                "invalid_filter", "where: None can only be compared with == or !=; got {column}.", column=column
            )
        return self._counted(Compare(column, operator, value))


def repr_of(value: Any) -> str:
    """For a message; Python does not write integers of more than 4,300 digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def column_named(name: str, columns: Sequence[str]) -> str:
    if name not in columns:
        have = f"there are {', '.join(columns)}" if columns else "there are none"
        raise FirthError(
            "unknown_column",
            "where names a column {name!r:.80} that the index does not have; {got} "
            "(`firth index build --attributes` keeps others).",
            name=name,
            got=have,
        )
    return name
