"""`firth embed` with a BERT, to files and shards; `firth pooling`; `firth evaluate sentences`."""

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
from firth.nets.encoder import Encoder
from firth.transformers.bert_files import size_of
from firth.transformers.bert_model import BertModel
from firth.transformers.pooling import Pooling

SENTENCES = list(World(seed=4).sentences(400))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with random weights."""
    torch.manual_seed(2)
    method = firth.BERT(layers=2, dim=16, heads=2, context_length=32)
    tokenizer = firth.WordPiece(size=300).train(SENTENCES)
    net = Encoder(len(tokenizer), size_of(method), masked=False, next_sentence=False)
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
    """Pairs whose score is the share of common words, which layer 0 represents best."""
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


def test_pooling_flags(call, bert, texts, tmp_path):
    out = tmp_path / "rows.npy"
    flags = ("--pooling", "max", "--layers", "-2,-1", "--combine", "sum", "--normalize", "--device", "cpu")
    assert "400 rows" in done(call("embed", bert, texts, "-o", out, "--column", "text", *flags))
    pooling = Pooling(how="max", layers=(-2, -1), combine="sum", normalize=True)
    assert np.array_equal(np.load(out), firth.load(bert, firth.BERT).embed(SENTENCES, pooling=pooling, device="cpu"))


def test_smoothing_of_a_model_of_words(call, refused, bert, model, tmp_path):
    """`firth pooling --smoothing` writes a model that every command uses with this smoothing."""
    done(call("pooling", model, "-o", tmp_path / "smooth", "--smoothing", 0.001))
    flags = ("-o", tmp_path / "rows.npy")
    (tmp_path / "texts.txt").write_text("the king and the queen\nthe bread\n")
    for path, given in ((model, ("--smoothing", 0.001)), (tmp_path / "smooth", ())):
        done(call("embed", path, tmp_path / "texts.txt", *flags, *given))
        rows = np.load(tmp_path / "rows.npy")
        expected = firth.load(model, firth.SkipGram).embed(["the king and the queen", "the bread"], smoothing=0.001)
        assert np.array_equal(rows, expected)
    refused("unsupported_model", "pooling", bert, "-o", tmp_path / "x", "--smoothing", 0.001)
    refused("invalid_value", "pooling", model, "-o", tmp_path / "x", "--smoothing", -1, option="smoothing", got=-1.0)


def test_standard_output_and_notes(call, refused, bert, tmp_path):
    long = "king " * 100
    result = call("embed", bert, "-", "--precision", "int8", input=f"the king sleeps\n\n☃\n{long}\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["unknown"] for row in rows] == [0, 0, 1, 0] and len(rows[0]["vector"]) == 16
    assert "note: 1 of 4 texts have more than 32 tokens" in result.stderr
    assert "tokens are unknown to the tokenizer" in result.stderr
    chunked = call("embed", bert, "-", "--long", "chunk", input=f"{long}\n")
    assert chunked.exit_code == 0 and chunked.stderr == ""
    command = ("embed", bert, "-", "--long", "refuse", "-o", tmp_path / "x.npy")
    assert "Text 2 " in refused("text_too_long", *command, input=f"a\n{long}\n")


def shard_rows(folder: Path) -> pyarrow.Table:
    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in sorted(folder.glob("part-*"))])


def test_shards_equal_one_file(call, bert, texts, tmp_path):
    command = ("embed", bert, texts, "--column", "text", "--key", "id")
    done(call(*command, "-o", tmp_path / "whole.parquet"))
    counts = json.loads(done(call(*command, "-o", tmp_path / "parts", "--shard-rows", 90, "--json")))
    assert counts["rows"] == 400
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert names == ["embedding.json", *(f"part-{n:05d}.parquet" for n in range(5))]
    whole = pyarrow.parquet.read_table(tmp_path / "whole.parquet")
    assert shard_rows(tmp_path / "parts").equals(whole)
    done(call(*command, "-o", tmp_path / "arrays", "--shard-rows", 150, "--shards", "npy"))
    parts = sorted((tmp_path / "arrays").glob("*.npy"))
    matrix = np.concatenate([np.load(path) for path in parts])
    assert [key for path in parts for key in firth.read_vectors(path).keys] == whole["key"].to_pylist()
    assert np.array_equal(matrix, np.array(whole["vector"].to_pylist(), np.float32))


def test_a_killed_run_resumes_and_keeps_its_shards(start, bert, texts, tmp_path):
    """Finished shards are not computed again, and the result is the same."""
    many = pyarrow.table({"text": [f"{text} {n}" for n in range(30) for text in SENTENCES]})
    pyarrow.parquet.write_table(many, tmp_path / "many.parquet")
    command = ("embed", bert, tmp_path / "many.parquet", "--shard-rows", 2000, "-o")
    process = start(*command, tmp_path / "broken")
    records = tmp_path / "broken" / ".shards"
    end = time.monotonic() + 60
    while len(list(records.glob("*.json"))) < 2 and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    names = [f"part-{path.stem}.parquet" for path in records.glob("*.json")]
    times_before = {name: (tmp_path / "broken" / name).stat().st_mtime_ns for name in names}
    record = json.loads((tmp_path / "broken" / "embedding.json").read_text())
    assert 2 <= len(times_before) < 6 and record["finished"] == 0
    for name, folder in (("again", "broken"), ("whole", "whole")):
        process = start(*command, tmp_path / folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        resumed = f"{len(times_before):,} shards are already finished" in err
        assert "12,000 rows" in out and resumed == (name == "again")
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "broken").glob("part-*")}
    assert len(times) == 6 and all(times[name] == moment for name, moment in times_before.items())
    assert shard_rows(tmp_path / "broken").equals(shard_rows(tmp_path / "whole"))
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("broken", "whole")]
    assert files[0] == files[1]


def test_shards_of_another_run_are_refused(call, refused, bert, texts, model, tmp_path):
    folder, output = tmp_path / "parts", ("-o", tmp_path / "parts")
    command = ("embed", bert, texts, "--column", "text", "--device", "cpu")
    done(call(*command, *output))
    again = call(*command, *output, "--json")
    assert json.loads(again.stderr)["code"] == "already_finished" and json.loads(again.stdout)["rows"] == 400
    for flags in (("--pooling", "cls"), ("--normalize",), ("--precision", "int8")):
        refused("other_run", *command, *output, *flags, folder=folder, different="options")
    assert "400 rows" in done(call(*command, *output, "--no-normalize", "--device", "cpu"))  # the default
    refused("other_run", *command, *output, "--shard-rows", 7, different="rows per shard")
    assert "model" in refused("other_run", "embed", model, texts, "--column", "text", *output)
    other = tmp_path / "other.txt"
    other.write_text("a king\n")
    assert "data" in refused("other_run", "embed", bert, other, *output)
    refused("unsafe_output", "embed", bert, other, "-o", tmp_path, folder=tmp_path)
    refused("conflicting_options", "embed", bert, "-", "-o", tmp_path / "new", input="a\n")


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_only_missing_or_damaged_shards_are_computed(call, bert, texts, tmp_path, kind):
    folder = tmp_path / "parts"
    command = ("embed", bert, texts, "--column", "text", "--shards", kind, "--shard-rows", 50, "-o", folder, "--json")
    counts = json.loads(done(call(*command)))
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / f"part-00002.{kind}").rename(folder / f"part-00009.{kind}")
    damaged = folder / ("part-00005.keys.json" if kind == "npy" else "part-00005.parquet")
    damaged.write_bytes(whole[damaged.name][:-1])
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = call(*command)
    assert json.loads(done(result)) == counts
    notes = [json.loads(line) for line in result.stderr.splitlines()]
    assert [note["code"] for note in notes[:2]] == ["lost_shards", "resumed"]
    assert f"part-00002.{kind}, part-00005.{kind}." in notes[0]["text"] and notes[1]["text"].startswith("6 shards")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    changed = {path.name for path in folder.glob("part-*") if path.stat().st_mtime_ns != times.get(path.name)}
    assert {name[:10] for name in changed} == {"part-00002", "part-00005"}


def test_an_index_with_another_precision(call, refused, bert, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command, folder = ("index", "build", bert, tmp_path / "a.txt", "--device", "cpu", "-o"), tmp_path / "idx"
    done(call(*command, folder, "--precision", "int8"))
    model, index = firth.load(bert, firth.BERT), firth.Index.open(folder)
    expected = {name: model.embed(SENTENCES[:9], precision=name) for name in ("int8", "float32")}
    rows = np.stack([index[str(row)] for row in range(1, 10)])
    rows, expected = unit(rows), {name: unit(each) for name, each in expected.items()}
    np.testing.assert_allclose(rows, expected["int8"], atol=1e-6)
    assert abs(rows - expected["float32"]).max() > 1e-4
    refused("other_run", *command, folder, path=folder)
    done(call(*command, tmp_path / "usual"))
    assert "already finished" in call(*command, tmp_path / "usual", "--precision", "float32").stdout


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("record", [True, False])
def test_temporary_files_of_a_killed_run_are_removed(call, bert, tmp_path, record):
    """Even if it was killed before its record was written."""
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command, folder = ("embed", bert, tmp_path / "a.txt", "-o", tmp_path / "parts"), tmp_path / "parts"
    if record:
        done(call(*command))
    folder.mkdir(exist_ok=True)
    for name in (".embedding.json-8251xpet", ".part-00001.parquet-x7", *([".embedding-1.json-x8"] if record else [])):
        (folder / name).write_text("{")
    done(call(*command))
    assert sorted(path.name for path in folder.iterdir()) == ["embedding.json", "part-00000.parquet"]


def test_a_saved_map_does_not_change_the_model(call, bert, tmp_path):
    model, texts = tmp_path / "model", tmp_path / "texts.txt"
    shutil.copytree(bert, model)
    texts.write_text("the king\nthe queen\n")
    call("embed", model, texts, "-o", tmp_path / "out")
    (model / "maps").mkdir()
    (model / "maps" / "map.json").write_text("{}")
    again = call("embed", model, texts, "-o", tmp_path / "out", "--json")
    assert json.loads(again.stderr)["code"] == "already_finished"


def test_a_touched_file_is_the_same_data(call, refused, bert, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]))
    command = ("embed", bert, tmp_path / "a.txt", "-o", tmp_path / "parts")
    done(call(*command))
    os.utime(tmp_path / "a.txt", (1, 1))
    assert json.loads(call(*command, "--json").stderr)["code"] == "already_finished"
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES[:9]).upper())  # the same size
    refused("other_run", *command, different="data")


def test_empty_truncated_and_invalid_texts_are_counted(call, bert, model, tmp_path):
    """The counts are the same when the shards exist already."""
    lines = [b"the king", b"", b"  ", b"caf\xe9 \xff\xfe", "\ufffd".encode(), b"king " * 100]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines) + b"\n")
    command = ("embed", bert, tmp_path / "a.txt", "--shard-rows", 4, "--json", "-o")
    tokenizer = firth.load(bert, firth.BERT).tokenizer
    read = sum(
        len(ids) for ids in tokenizer.ids_batch([line.decode(errors="replace") for line in lines], special=False)
    )
    for name in ("a.npy", "parts", "parts"):
        result = call(*command, tmp_path / name)
        counts = json.loads(done(result))
        assert counts.pop("output") == str(tmp_path / name) and counts.pop("unknown") < 5
        assert counts == {"rows": 6, "tokens": read, "empty_rows": 3, "zero_rows": 0, "cut_rows": 1, "not_utf8": 3}
        notes = {note["code"]: note["text"] for note in map(json.loads, result.stderr.splitlines()) if "code" in note}
        assert notes["empty_texts"].startswith("3 of 6 ") and notes["invalid_utf8"].startswith("3 ")
    words = json.loads(done(call("embed", model, tmp_path / "a.txt", "--json", "-o", tmp_path / "w.npy")))
    assert words["words"] == 103 and words["empty_rows"] == 3 and "cut_rows" not in words and words["not_utf8"] == 3


def test_missing_and_invalid_keys(refused, bert, tmp_path):
    table = pyarrow.table({"id": ["a", None], "text": ["one", "two"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": null, "text": "two"}\n')
    (tmp_path / "a.csv").write_text("id,text\na,one\n,two\n")
    output = ("-o", tmp_path / "x.npy")
    for name, where in (("a.parquet", "row 2"), ("a.jsonl", "line 2"), ("a.csv", "line 3")):
        message = refused("malformed_data", "embed", bert, tmp_path / name, "--key", "id", *output)
        assert f"{name}, {where}" in message
    (tmp_path / "b.csv").write_bytes(b"id,text\ncaf\xe9,one\n")
    assert "line 2" in refused("invalid_encoding", "embed", bert, tmp_path / "b.csv", "--key", "id", *output)


def test_shards_of_a_word_model(call, model, text, tmp_path):
    done(call("embed", model, text, "-o", tmp_path / "parts", "--shard-rows", 5000))
    done(call("embed", model, text, "-o", tmp_path / "whole.parquet"))
    assert shard_rows(tmp_path / "parts").equals(pyarrow.parquet.read_table(tmp_path / "whole.parquet"))


@pytest.mark.parametrize(
    ("flags", "code", "values"),
    [
        (("--layers", "a"), "invalid_value", {"option": "--layers", "got": "a"}),
        (("--layers", "9"), "invalid_value", {"got": 9}),
        (("--max-tokens", "2"), "invalid_value", {"got": 2}),
        (("--max-tokens", "99"), "text_too_long", {"got": 99}),
        (("--precision", "bf16", "--device", "cpu"), "invalid_value", {"got": "bf16"}),
        (("--smoothing", "0.1"), "unsupported_model", {"method": "bert"}),
        (("--shard-rows", "0", "-o", "folder"), "too_few", {"got": 0}),
    ],
)
def test_invalid_flags(refused, bert, texts, tmp_path, monkeypatch, flags, code, values):
    monkeypatch.chdir(tmp_path)
    refused(code, "embed", bert, texts, "--column", "text", "-o", "x.npy", *flags, **values)


def test_flags_of_a_bert_with_other_models(refused, model, text, tmp_path):
    for flags in (("--pooling", "cls"), ("--layers", "1"), ("--precision", "int8"), ("--device", "cpu")):
        message = refused("unsupported_model", "embed", model, text, "-o", tmp_path / "x.npy", *flags, path=model)
        assert flags[0] in message
    refused("unsupported_model", "pooling", model, "-o", tmp_path / "x", path=model, method="skipgram")


def test_the_best_pooling_is_selected_and_saved(call, refused, bert, pairs, tmp_path):
    printed = done(call("pooling", bert, "-o", tmp_path / "m", "--choose", pairs, "--normalize", "--json"))
    choice = json.loads(printed)["choice"]
    best, tried = choice["best"], choice["tried"]
    assert choice["pairs"] == choice["held_out"] == 30
    assert best["spearman"] == max(each["spearman"] or -1 for each in tried) and len(tried) > 10
    saved = firth.load(tmp_path / "m", firth.BERT)
    assert saved.pooling.how == best["how"] and list(saved.pooling.layers) == best["layers"] and saved.pooling.normalize
    results = json.loads(done(call("evaluate", "sentences", tmp_path / "m", bert, pairs, "--json")))
    correlations = {path: result["spearman"] for path, result in results.items()}
    assert correlations[str(tmp_path / "m")] > correlations[str(bert)] > 0
    both = (best["spearman"] + best["held_out"]) / 2
    assert abs(correlations[str(tmp_path / "m")] - both) < 0.1
    assert "held out (30)" in done(call("pooling", bert, "-o", tmp_path / "n", "--choose", pairs))
    message = refused("usage", "pooling", bert, "-o", tmp_path / "o", "--choose", pairs, "--layers", "-2")
    assert "--choose and --layers" in message


def test_whitening(call, refused, bert, texts, pairs, tmp_path):
    flags = ("--whiten", texts, "--column", "text", "--dim", 5)
    assert "5 dimensions" in done(call("pooling", bert, "-o", tmp_path / "m", *flags))
    rows = firth.load(tmp_path / "m", firth.BERT).embed(SENTENCES, device="cpu")
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(5), atol=1e-2)
    pooling = json.loads(call("info", tmp_path / "m", "--json").stdout)["pooling"]
    assert pooling["projected"] and pooling["dim"] == 5
    output = ("-o", tmp_path / "n")
    refused("no_variation", "pooling", bert, *output, "--whiten", texts, "--column", "text", "--dim", 17, got=17)
    assert "--whiten" in refused("usage", "pooling", bert, *output, "--dim", 3)
    embed = ("embed", tmp_path / "m", texts, "--column", "text", "-o", tmp_path / "x.npy", "--json")
    assert "without_whitening" not in call(*embed, "--layers", "-1").stderr
    assert json.loads(call(*embed, "--pooling", "max").stderr.splitlines()[0])["code"] == "without_whitening"
    refused("conflicting_options", "pooling", tmp_path / "m", *output, "--choose", pairs, path=tmp_path / "m")
    refused("output_exists", "pooling", bert, "-o", tmp_path / "m")


def test_invalid_pairs(refused, bert, tmp_path):
    for name, text, code in (
        ("a.csv", "one,two\n", "empty_data"),
        ("b.csv", "one,two,1\nthree,four,x\n", "malformed_data"),
        ("c.txt", "one two 1\n", "unknown_format"),
        ("d.jsonl", "{broken\n", "malformed_data"),
        ("e.csv", "one,two,1\n", "too_few"),
        ("g.csv", "one,two,1\n" * 30, "no_variation"),
    ):
        (tmp_path / name).write_text(text)
        refused(code, "pooling", bert, "-o", tmp_path / "x", "--choose", tmp_path / name)
    (tmp_path / "f.csv").write_bytes(b"\xff\xfe,a,1\n")
    refused("invalid_encoding", "evaluate", "sentences", bert, tmp_path / "f.csv")
    refused("unreadable_file", "evaluate", "sentences", bert, tmp_path / "no.csv", path=tmp_path / "no.csv")


def test_convert_to_onnx(call, refused, bert, model, tmp_path):
    assert "an ONNX model of" in done(call("convert", bert, tmp_path / "m.onnx"))
    assert (tmp_path / "m.onnx").stat().st_size > 10_000
    refused("unsupported_model", "convert", model, tmp_path / "n.onnx")
