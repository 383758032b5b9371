"""Filters: against the same condition in Python, row by row; and what is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow
import pytest

from firth import FirthError
from firth.index import Index
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
def test_conditions(text):
    found = mask(parse(text, TABLE.column_names), TABLE)
    assert np.flatnonzero(found).tolist() == CONDITIONS[text]


@pytest.mark.parametrize("name", ["due date", "class", "order-id", "amount €", 'a "b"', "2024", "ﬁne", "größe"])
def test_a_column_of_any_name_can_be_asked_for(name):
    table = pyarrow.table({name: ["x", "y", None]})
    for text in (f'{written(name)} == "y"', f'not {written(name)} in ("x", "z")', f'"x" < {written(name)}'):
        if text.startswith('"x"') and written(name) != name:
            continue  # of two quoted ones the column is the first
        assert np.flatnonzero(mask(parse(text, [name]), table)).tolist() == [1]
    assert (written(name) == name) == (name == "größe")


REFUSED = {
    "month > 3": "a column 'month' that the index does not have; there are year, language, open, day, kind",
    "year = 2020": "cannot be read",
    "year >": "cannot be read",
    "": "cannot be read",
    "(" * 500: "cannot be read",
    "__import__('os')": "takes comparisons, and, or, not",
    "year + 1 == 3": "compares a column with a value; got year \\+ 1",
    "year == language": "compares a column with a value; got year and language",
    "language == en": "got language and en. A text stands in quotes",
    "year == abs(3)": "with a value, not with 'abs\\(3\\)'",
    "language in 'en'": "after `in` stands a list of values",
    "year == [1]": "cannot compare year with \\[1\\]",
    "year > None": "None is missing, not more or less",
    "year == 'x'": "cannot compare the column year of int64 with 'x'",
    "language > 3": "cannot compare the column language of string with 3",
    "language in (3, 4.5)": "cannot compare the column language",
    f"year == {10**30}": "cannot compare the column year of int64 with 1000",
    f"year in (2020, {10**30})": "cannot compare the column year of int64",
    "language == '\\ud800'": "cannot compare the column language",
    "language in ('\\ud800',)": "cannot compare the column language",
}


@pytest.mark.parametrize("text", REFUSED)
def test_conditions_that_are_refused(text):
    with pytest.raises(FirthError, match=REFUSED[text]):
        mask(parse(text, TABLE.column_names), TABLE)


def test_as_sql():
    condition = parse('not (year >= 2020 and language in ("en", "de")) or open == None', TABLE.column_names)
    assert sql(condition) == (
        '(NOT (("year" >= %s AND "language" IN (%s, %s))) OR "open" IS NULL)',
        [2020, "en", "de"],
    )
    assert sql(parse("year in ()", TABLE.column_names)) == ("FALSE", [])


def test_filtered_search_equals_search_of_the_filtered():
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
