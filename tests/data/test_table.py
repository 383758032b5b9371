"""Tables from every kind of source, and the types of their columns."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from refusing import refuses

from firth import OneHot, Table
from firth.data.readers import ICONV

COLUMNS = {"color": ["red", None, "blue"], "age": [30.0, None, 2.5], "member": [True, False, None]}


def sources(folder):
    """Yield the same table in every kind of source."""
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


def test_column_types():
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
    """Integral floats are written as integers; −0 is 0; ids beyond 2⁵³ stay distinct."""
    table = Table({"n": [1, 2], "f": [1.0, -0.0], "big": [2**53, 2**53 + 1], "small": [1e-7, 123456789012.0]})
    assert table.categories("n") == ["1", "2"] and table.categories("f") == ["1", "0"]
    assert table.categories("big") == ["9007199254740992", "9007199254740993"]
    assert table.categories("small") == ["1e-07", "123456789012"]
    assert Table({"n": [1, 2]}, categories=["n"]).kind("n") == "category"


def test_codes_are_in_order_of_first_occurrence():
    ids, levels = Table(["b", "a", None, "b"]).codes("x0")
    assert ids.tolist() == [0, 1, -1, 0] and levels == ["b", "a"]


def test_categories_in_csv_are_read_as_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('zip,country,note\n007,NA,"a\nb"\n012,US,\n')
    assert Table(path).to_dict() == {"zip": [7, 12], "country": ["NA", "US"], "note": ["a\nb", None]}
    assert Table(path, categories=["zip"]).categories("zip") == ["007", "012"]
    assert Table(path, columns=["note", "zip"]).names == ["note", "zip"]


def test_dates_in_csv_are_read_as_written(tmp_path):
    """The values do not depend on whether a column is recognized as dates."""
    path = tmp_path / "t.csv"
    path.write_text("day,when,at,n\n2024-01-31,2024-01-31T10:00Z,10:30,1\n,2024-02-01T10:00Z,11:30,2\n")
    written = Table(path, categories=["day", "when", "at"])
    assert written.categories("when") == ["2024-01-31T10:00Z", "2024-02-01T10:00Z"]
    assert Table(path).to_dict() == written.to_dict() and Table(path).kind("n") == "numeric"
    assert OneHot(missing="mean").fit(path).transform(path).sum(axis=1).tolist() == [4.0, 4.0]


def test_column_types_depend_on_the_whole_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n\n" + "1\n" * 1_000_000 + "x\n")
    table = Table(path)
    assert table.kind("n") == "category" and table.codes("n").levels == ["1", "x"]


def test_errors_in_slices_name_the_original_row():
    table = Table({"a": ["1", "2", "x"]}).slice(1, 3)
    assert table.to_dict() == {"a": ["2", "x"]}
    with refuses("malformed_data", where="Column 'a', row 3", got="x"):
        table.numbers("a")
    assert Table(["1", " 2 "]).numbers("x0").tolist() == [1, 2]


def test_different_tables_have_different_fingerprints():
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
    frame = pandas.DataFrame({"a": pandas.Series([], dtype=str)})
    sources: list[Any] = [[], {}, {"a": []}, np.zeros((0, 3)), frame]
    for source in sources:
        table = Table(source)
        assert len(table) == 0 and all(len(table.codes(name).ids) == 0 for name in table.names)
    assert Table({"a": []}).numbers("a").tolist() == [] and Table({"a": []}).categories("a") == []


@pytest.mark.parametrize(
    ("source", "code", "values"),
    [
        (5, "invalid_type", {"got": "int"}),
        ({"a": [1], "b": [1, 2]}, "shape_mismatch", {"got": {"a": 1, "b": 2}}),
        ([[1], [2, 3]], "shape_mismatch", {"shortest": 1, "longest": 2}),
        ({"a": [{"b": 1}]}, "invalid_type", {"name": "a", "got": "struct<b: int64>"}),
        ({"a": [1, {"b": 1}]}, "invalid_type", {"name": "a", "row": 2, "got": "dict"}),
        ({"a": [b"x"]}, "invalid_encoding", {"name": "a", "iconv": ICONV}),
        ({"a": 5}, "invalid_type", {"name": "a", "got": "int"}),
        ({"a": [1, 10**400]}, "out_of_range", {"name": "a", "row": 2}),
        ([{"a": -(10**5000)}], "out_of_range", {"name": "a", "row": 1}),
        ({"a": ["\ud800"]}, "invalid_encoding", {"name": "a"}),
        ({1: [1], "1": [2]}, "duplicate_name", {"name": "1"}),
        (np.array([[1j]]), "invalid_type", {"got": "complex128"}),
        (np.zeros((1, 1, 1)), "invalid_type", {"got": "ndarray"}),
        ("no-such.csv", "not_found", {"path": "no-such.csv"}),
    ],
)
def test_invalid_sources_are_refused(source, code, values):
    with refuses(code, **values):
        Table(source)


@pytest.mark.parametrize(
    ("name", "data", "code", "values", "reason"),
    [
        ("t.txt", b"a,b", "unknown_format", {}, ""),
        ("t.csv", b"", "malformed_data", {"expected": "a table"}, "Empty CSV file"),
        ("t.csv", b"a,b\n1\n", "malformed_data", {"expected": "a table"}, "Expected 2 columns, got 1"),
        ("t.csv", b"a,a\n1,2\n", "duplicate_name", {"name": "a"}, ""),
        ("t.csv", b"a\ncaf\xe9\n", "invalid_encoding", {"name": "a", "iconv": ICONV}, ""),
        ("t.csv", b"caf\xe9,a\n1,2\n", "invalid_encoding", {"iconv": ICONV}, ""),
        ("t.csv", "a\n1\n".encode("utf-16"), "invalid_encoding", {"encoding": "UTF-16"}, ""),
        ("t.csv.gz", b"a,b", "malformed_data", {"compression": "gz"}, ""),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "malformed_data", {"number": 2, "got": "[1]"}, ""),
        ("t.jsonl", b"{", "malformed_data", {"number": 1}, "Expecting property name"),
        ("t.parquet", b"PAR1", "malformed_data", {}, "Parquet"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, data, code, values, reason):
    (tmp_path / name).write_bytes(data)
    with refuses(code, **values) as error:
        Table(tmp_path / name)
    assert reason in error.value.values.get("reason", "")
    assert "name" in values or str(error.value.values["path"]) == str(tmp_path / name)


def test_unknown_columns_and_several_files_are_refused(tmp_path):
    for settings in ({"columns": ["b"]}, {"categories": ["b"]}):
        with refuses("unknown_column", name="b", available="a"):
            Table({"a": [1]}, **settings)
    with refuses("invalid_type", got="a"):
        Table({"a": [1]}, columns="a")
    with refuses("unknown_column", name="b"):
        Table({"a": [1]}).numbers("b")
    for name in ("1.csv", "2.csv"):
        (tmp_path / name).write_text("a\n1\n")
    with refuses("wrong_input", source=tmp_path / "*.csv", files=2):
        Table(tmp_path / "*.csv")
