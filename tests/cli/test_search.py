"""`firth index build` and `firth search`: from texts to answers, gone on with after a kill, and what is refused."""

from __future__ import annotations

import datetime
import json
import math
import signal
import time

import pyarrow
import pyarrow.parquet
import pytest

import firth
from firth.index import Index


def refused(result, *parts):
    assert result.exit_code == 1, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("firth: "), result.stderr
    for part in parts:
        assert part in lines[0]


@pytest.fixture(scope="module")
def records(tmp_path_factory, place):
    """Sentences of the world as JSON lines and csv, with a year and an author."""
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
    told = json.loads(result.stdout)
    assert (told["rows"], told["status"]) == (3000, "indexed")
    return target


def test_a_text_finds_itself_and_tells_score_and_snippet(call, indexed, records):
    text = json.loads((records / "docs.jsonl").read_text().splitlines()[7])["text"]
    result = call("search", indexed, text, "-k", 3, "--mode", "vector")
    assert result.exit_code == 0, result.output
    header, first, *rest = result.stdout.splitlines()
    assert header.split() == ["score", "key", "text"] and len(rest) == 2
    assert first.split()[:2] == ["1", "1.0000"] and text[:60] in first


def test_search_as_json_equals_the_library(call, indexed, model):
    found = json.loads(
        call("search", indexed, "the queen of the country", "-k", 5, "--mode", "vector", "--json").stdout
    )
    index = Index.open(indexed, firth.load(model))
    hits = index.search("the queen of the country", 5)
    assert [row["key"] for row in found] == [hit.key for hit in hits]
    assert [row["rank"] for row in found] == [1, 2, 3, 4, 5]
    assert found[0]["attributes"]["text"] == hits[0].attributes["text"] and "because" not in found[0]


@pytest.mark.parametrize("mode", ["vector", "words", "both"])
def test_filters(call, indexed, records, mode):
    text = json.loads((records / "docs.jsonl").read_text().splitlines()[7])["text"]
    where = 'year >= 2015 and author in ("a1", "a2")'
    found = json.loads(call("search", indexed, text, "--where", where, "--mode", mode, "--json").stdout)
    assert len(found) == 10
    assert all(row["attributes"]["year"] >= 2015 and row["attributes"]["author"] in ("a1", "a2") for row in found)
    none = call("search", indexed, text, "--where", "author == None and year == 2001")
    assert none.exit_code == 0 and none.stdout == "" and "Nothing was found" in none.stderr


def test_csv_gives_the_same_index_as_json_lines(call, records, indexed, model):
    """Numbers are numbers, an empty field is none: also where csv has texts only."""
    target = records / "from-csv"
    options = ("--key", "id", "--column", "text", "--attributes", "year,author")
    assert call("index", "build", model, records / "docs.csv", "-o", target, *options).exit_code == 0
    a, b = Index.open(indexed), Index.open(target)
    assert str(a.columns["year"]) == str(b.columns["year"]) == "int64"
    assert [len(index.search("king", 100, mode="words", where="year > 2010")) for index in (a, b)]
    assert a.attributes("d7") == b.attributes("d7")


def test_attributes_that_change_their_kind_on_the_way(call, model, tmp_path, monkeypatch):
    """Whole numbers, then fractions; nothing, then numbers; numbers, then words: all rows decide, not the first."""
    monkeypatch.setattr("firth.cli.index.BATCH", 2)
    monkeypatch.setattr("firth.cli.index.COMMIT", 2)
    values = {
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
    found = [index.attributes(str(number)) for number in (1, 2, 3, 4)]
    right = {**values, "mixed": ["1", "2", "n/a", ""], "texts": [1, None, 2.5, 3]}
    assert {name: [row[name] for row in found] for name in values} == right


def test_json_of_attributes_that_json_has_not(call, model, tmp_path):
    day = datetime.date(2024, 5, 1)
    table = {"text": ["king", "queen"], "days": [[day], []], "share": [math.inf, 0.5], "of": [{"day": day}] * 2}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    options = ("--column", "text", "--attributes", "days,share,of")
    assert call("index", "build", model, tmp_path / "rows.parquet", "-o", tmp_path / "i", *options).exit_code == 0
    found = json.loads(call("search", tmp_path / "i", "king", "-k", 1, "--json").stdout)[0]["attributes"]
    assert found == {"text": "king", "days": ["2024-05-01"], "share": None, "of": {"day": "2024-05-01"}}


def test_explained(call, indexed):
    found = json.loads(call("search", indexed, "king", "--explain", "--mode", "words", "-k", 2, "--json").stdout)
    texts = [row["attributes"]["text"].lower() for row in found]
    assert all("king" in text for text in texts)
    assert all(why["query"] == "king" for row in found for why in row["because"])
    assert any(why["text"] == "king" for why in found[0]["because"])
    lines = call("search", indexed, "king", "--explain", "-k", 2).stdout
    assert "because of" in lines and "king–" in lines


def test_the_same_command_again_does_nothing(call, model, text, tmp_path):
    command = ("index", "build", model, text, "-o", tmp_path / "index")
    assert "12,000 texts" in call(*command).stdout
    before = (tmp_path / "index" / "index.json").read_bytes()
    assert "already finished" in call(*command).stdout
    assert (tmp_path / "index" / "index.json").read_bytes() == before
    refused(call(*command, "--metric", "dot"), "another index (metric was 'cosine', now 'dot')", "--overwrite")
    (tmp_path / "index" / "notes.txt").write_text("mine")
    refused(call(*command, "--metric", "dot", "--overwrite"), "holds other files (notes.txt)")
    (tmp_path / "index" / "notes.txt").unlink()
    assert Index.open(tmp_path / "index").space.metric == "cosine"
    assert "(indexed" in call(*command, "--metric", "dot", "--overwrite").stdout
    assert Index.open(tmp_path / "index").space.metric == "dot"


def test_a_killed_run_goes_on(call, start, model, tmp_path):
    """Killed after some commits, the same command adds the rest: nothing missing, nothing twice."""
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
    assert 0 < len(begun) < 80_000 and begun.about["finished"] is False
    assert "yes" in next(line for line in call("info", target).stdout.splitlines() if line.startswith("unfinished"))
    assert "is unfinished, with " in call("search", target, "king").stderr
    assert "is an index, which `firth search` asks" in call("query", "neighbors", target, "king").stderr
    told = json.loads(call(*command, "--json").stdout)
    assert (told["status"], told["rows"]) == ("resumed", 80_000)
    index = Index.open(target)
    assert len(index) == 80_000 and {"1", "40000", "80000"} <= {key for key in ("1", "40000", "80000") if key in index}
    assert [hit.key for hit in index.search("number79999", mode="words")] == ["80000"]


def test_info_and_verify(call, indexed):
    facts = json.loads(call("info", indexed, "--json").stdout)
    assert (facts["kind"], facts["rows"], facts["metric"], facts["columns"]["year"]) == (
        "index",
        3000,
        "cosine",
        "int64",
    )
    assert call("verify", indexed).stdout.endswith("is as it was written.\n")


def test_altered_files_are_named(call, model, tmp_path):
    (tmp_path / "few.txt").write_text("the king\nthe queen\n")
    assert call("index", "build", model, tmp_path / "few.txt", "-o", tmp_path / "index").exit_code == 0
    path = tmp_path / "index" / "segment-1.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    refused(call("verify", tmp_path / "index"), "segment-1.arrow was changed")
    path.write_bytes(data[:-8])
    refused(call("search", tmp_path / "index", "king"), "segment-1.arrow has", "bytes where index.json says")


def test_mistakes(call, indexed, model, text, tmp_path):
    assert "IDX" not in call("search", "--help").stdout  # the argument is INDEX
    refused(call("search", tmp_path, "king"), "is no index", "`firth index build MODEL DATA` makes one")
    refused(call("search", tmp_path / "none", "king"), "There is no index at")
    refused(call("search", indexed, "zzzz", "--mode", "vector"), "zero vector")
    refused(call("search", indexed, "king", "--where", "month > 3"), "a column 'month'", "year, author")
    refused(call("search", indexed, "king", "--model", tmp_path / "none"), "There is no model at")
    refused(call("search", indexed, "king", "-k", 0), "k must be at least 1")
    (tmp_path / "empty.txt").write_text("")
    refused(call("index", "build", model, tmp_path / "empty.txt", "-o", tmp_path / "i"), "nothing to index")
    refused(
        call("index", "build", model, text, "-o", tmp_path / "j", "--attributes", "year"),
        "plain text, without a column 'year'",
    )
    (tmp_path / "two.jsonl").write_text('{"body": "king", "text": "queen"}\n')
    two = (
        "index",
        "build",
        model,
        tmp_path / "two.jsonl",
        "--column",
        "body",
        "--attributes",
        "text",
        "-o",
        tmp_path / "j",
    )
    refused(call(*two), "calls the texts 'text', here body")
    (tmp_path / "twice.jsonl").write_text('{"id": "a", "text": "king"}\n{"id": "a", "text": "queen"}\n')
    twice = call("index", "build", model, tmp_path / "twice.jsonl", "-o", tmp_path / "k", "--key", "id")
    refused(twice, "'a' stands 2 times", "another column (--key)")
    (tmp_path / "blank.txt").write_text("king\n\n")
    blank = call("index", "build", model, tmp_path / "blank.txt", "-o", tmp_path / "blank")
    assert blank.stderr == "note: 1 texts are zero and found by words only.\n"
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 king\n")
    latin = call("index", "build", model, tmp_path / "latin.txt", "-o", tmp_path / "latin")
    assert "note: 1 byte sequences were not valid UTF-8" in latin.stderr
    assert not list(tmp_path.glob("[ijk]*"))  # what failed before anything was added leaves nothing
    (tmp_path / "once.jsonl").write_text('{"id": "a", "text": "king"}\n')
    assert call("index", "build", model, tmp_path / "once.jsonl", "-o", tmp_path / "k", "--key", "id").exit_code == 0
    refused(call("index", "build", model, tmp_path / "twice.jsonl", "-o", text), "exists")


def test_another_model_is_refused(call, indexed, text, tmp_path):
    other = tmp_path / "other"
    assert call("train", "skipgram", text, "-o", other, "--dim", 30, "--epochs", 1, "--seed", 2).exit_code == 0
    refused(
        call("search", indexed, "king", "--model", other),
        "made with another model (skipgram",
        "than this one (skipgram",
    )


def test_models_that_embed_otherwise(call, text, tmp_path):
    """A language of documents (LSA) is indexed as any other; a table model is not."""
    assert call("train", "lsa", text, "-o", tmp_path / "lsa", "--dim", 10).exit_code == 0
    assert call("index", "build", tmp_path / "lsa", text, "-o", tmp_path / "index").exit_code == 0
    refused(call("search", tmp_path / "index", "king", "--explain"), "lsa makes texts into vectors otherwise")
    (tmp_path / "table.csv").write_text("colour,size\nred,1\nblue,2\n")
    assert call("train", "onehot", tmp_path / "table.csv", "-o", tmp_path / "table").exit_code == 0
    refused(call("index", "build", tmp_path / "table", text, "-o", tmp_path / "other"), "does not embed texts (onehot)")
