"""Filters, compared with the same condition in Python row by row; and refusals."""

from __future__ import annotations

import contextlib
import datetime
import math
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth import FirthError
from firth.index import Index
from firth.index.grammar import Compare, Junction
from firth.index.where import mask, parse, sql, written

YEARS = [2019, 2020, None, 2022, 2023, 2020]
LANGUAGES = ["en", "de", "en", None, "fr", "it's"]
DATES = [datetime.date(2020, 1, day) for day in range(1, 7)]
TABLE = pyarrow.table(
    {
        "year": YEARS,
        "language": LANGUAGES,
        "open": [True, False, True, False, None, True],
        "day": DATES,
        "kind": pyarrow.array(["a", "b", None, "a", "b", "c"]).dictionary_encode(),  # as a data frame's categories
    }
)

CONDITIONS = {
    "year >= 2020": [1, 3, 4, 5],
    "2019 < year <= 2022": [1, 3, 5],
    "2020 == year": [1, 5],
    "year != 2020": [0, 3, 4],
    "not year == 2020": [0, 3, 4],
    "year == None": [2],
    "year is not None and language is None": [3],
    'language in ("en", "fr")': [0, 2, 4],
    'language not in ("en", "fr")': [1, 5],
    "language in ()": [],
    'language == "it\'s"': [5],
    'year > 2021 or language == "en"': [0, 2, 3, 4],
    'not (year > 2021 or language == "en")': [1, 5],
    "open": [0, 2, 5],
    "open and year < 2020.5": [0, 5],
    "open == False": [1, 3],
    'day >= "2020-01-05"': [4, 5],
    'day in ("2020-01-02", "2020-01-05")': [1, 4],
    'kind == "a"': [0, 3],
    'kind in ("a", "c")': [0, 3, 5],
    'kind not in ("a", "c")': [1, 4],
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_select_the_expected_rows(text):
    selected = mask(parse(text, TABLE.column_names), TABLE)
    assert np.flatnonzero(selected).tolist() == CONDITIONS[text]


@pytest.mark.parametrize("name", ["due date", "class", "order-id", "amount €", 'a "b"', "2024", "ﬁne", "größe"])
def test_columns_of_any_name_can_be_used(name):
    table = pyarrow.table({name: ["x", "y", None]})
    for text in (f'{written(name)} == "y"', f'not {written(name)} in ("x", "z")', f'"x" < {written(name)}'):
        if text.startswith('"x"') and written(name) != name:
            continue  # if both sides are quoted, the first one is the column
        assert np.flatnonzero(mask(parse(text, [name]), table)).tolist() == [1]
    assert (written(name) == name) == (name == "größe")


REFUSED: dict[str, Any] = {  # with values of the error
    "month > 3": {"name": "month"},
    "year = 2020": {"reason": "unexpected '=' at character 6"},
    "year >": {"reason": "unexpected end"},
    "": {"reason": "unexpected end"},
    "(" * 500: {"reason": "brackets and `not` can be nested at most 50 deep"},
    "not " * 500 + "open": {"reason": "brackets and `not` can be nested at most 50 deep"},
    "__import__('os')": {"reason": "unexpected '(' at character 11"},
    "year + 1 == 3": {"reason": "unexpected '+' at character 6"},
    "year == language": {},
    "language == en": {},
    "year == abs(3)": {},
    "year.real == 3": {"reason": "unexpected '.' at character 5"},
    "language in 'en'": {"got": "'en'"},
    "year in {[]}": {"got": "[[]]"},
    "year in (1, None)": {"got": "[1, None]"},
    "year in {1: 2}": {"reason": "unexpected ':' at character 11"},
    "year == [1]": {"column": "year", "got": "[1]"},
    "year == 1j": {"reason": "1j at character 9 is not a valid number"},
    "year == b'x'": {},
    "year is 3": {"column": "year"},
    "year not 3": {"reason": "`in` expected at character 10"},
    "year > None": {"column": "year"},
    "True": {"got": "True"},
    "3 and open": {"got": "3"},
    "year == 'x'": {"column": "year", "type": "int64", "value": "'x'"},
    "language > 3": {"column": "language", "type": "string", "value": "3"},
    "language in (3, 4.5)": {"column": "language"},
    f"year == {10**30}": {"column": "year", "value": str(10**30)},
    f"year == -{10**400}": {"column": "year"},
    f"year in (2020, {10**30})": {"column": "year"},
    f"open == {10**400}": {"column": "open"},
    "year == " + "9" * 5000: {"reason": f"{'9' * 40} at character 9 is not a valid number"},
    "year == 0x" + "f" * 5000: {"column": "year", "value": "a number with thousands of digits"},
    "year == 0777": {"reason": "0777 at character 9 is not a valid number"},
    "language == '\\ud800'": {"column": "language"},
    "language in ('\\ud800',)": {"column": "language"},
    "language == 'no end": {"reason": 'unexpected "\'" at character 13'},
    "language == '\\x'": {},
    "year == - 'x'": {"reason": "a number expected at character 11"},
    "open " + "or open " * 1000: {"most": 1000},
    "open" + " " * 65_536: {"longest": 65_536, "got": 65_540},
    "\0": {},
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:30]))
def test_invalid_conditions_are_refused(text):
    with refuses("unknown_column" if "name" in REFUSED[text] else "invalid_filter", **REFUSED[text]) as caught:
        mask(parse(text, TABLE.column_names), TABLE)
    assert len(str(caught.value)) < 500


def test_long_lists_are_allowed():
    keys = [f"{number:05}" for number in range(7000)]
    condition = parse(f"language not in {tuple(keys)}", TABLE.column_names)
    assert isinstance(condition, Junction) and isinstance(condition.parts[0], Compare)
    assert condition.parts[0].value == keys
    assert np.flatnonzero(mask(condition, TABLE)).tolist() == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("year == +-- 3", 3),
        ("year == 1_0.5e-1", 1.05),
        ("year == 0xff", 255),
        ("year == .5", 0.5),
        ("year < 1e999", math.inf),
        ("""language == 'it' "'s" r'\\n'""", "it's\\n"),
        ("language == 'a\\tb\\N{BULLET}'", "a\tb•"),
        ("(year) == (3)", 3),
        ("((year == 3))", 3),
    ],
)
def test_values_are_written_as_in_python(text, value):
    condition = parse(text, TABLE.column_names)
    assert isinstance(condition, Compare) and condition.value == value


PIECES = [
    *"()[]{},<>=+-.'\"\\ \n\0:*",
    "==",
    "!=",
    "<=",
    "in",
    "not",
    "and",
    "or",
    "is",
    "None",
    "True",
    "lambda",
    "if",
    "else",
]
PIECES += [
    "year",
    "language",
    "open",
    "day",
    "kind",
    "1",
    "2020",
    "1e999",
    "9" * 30,
    "1j",
    "0x",
    "'en'",
    "b'x'",
    "'\\ud800'",
    "é",
]
PIECES += ["f'{x}'", "await", "not in", "is not", "((", "year in (", "...", "\ud800", "２", "²"]


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=14).flatmap(
        lambda parts: st.sampled_from(["", " "]).map(lambda s: s.join(parts))
    )
)
def test_any_sequence_of_tokens_is_a_condition_or_refused(text):
    try:
        condition = parse(text, TABLE.column_names)
        mask(condition, TABLE)
        sql(condition)
    except FirthError as error:
        assert error.code in ("invalid_filter", "unknown_column") and str(error)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_string_is_a_condition_or_refused(text):
    with contextlib.suppress(FirthError):
        mask(parse(text, TABLE.column_names), TABLE)


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.sampled_from(list(CONDITIONS)), lambda part: st.one_of(
    st.tuples(part, st.sampled_from(["and", "or"]), part).map(lambda each: f"({each[0]}) {each[1]} ({each[2]})"),
    part.map(lambda each: f"not ({each})"),
), max_leaves=8))  # fmt: skip
def test_conditions_mean_what_they_mean_in_python(text):
    """For rows without missing values, a condition is true where Python evaluates the same text to true."""
    complete = [row for row in range(6) if None not in [column[row].as_py() for column in TABLE.columns]]
    names = [{name: python_of(TABLE.column(name)[row].as_py()) for name in TABLE.column_names} for row in complete]
    true = [row for row, values in zip(complete, names, strict=True) if eval(text, {}, values)]
    selected = np.flatnonzero(mask(parse(text, TABLE.column_names), TABLE)).tolist()
    assert [row for row in selected if row in complete] == true


def python_of(value):
    """Return a value as conditions write it: dates as strings."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def test_conditions_as_sql():
    condition = parse('not (year >= 2020 and language in ("en", "de")) or open == None', TABLE.column_names)
    assert sql(condition) == (
        '(NOT (("year" >= %s AND "language" IN (%s, %s))) OR "open" IS NULL)',
        [2020, "en", "de"],
    )
    assert sql(parse("year in ()", TABLE.column_names)) == ("FALSE", [])


def test_filtered_search_equals_search_among_the_filtered_rows():
    rng = np.random.default_rng(0)
    matrix, years = rng.normal(size=(300, 4)), rng.integers(2000, 2020, 300)
    index = Index.create(dim=4, metric="dot")
    for first in range(0, 300, 50):
        part = slice(first, first + 50)
        index.add([str(i) for i in range(first, first + 50)], matrix[part], {"year": years[part]})
    some = np.flatnonzero(years >= 2010)
    for query in rng.normal(size=(10, 4)):
        best = some[np.argsort(-(matrix[some] @ query))[:7]]
        assert [int(hit.key) for hit in index.search(query, 7, where="year >= 2010")] == best.tolist()
    assert index.search(query, where="year > 3000") == []
    assert [hit.key for hit in index.search(query, where='key in ("3", "250")')] != []
