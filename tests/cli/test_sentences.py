"""`firth embed` with a BERT, into files and shards; `firth pooling`; `firth evaluate --sentences`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

import firth
from firth.data.world import World
from firth.nets.bert import Bert
from firth.transformers.bert_model import BertModel, size_of
from firth.transformers.pooling import Pooling

SENTENCES = list(World(seed=4).sentences(400))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net that never learned: what its vectors mean is not asked here."""
    torch.manual_seed(2)
    method = firth.BERT(layers=2, dim=16, heads=2, context=32)
    tokenizer = firth.WordPiece(size=300).train(SENTENCES)
    net = Bert(len(tokenizer), size_of(method), masked=False, following=False)
    for part in net.parameters():
        torch.nn.init.normal_(part, std=0.3)
    folder = tmp_path_factory.mktemp("bert") / "model"
    return BertModel(method, net, tokenizer, Pooling(), {}).save(folder)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    table = pyarrow.table({"id": [f"t{n}" for n in range(len(SENTENCES))], "text": SENTENCES})
    pyarrow.parquet.write_table(table, tmp_path / "texts.parquet")
    return tmp_path / "texts.parquet"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Alike are pairs with the same words: layer 0 sees that best."""
    rows = ["sentence1,sentence2,score"]
    for n in range(60):
        other = SENTENCES[n] if n % 3 == 0 else SENTENCES[n + 1 if n % 3 == 1 else n + 90]
        shared = set(SENTENCES[n].split()) & set(other.split())
        rows.append(f'"{SENTENCES[n]}","{other}",{len(shared) / len(set(SENTENCES[n].split())):.3f}')
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def done(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result, *parts):
    assert result.exit_code in (1, 2) and result.stdout == ""
    assert all(part in result.stderr for part in parts) and "Traceback" not in result.stderr, result.stderr


def test_pooling_is_chosen_by_flags(call, bert, texts, tmp_path):
    out = tmp_path / "rows.npy"
    flags = ("--pooling", "max", "--layers", "-2,-1", "--combine", "sum", "--normalize", "--device", "cpu")
    assert "400 rows" in done(call("embed", bert, texts, "-o", out, "--column", "text", *flags))
    pooling = Pooling(how="max", layers=(-2, -1), combine="sum", normalize=True)
    assert np.array_equal(np.load(out), firth.load(bert).embed(SENTENCES, pooling, device="cpu"))


def test_rows_on_standard_output_and_what_is_said(call, bert):
    long = "king " * 100
    result = call("embed", bert, "-", "--precision", "int8", input=f"the king sleeps\n\n☃\n{long}\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["unknown"] for row in rows] == [0, 0, 1, 0] and len(rows[0]["vector"]) == 16
    assert "1 of 4 texts have more than 32 tokens and were cut" in result.stderr
    assert "tokens are unknown to the tokenizer" in result.stderr
    chunked = call("embed", bert, "-", "--long", "chunk", input=f"{long}\n")
    assert chunked.exit_code == 0 and "cut" not in chunked.stderr
    refused(call("embed", bert, "-", "--long", "refuse", input=f"a\n{long}\n"), "Text 2 has", "long=truncate")


def shard_rows(folder: Path) -> pyarrow.Table:
    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in sorted(folder.glob("part-*"))])


def test_shards_hold_what_one_file_holds(call, bert, texts, tmp_path):
    command = ("embed", bert, texts, "--column", "text", "--key", "id")
    done(call(*command, "-o", tmp_path / "whole.parquet"))
    facts = json.loads(done(call(*command, "-o", tmp_path / "parts", "--shard-rows", 90, "--json")))
    assert facts["rows"] == 400
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert names == ["embedding.json", *(f"part-{n:05d}.parquet" for n in range(5))]
    whole = pyarrow.parquet.read_table(tmp_path / "whole.parquet")
    assert shard_rows(tmp_path / "parts").equals(whole)
    done(call(*command, "-o", tmp_path / "arrays", "--shard-rows", 150, "--shards", "npy"))
    parts = sorted((tmp_path / "arrays").glob("*.npy"))
    found = np.concatenate([np.load(path) for path in parts])
    assert [key for path in parts for key in firth.read_vectors(path).keys] == whole["key"].to_pylist()
    assert np.array_equal(found, np.array(whole["vector"].to_pylist(), np.float32))


def test_a_killed_run_goes_on_and_keeps_its_shards(start, bert, texts, tmp_path):
    """Killed in the midst; what is done is not done again, and the end is the same."""
    many = pyarrow.table({"text": [f"{text} {n}" for n in range(30) for text in SENTENCES]})
    pyarrow.parquet.write_table(many, tmp_path / "many.parquet")
    command = ("embed", bert, tmp_path / "many.parquet", "--shard-rows", 2000, "-o")
    process = start(*command, tmp_path / "broken")
    record = tmp_path / "broken" / "embedding.json"
    end = time.monotonic() + 60
    while not (record.exists() and len(json.loads(record.read_text())["shards"]) > 1) and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    told = json.loads(record.read_text())
    names = [f"part-{int(number):05d}.parquet" for number in told["shards"]]
    kept = {name: (tmp_path / "broken" / name).stat().st_mtime_ns for name in names}
    assert 2 <= len(kept) < 6 and told["finished"] == 0
    for name, folder in (("again", "broken"), ("whole", "whole")):
        process = start(*command, tmp_path / folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "12,000 rows" in out and (f"{len(kept):,} shards are there already" in err) == (name == "again")
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "broken").glob("part-*")}
    assert len(times) == 6 and all(times[name] == moment for name, moment in kept.items())
    assert shard_rows(tmp_path / "broken").equals(shard_rows(tmp_path / "whole"))
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("broken", "whole")]
    assert files[0] == files[1]


def test_shards_of_something_else_are_refused(call, bert, texts, model, tmp_path):
    command, folder = ("embed", bert, texts, "--column", "text"), tmp_path / "parts"
    done(call(*command, "-o", folder, "--device", "cpu"))
    command = (*command, "--device", "cpu")
    again = call(*command, "-o", folder)
    assert "finished already" in again.stderr and "400 rows" in again.stdout
    for flags in (("--pooling", "cls"), ("--normalize",), ("--precision", "int8")):
        refused(call(*command, "-o", folder, *flags), "another options")
    assert "400 rows" in done(call(*command, "-o", folder, "--no-normalize", "--device", "cpu"))  # says the same
    refused(call(*command, "-o", folder, "--shard-rows", 7), "another rows a shard")
    refused(call("embed", model, texts, "--column", "text", "-o", folder), "another model")
    other = tmp_path / "other.txt"
    other.write_text("a king\n")
    refused(call("embed", bert, other, "-o", folder), "another data")
    refused(call("embed", bert, other, "-o", tmp_path), "holds other files")
    refused(call("embed", bert, "-", "-o", tmp_path / "new", input="a\n"), "give files, not -")


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_only_shards_that_are_lost_or_damaged_are_made_anew(call, bert, texts, tmp_path, kind):
    folder = tmp_path / "parts"
    command = ("embed", bert, texts, "--column", "text", "--shards", kind, "--shard-rows", 50, "-o", folder, "--json")
    facts = json.loads(done(call(*command)))
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / f"part-00002.{kind}").rename(folder / f"part-00009.{kind}")
    damaged = folder / ("part-00005.keys.json" if kind == "npy" else "part-00005.parquet")
    damaged.write_bytes(whole[damaged.name][:-1])
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = call(*command)
    assert json.loads(done(result)) == facts
    notes = [json.loads(line) for line in result.stderr.splitlines()]
    assert [note["code"] for note in notes[:2]] == ["lost_shards", "resumed"]
    assert f"part-00002.{kind}, part-00005.{kind}." in notes[0]["text"] and notes[1]["text"].startswith("6 shards")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    changed = {path.name for path in folder.glob("part-*") if path.stat().st_mtime_ns != times.get(path.name)}
    assert {name[:10] for name in changed} == {"part-00002", "part-00005"}


def test_an_index_takes_the_precision_that_is_asked_for(call, bert, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command, folder = ("index", "build", bert, tmp_path / "a.txt", "--device", "cpu", "-o"), tmp_path / "idx"
    done(call(*command, folder, "--precision", "int8"))
    model, index = firth.load(bert), firth.Index.open(folder)
    expected = {name: model.embed(SENTENCES[:9], precision=name) for name in ("int8", "float32")}
    found = np.stack([index[str(row)] for row in range(1, 10)])
    found, expected = unit(found), {name: unit(rows) for name, rows in expected.items()}
    np.testing.assert_allclose(found, expected["int8"], atol=1e-6)
    assert abs(found - expected["float32"]).max() > 1e-4
    refused(call(*command, folder), "another index")
    done(call(*command, tmp_path / "usual"))
    assert "already finished" in call(*command, tmp_path / "usual", "--precision", "float32").stdout


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("record", [True, False])
def test_what_a_killed_run_was_writing_goes(call, bert, tmp_path, record):
    """Also where it was killed before its record was there."""
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command, folder = ("embed", bert, tmp_path / "a.txt", "-o", tmp_path / "parts"), tmp_path / "parts"
    if record:
        done(call(*command))
    folder.mkdir(exist_ok=True)
    for name in (".embedding.json-8251xpet", ".part-00001.parquet-x7", *([".embedding-1.json-x8"] if record else [])):
        (folder / name).write_text("{")
    done(call(*command))
    assert sorted(path.name for path in folder.iterdir()) == ["embedding.json", "part-00000.parquet"]


def test_a_map_of_the_model_is_no_other_model(call, bert, tmp_path):
    model, texts = tmp_path / "model", tmp_path / "texts.txt"
    shutil.copytree(bert, model)
    texts.write_text("the king\nthe queen\n")
    call("embed", model, texts, "-o", tmp_path / "out")
    (model / "maps").mkdir()
    (model / "maps" / "map.json").write_text("{}")
    assert "finished already" in call("embed", model, texts, "-o", tmp_path / "out").stderr


def test_shards_stay_the_data_s_when_its_file_is_touched(call, bert, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command = ("embed", bert, tmp_path / "a.txt", "-o", tmp_path / "parts")
    done(call(*command))
    os.utime(tmp_path / "a.txt", (1, 1))
    assert "finished already" in call(*command).stderr
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]).upper())  # the same size
    refused(call(*command), "another data")


def test_what_is_odd_is_counted(call, bert, model, tmp_path):
    """Empty texts, texts that were cut and bytes that are no UTF-8; again when the shards are there already."""
    lines = [b"the king", b"", b"  ", b"caf\xe9 \xff\xfe", "\ufffd".encode(), b"king " * 100]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines) + b"\n")
    command = ("embed", bert, tmp_path / "a.txt", "--shard-rows", 4, "--json", "-o")
    tokenizer = firth.load(bert).tokenizer
    read = sum(
        len(ids) for ids in tokenizer.ids_batch([line.decode(errors="replace") for line in lines], special=False)
    )
    for name in ("a.npy", "parts", "parts"):
        result = call(*command, tmp_path / name)
        facts = json.loads(done(result))
        assert facts.pop("output") == str(tmp_path / name) and facts.pop("unknown") < 5
        assert facts == {"rows": 6, "tokens": read, "empty_rows": 3, "zero_rows": 0, "cut_rows": 1, "not_utf8": 3}
        assert "3 of 6 texts are empty" in result.stderr
        assert "3 byte sequences were not valid UTF-8" in result.stderr
    words = json.loads(done(call("embed", model, tmp_path / "a.txt", "--json", "-o", tmp_path / "w.npy")))
    assert words["words"] == 103 and words["empty_rows"] == 3 and "cut_rows" not in words and words["not_utf8"] == 3


def test_keys_that_are_missing_or_no_text_are_refused(call, bert, tmp_path):
    table = pyarrow.table({"id": ["a", None], "text": ["one", "two"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": null, "text": "two"}\n')
    (tmp_path / "a.csv").write_text("id,text\na,one\n,two\n")
    for name, where in (("a.parquet", "row 2"), ("a.jsonl", "line 2"), ("a.csv", "line 3")):
        refused(call("embed", bert, tmp_path / name, "--key", "id"), f"{name}, {where}: the key column 'id' is empty")
    (tmp_path / "b.csv").write_bytes(b"id,text\ncaf\xe9,one\n")
    refused(
        call("embed", bert, tmp_path / "b.csv", "--key", "id"), "line 2: the key caf\\xe9 is not valid UTF-8", "iconv"
    )


def test_words_go_to_shards_too(call, model, text, tmp_path):
    done(call("embed", model, text, "-o", tmp_path / "parts", "--shard-rows", 5000))
    done(call("embed", model, text, "-o", tmp_path / "whole.parquet"))
    assert shard_rows(tmp_path / "parts").equals(pyarrow.parquet.read_table(tmp_path / "whole.parquet"))


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--layers", "a"), "whole numbers"),
        (("--layers", "9"), "A layer must be from 0"),
        (("--max-tokens", "2"), "max_tokens must leave room"),
        (("--max-tokens", "99"), "The model has 32 places"),
        (("--precision", "bf16", "--device", "cpu"), "precision must be auto, float32 or int8"),
        (("--smoothing", "0.1"), "does not average any"),
        (("--shard-rows", "0", "-o", "folder"), "at least 1 row"),
    ],
)
def test_flags_that_make_no_sense_are_refused(call, bert, texts, tmp_path, monkeypatch, flags, part):
    monkeypatch.chdir(tmp_path)
    refused(call("embed", bert, texts, "--column", "text", *flags), part)


def test_flags_of_a_bert_are_refused_for_others(call, model, text, tmp_path):
    for flags in (("--pooling", "cls"), ("--layers", "1"), ("--precision", "int8"), ("--device", "cpu")):
        refused(call("embed", model, text, *flags), "for models such as BERT")
    refused(call("pooling", model, "-o", tmp_path / "x"), "is no BERT")


def test_the_best_pooling_is_chosen_and_saved(call, bert, pairs, tmp_path):
    facts = json.loads(done(call("pooling", bert, "-o", tmp_path / "m", "--choose", pairs, "--normalize", "--json")))
    best, tried = facts["choice"]["best"], facts["choice"]["tried"]
    assert facts["choice"]["pairs"] == facts["choice"]["held_out"] == 30
    assert best["spearman"] == max(each["spearman"] or -1 for each in tried) and len(tried) > 10
    saved = firth.load(tmp_path / "m")
    assert saved.pooling.how == best["how"] and list(saved.pooling.layers) == best["layers"] and saved.pooling.normalize
    whole = json.loads(done(call("evaluate", tmp_path / "m", bert, "--sentences", pairs, "--json")))
    figures = {path: result[str(pairs)]["spearman"] for path, result in whole.items()}
    assert figures[str(tmp_path / "m")] > figures[str(bert)] > 0
    both = (best["spearman"] + best["held_out"]) / 2
    assert abs(figures[str(tmp_path / "m")] - both) < 0.1
    assert "held out (30)" in done(call("pooling", bert, "-o", tmp_path / "n", "--choose", pairs))
    refused(call("pooling", bert, "-o", tmp_path / "o", "--choose", pairs, "--layers", "-2"), "--choose or --layers")


def test_whitened_by_texts(call, bert, texts, pairs, tmp_path):
    flags = ("--whiten", texts, "--column", "text", "--dim", 5)
    assert "5 dimensions" in done(call("pooling", bert, "-o", tmp_path / "m", *flags))
    rows = firth.load(tmp_path / "m").embed(SENTENCES, device="cpu")
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(5), atol=1e-2)
    facts = json.loads(call("info", tmp_path / "m", "--json").stdout)["pooling"]
    assert facts["projected"] and facts["dim"] == 5
    refused(call("pooling", bert, "-o", tmp_path / "n", "--whiten", texts, "--column", "text", "--dim", 17), "1 to 15")
    refused(call("pooling", bert, "-o", tmp_path / "n", "--dim", 3), "--whiten")
    assert "Whitening" not in call("embed", tmp_path / "m", texts, "--column", "text", "--layers", "-1").stderr
    other = call("embed", tmp_path / "m", texts, "--column", "text", "--pooling", "max")
    assert "Whitening is of the model's own pooling" in other.stderr
    refused(call("pooling", tmp_path / "m", "-o", tmp_path / "n", "--choose", pairs), "Choose before that")
    refused(call("pooling", bert, "-o", tmp_path / "m"), "exists")


def test_bad_pairs_are_refused(call, bert, tmp_path):
    for name, text, part in (
        ("a.csv", "one,two\n", "has no pairs"),
        ("b.csv", "one,two,1\nthree,four,x\n", "row 2"),
        ("c.txt", "one two 1\n", ".csv, .tsv or .jsonl"),
        ("d.jsonl", "{broken\n", "can't be read as jsonl"),
        ("e.csv", "one,two,1\n", "at least 20"),
        ("g.csv", "one,two,1\n" * 30, "scores that differ"),
    ):
        (tmp_path / name).write_text(text)
        refused(call("pooling", bert, "-o", tmp_path / "x", "--choose", tmp_path / name), part)
    (tmp_path / "f.csv").write_bytes(b"\xff\xfe,a,1\n")
    refused(call("evaluate", bert, "--sentences", tmp_path / "f.csv"), "not UTF-8")
    refused(call("evaluate", bert, "--sentences", tmp_path / "no.csv"), "no.csv")


def test_a_bert_becomes_onnx(call, bert, model, tmp_path):
    assert "an ONNX model of" in done(call("convert", bert, tmp_path / "m.onnx"))
    assert (tmp_path / "m.onnx").stat().st_size > 10_000
    refused(call("convert", model, tmp_path / "n.onnx"), "models such as BERT; skipgram is none")
