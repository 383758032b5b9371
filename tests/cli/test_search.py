"""`firth index build` and `firth search`: results, resuming after a kill, and errors."""

from __future__ import annotations

import datetime
import json
import math
import signal
import time
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import firth
from firth.index import Index


@pytest.fixture(scope="module")
def records(tmp_path_factory, place):
    """Sentences as JSON lines and csv, with a year and an author."""
    folder = tmp_path_factory.mktemp("records")
    lines = (place / "world.txt").read_text().splitlines()[:3000]
    rows = [
        {"id": f"d{i}", "text": line, "year": 2000 + i % 20, "author": None if i % 5 == 0 else f"a{i % 3}"}
        for i, line in enumerate(lines)
    ]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = "id,text,year,author\n"
    body = "".join(f'{row["id"]},"{row["text"]}",{row["year"]},{row["author"] or ""}\n' for row in rows)
    (folder / "docs.csv").write_text(head + body)
    return folder


@pytest.fixture(scope="module")
def indexed(records, place):
    from click.testing import CliRunner

    from firth.cli.main import cli

    target = records / "index"
    options = ["--key", "id", "--column", "text", "--attributes", "year,author"]
    command = [
        "index",
        "build",
        str(place / "model"),
        str(records / "docs.jsonl"),
        "-o",
        str(target),
        *options,
        "--json",
    ]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout)
    assert (counts["rows"], counts["status"]) == (3000, "indexed")
    return target


def test_a_text_finds_itself(call, indexed, records):
    text = json.loads((records / "docs.jsonl").read_text().splitlines()[7])["text"]
    result = call("search", indexed, text, "-k", 3, "--mode", "vector")
    assert result.exit_code == 0, result.output
    header, first, *rest = result.stdout.splitlines()
    assert header.split() == ["score", "key", "text"] and len(rest) == 2
    assert first.split()[:2] == ["1", "1.0000"] and text[:60] in first


def test_search_as_json_equals_the_library(call, indexed, model):
    rows = json.loads(call("search", indexed, "the queen of the country", "-k", 5, "--mode", "vector", "--json").stdout)
    index = Index.open(indexed, firth.load(model))
    hits = index.search("the queen of the country", 5)
    assert [row["key"] for row in rows] == [hit.key for hit in hits]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["attributes"]["text"] == hits[0].attributes["text"] and "because" not in rows[0]


@pytest.mark.parametrize("mode", ["vector", "words", "both"])
def test_filters(call, indexed, records, mode):
    text = json.loads((records / "docs.jsonl").read_text().splitlines()[7])["text"]
    where = 'year >= 2015 and author in ("a1", "a2")'
    rows = json.loads(call("search", indexed, text, "--where", where, "--mode", mode, "--json").stdout)
    assert len(rows) == 10
    assert all(row["attributes"]["year"] >= 2015 and row["attributes"]["author"] in ("a1", "a2") for row in rows)
    condition = "author == None and year == 2001"
    none = call("search", indexed, text, "--where", condition)
    assert none.exit_code == 0 and none.stdout == "" and none.stderr.startswith("note: ")
    assert json.loads(call("search", indexed, text, "--where", condition, "--json").stdout) == []


def test_csv_gives_the_same_index_as_json_lines(call, records, indexed, model):
    """Numbers stay numbers and an empty field is missing, although the cells of csv are strings."""
    target = records / "from-csv"
    options = ("--key", "id", "--column", "text", "--attributes", "year,author")
    assert call("index", "build", model, records / "docs.csv", "-o", target, *options).exit_code == 0
    a, b = Index.open(indexed), Index.open(target)
    assert str(a.columns["year"]) == str(b.columns["year"]) == "int64"
    assert [len(index.search("king", 100, mode="words", where="year > 2010")) for index in (a, b)]
    assert a.attributes("d7") == b.attributes("d7")


def test_attribute_types_come_from_all_rows(call, model, tmp_path, monkeypatch):
    """Integers then fractions, missing then numbers, numbers then words."""
    monkeypatch.setattr("firth.cli.index.build.BATCH", 2)
    monkeypatch.setattr("firth.cli.index.build.COMMIT", 2)
    values: dict[str, list[Any]] = {
        "price": [1, 0, 2.5, 3],
        "late": [None, None, 5, None],
        "mixed": [1, 2, "n/a", ""],
        "texts": ["1", "", "2.5", "3"],  # as csv has them
    }
    rows = [{"text": "king", **{name: each[i] for name, each in values.items()}} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call(
        "index", "build", model, tmp_path / "rows.jsonl", "-o", tmp_path / "i", "--attributes", ",".join(values)
    )
    assert done.exit_code == 0, done.output
    index = Index.open(tmp_path / "i")
    kinds = {name: str(kind) for name, kind in index.columns.items() if name in values}
    assert kinds == {"price": "double", "late": "int64", "mixed": "string", "texts": "double"}
    stored = [index.attributes(str(number)) for number in (1, 2, 3, 4)]
    expected = {**values, "mixed": ["1", "2", "n/a", ""], "texts": [1, None, 2.5, 3]}
    assert {name: [row[name] for row in stored] for name in values} == expected


def test_attributes_that_json_cannot_represent(call, model, tmp_path):
    day = datetime.date(2024, 5, 1)
    table = {"text": ["king", "queen"], "days": [[day], []], "share": [math.inf, 0.5], "of": [{"day": day}] * 2}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    options = ("--column", "text", "--attributes", "days,share,of")
    assert call("index", "build", model, tmp_path / "rows.parquet", "-o", tmp_path / "i", *options).exit_code == 0
    attributes = json.loads(call("search", tmp_path / "i", "king", "-k", 1, "--json").stdout)[0]["attributes"]
    assert attributes == {"text": "king", "days": ["2024-05-01"], "share": None, "of": {"day": "2024-05-01"}}


def test_explain(call, indexed):
    rows = json.loads(call("search", indexed, "king", "--explain", "--mode", "words", "-k", 2, "--json").stdout)
    texts = [row["attributes"]["text"].lower() for row in rows]
    assert all("king" in text for text in texts)
    assert all(why["query"] == "king" for row in rows for why in row["because"])
    assert any(why["text"] == "king" for why in rows[0]["because"])
    lines = call("search", indexed, "king", "--explain", "-k", 2).stdout
    assert "because of" in lines and "king–" in lines


def test_the_same_command_builds_once(call, refused, model, text, tmp_path):
    command = ("index", "build", model, text, "-o", tmp_path / "index")
    assert "12,000 texts" in call(*command).stdout
    before = (tmp_path / "index" / "index.json").read_bytes()
    assert "already finished" in call(*command).stdout
    assert (tmp_path / "index" / "index.json").read_bytes() == before
    message = refused("other_run", *command, "--metric", "dot", reason="metric was 'cosine', now 'dot'")
    assert "--overwrite" in message
    (tmp_path / "index" / "notes.txt").write_text("mine")
    assert "notes.txt" in refused("unsafe_output", *command, "--metric", "dot", "--overwrite")
    (tmp_path / "index" / "notes.txt").unlink()
    assert Index.open(tmp_path / "index").space.metric == "cosine"
    assert "(indexed" in call(*command, "--metric", "dot", "--overwrite").stdout
    assert Index.open(tmp_path / "index").space.metric == "dot"


def test_a_killed_run_resumes(call, refused, start, model, tmp_path):
    """Killed after some commits, the same command adds the rest: nothing is missing or duplicated."""
    lines = [f"the king met the queen number{i}" for i in range(80_000)]
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n")
    target = tmp_path / "index"
    command = ("index", "build", model, tmp_path / "many.txt", "-o", target)
    process = start(*command)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (target / "index.json").is_file() and json.loads((target / "index.json").read_text())["commit"] >= 1:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    begun = Index.open(target)
    assert 0 < len(begun) < 80_000 and begun.metadata["finished"] is False
    assert "yes" in next(line for line in call("info", target).stdout.splitlines() if line.startswith("unfinished"))
    assert json.loads(call("search", target, "king", "--json").stderr)["code"] == "unfinished_index"
    refused("wrong_input", "query", "neighbors", target, "king", path=target)
    counts = json.loads(call(*command, "--json").stdout)
    assert (counts["status"], counts["rows"]) == ("resumed", 80_000)
    index = Index.open(target)
    assert len(index) == 80_000 and {"1", "40000", "80000"} <= {key for key in ("1", "40000", "80000") if key in index}
    assert [hit.key for hit in index.search("number79999", mode="words")] == ["80000"]


def test_info_and_verify(call, indexed):
    fields = json.loads(call("info", indexed, "--json").stdout)
    assert (fields["kind"], fields["rows"], fields["metric"], fields["columns"]["year"]) == (
        "index",
        3000,
        "cosine",
        "int64",
    )
    assert call("verify", indexed).exit_code == 0


def test_altered_files_are_named(call, refused, model, tmp_path):
    (tmp_path / "few.txt").write_text("the king\nthe queen\n")
    assert call("index", "build", model, tmp_path / "few.txt", "-o", tmp_path / "index").exit_code == 0
    path = tmp_path / "index" / "segment-1.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    assert "segment-1.arrow" in refused("hash_mismatch", "verify", tmp_path / "index")
    path.write_bytes(data[:-8])
    assert "segment-1.arrow" in refused("damaged_index", "search", tmp_path / "index", "king")


def test_errors_of_search(call, refused, indexed, tmp_path):
    assert "IDX" not in call("search", "--help").stdout  # the argument is INDEX
    assert "firth index build" in refused("not_found", "search", tmp_path, "king", folder=tmp_path)
    refused("not_found", "search", tmp_path / "none", "king")
    refused("zero_vector", "search", indexed, "zzzz", "--mode", "vector")
    assert "year, author" in refused("unknown_column", "search", indexed, "king", "--where", "month > 3", name="month")
    refused("not_found", "search", indexed, "king", "--model", tmp_path / "none", path=tmp_path / "none")
    refused("invalid_value", "search", indexed, "king", "-k", 0, got=0)


def test_errors_of_index_build(call, refused, model, text, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "two.jsonl").write_text('{"body": "king", "text": "queen"}\n')
    (tmp_path / "twice.jsonl").write_text('{"id": "a", "text": "king"}\n{"id": "a", "text": "queen"}\n')
    (tmp_path / "blank.txt").write_text("king\n\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 king\n")
    (tmp_path / "once.jsonl").write_text('{"id": "a", "text": "king"}\n')
    build, output = ("index", "build", model), ("-o", tmp_path / "i")
    refused("empty_data", *build, tmp_path / "empty.txt", *output)
    refused("unknown_column", *build, text, *output, "--attributes", "year", name="year")
    columns = ("--column", "body", "--attributes", "text")
    refused("duplicate_name", *build, tmp_path / "two.jsonl", *columns, *output, column="body")
    assert "--key" in refused("duplicate_name", *build, tmp_path / "twice.jsonl", *output, "--key", "id")
    assert not list(tmp_path.glob("i*"))  # a failure before the first commit leaves nothing
    blank = call(*build, tmp_path / "blank.txt", "-o", tmp_path / "blank", "--json")
    note = json.loads(blank.stderr)
    assert note["code"] == "unknown_words" and note["text"].startswith("1 texts have a zero vector")
    latin = call(*build, tmp_path / "latin.txt", "-o", tmp_path / "latin", "--json")
    assert json.loads(latin.stderr.splitlines()[-1])["code"] == "invalid_utf8"
    assert call(*build, tmp_path / "once.jsonl", *output, "--key", "id").exit_code == 0
    refused("output_exists", *build, tmp_path / "twice.jsonl", "-o", text)


def test_another_model_is_refused(call, refused, indexed, text, tmp_path):
    other = tmp_path / "other"
    assert call("train", "skipgram", text, "-o", other, "--dim", 30, "--epochs", 1, "--seed", 2).exit_code == 0
    refused("model_mismatch", "search", indexed, "king", "--model", other)


def test_other_models(call, refused, text, tmp_path):
    """A document model (LSA) is indexed as well; a table model is not."""
    assert call("train", "lsa", text, "-o", tmp_path / "lsa", "--dim", 10).exit_code == 0
    assert call("index", "build", tmp_path / "lsa", text, "-o", tmp_path / "index").exit_code == 0
    refused("unsupported_model", "search", tmp_path / "index", "king", "--explain")
    (tmp_path / "table.csv").write_text("colour,size\nred,1\nblue,2\n")
    table = tmp_path / "table"
    assert call("train", "onehot", tmp_path / "table.csv", "-o", table).exit_code == 0
    refused("unsupported_model", "index", "build", table, text, "-o", tmp_path / "o", path=table, method="onehot")
