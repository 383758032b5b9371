"""Tables: what comes in from each source, and which kind each column gets."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from firth import FirthError, OneHot, Table

COLUMNS = {"color": ["red", None, "blue"], "age": [30.0, None, 2.5], "member": [True, False, None]}


def sources(folder):
    """The same table, from everything one can be made of."""
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
    text = "color,age,member\nred,30,true\n,NA,false\nblue,2.5,\n"
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "semicolons.csv").write_text(text.replace(",", ";").replace(".", ","))  # as spreadsheets do in German
    (folder / "t.tsv").write_text(text.replace(",", "\t"))
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pyarrow.table(COLUMNS), folder / "t.parquet")
    yield from (folder / name for name in ("t.csv", "semicolons.csv", "t.csv.gz", "t.tsv", "t.jsonl", "t.parquet"))
    yield from (COLUMNS, rows, pyarrow.table(COLUMNS), polars.DataFrame(COLUMNS), pandas.DataFrame(COLUMNS))
    yield str(folder / "t.csv")
    yield Table(COLUMNS)


def test_every_source_gives_the_same_table(tmp_path):
    for source in sources(tmp_path):
        table = Table(source)
        assert table.to_dict() == COLUMNS and table.named and len(table) == 3
        assert [table.kind(name) for name in table.names] == ["category", "numeric", "category"]
        assert table.categories("member") == ["true", "false", None]
        np.testing.assert_array_equal(table.numbers("age"), [30, np.nan, 2.5])


def test_columns_without_names_are_numbered():
    assert Table(np.arange(6).reshape(3, 2)).to_dict() == {"x0": [0, 2, 4], "x1": [1, 3, 5]}
    assert Table([[1, "a"], (2, "b")]).to_dict() == {"x0": [1, 2], "x1": ["a", "b"]}
    assert Table(["b", None]).to_dict() == Table(np.array(["b", None], object)).to_dict() == {"x0": ["b", None]}
    assert Table(polars.Series([1, 2])).to_dict() == Table(pyarrow.array([1, 2])).to_dict() == {"x0": [1, 2]}
    assert not Table([1, 2]).named and not Table(pyarrow.chunked_array([[1]])).named
    assert Table(pandas.Series(["a", 1], name="s")).to_dict() == {"s": ["a", "1"]}


def test_kinds_of_columns():
    table = Table(
        {
            "date": [datetime.date(2020, 1, 31)],
            "decimal": [decimal.Decimal("1.5")],
            "half": np.array([1.5], np.float16),
            "nothing": [None],
            "mixed": ["x"],
            "huge": [2**70],
            "category": pandas.Categorical(["u"]),
        }
    )
    kinds = {name: table.kind(name) for name in table.names}
    assert [name for name, kind in kinds.items() if kind == "category"] == ["date", "mixed", "category"]
    assert table.categories("date") == ["2020-01-31"] and table.numbers("huge")[0] == 2.0**70
    assert np.isnan(table.numbers("nothing")[0]) and table.categories("nothing") == [None]


def test_mixed_columns_are_text():
    mixed = [1, "x", 2.0, 2.5, True, None, float("nan")]
    for source in ({"m": mixed}, pandas.DataFrame({"m": mixed}), [{"m": value} for value in mixed]):
        assert Table(source).categories("m") == ["1", "x", "2", "2.5", "true", None, None]


def test_numbers_as_categories():
    """Whole floats are written as whole numbers; −0 is 0; ids beyond 2⁵³ stay apart."""
    table = Table({"n": [1, 2], "f": [1.0, -0.0], "big": [2**53, 2**53 + 1], "small": [1e-7, 123456789012.0]})
    assert table.categories("n") == ["1", "2"] and table.categories("f") == ["1", "0"]
    assert table.categories("big") == ["9007199254740992", "9007199254740993"]
    assert table.categories("small") == ["1e-07", "123456789012"]
    assert Table({"n": [1, 2]}, categories=["n"]).kind("n") == "category"


def test_codes_are_in_the_order_of_appearance():
    ids, levels = Table(["b", "a", None, "b"]).codes("x0")
    assert ids.tolist() == [0, 1, -1, 0] and levels == ["b", "a"]


def test_csv_reads_categories_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('zip,country,note\n007,NA,"a\nb"\n012,US,\n')
    assert Table(path).to_dict() == {"zip": [7, 12], "country": ["NA", "US"], "note": ["a\nb", None]}
    assert Table(path, categories=["zip"]).categories("zip") == ["007", "012"]
    assert Table(path, columns=["note", "zip"]).names == ["note", "zip"]


def test_dates_of_csv_are_as_written(tmp_path):
    """So that a column that was taken for dates is met again where it is read as text."""
    path = tmp_path / "t.csv"
    path.write_text("day,when,at,n\n2024-01-31,2024-01-31T10:00Z,10:30,1\n,2024-02-01T10:00Z,11:30,2\n")
    written = Table(path, categories=["day", "when", "at"])
    assert written.categories("when") == ["2024-01-31T10:00Z", "2024-02-01T10:00Z"]
    assert Table(path).to_dict() == written.to_dict() and Table(path).kind("n") == "numeric"
    assert OneHot(missing="mean").fit(path).transform(path).sum(axis=1).tolist() == [4.0, 4.0]


def test_csv_kinds_do_not_depend_on_the_first_megabyte(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n\n" + "1\n" * 1_000_000 + "x\n")
    table = Table(path)
    assert table.kind("n") == "category" and table.codes("n").levels == ["1", "x"]


def test_slices_remember_their_rows():
    table = Table({"a": ["1", "2", "x"]}).slice(1, 3)
    assert table.to_dict() == {"a": ["2", "x"]}
    with pytest.raises(FirthError, match=r"Column 'a', row 3 must be a number; got 'x'"):
        table.numbers("a")
    assert Table(["1", " 2 "]).numbers("x0").tolist() == [1, 2]


def test_fingerprints_tell_tables_apart():
    tables = [
        COLUMNS,
        {"a": [1.0]},
        {"a": [1]},
        {"a": ["1"]},
        {"b": [1]},
        {"a": [None]},
        {"a": [2**53]},
        {"a": [2**53 + 1]},
    ]
    assert len({Table(table).fingerprint() for table in tables}) == len(tables)
    assert Table(COLUMNS).fingerprint() == Table(pandas.DataFrame(COLUMNS)).fingerprint()


def test_empty_tables():
    for source in ([], {}, {"a": []}, np.zeros((0, 3)), pandas.DataFrame({"a": pandas.Series([], dtype=str)})):
        table = Table(source)
        assert len(table) == 0 and all(len(table.codes(name).ids) == 0 for name in table.names)
    assert Table({"a": []}).numbers("a").tolist() == [] and Table({"a": []}).categories("a") == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "A Table is made of .*; got int"),
        ({"a": [1], "b": [1, 2]}, "equally long; got {'a': 1, 'b': 2}"),
        ([[1], [2, 3]], "rows of a table must be equally long; got 1 to 2 values"),
        ({"a": [{"b": 1}]}, "Column 'a' holds struct"),
        ({"a": [1, {"b": 1}]}, "Column 'a', row 2 holds a dict"),
        ({"a": [b"x"]}, "Column 'a' holds bytes, not text"),
        ({"a": 5}, "Column 'a' must be a list of values; got int"),
        ({"a": ["\ud800"]}, "not Unicode"),
        ({1: [1], "1": [2]}, "Two columns are called '1'"),
        (np.array([[1j]]), "holds a complex128"),
        (np.zeros((1, 1, 1)), "got ndarray"),
        ("no-such.csv", "There is no file no-such.csv"),
    ],
)
def test_what_is_no_table(source, message):
    with pytest.raises(FirthError, match=message):
        Table(source)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.txt", b"a,b", "read from csv, tsv, jsonl or Parquet; got .*t.txt"),
        ("t.csv", b"", "is not a table: Empty CSV file"),
        ("t.csv", b"a,b\n1\n", "is not a table: .*Expected 2 columns, got 1"),
        ("t.csv", b"a,a\n1,2\n", "Two columns are called 'a'"),
        ("t.csv", b"a\ncaf\xe9\n", "not UTF-8 is converted first: iconv -f LATIN1"),
        ("t.csv", b"caf\xe9,a\n1,2\n", "is not UTF-8 text; convert it first, as in: iconv -f LATIN1"),
        ("t.csv", "a\n1\n".encode("utf-16"), "UTF-16"),
        ("t.csv.gz", b"a,b", "damaged or not gz"),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "line 2: a row must be an object"),
        ("t.jsonl", b"{", "line 1: not valid JSON"),
        ("t.parquet", b"PAR1", "is not Parquet, or damaged"),
    ],
)
def test_bad_files(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FirthError, match=message):
        Table(tmp_path / name)


def test_names_that_are_not_there(tmp_path):
    for settings in ({"columns": ["b"]}, {"categories": ["b"]}):
        with pytest.raises(FirthError, match="no column 'b'; it has a"):
            Table({"a": [1]}, **settings)
    with pytest.raises(FirthError, match="lists of names; got 'a'"):
        Table({"a": [1]}, columns="a")
    with pytest.raises(FirthError, match="no column 'b'"):
        Table({"a": [1]}).numbers("b")
    for place in ("1.csv", "2.csv"):
        (tmp_path / place).write_text("a\n1\n")
    with pytest.raises(FirthError, match=r"A Table is one file; .* matches 2"):
        Table(tmp_path / "*.csv")
