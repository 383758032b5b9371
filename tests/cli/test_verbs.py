"""The main commands on a small synthetic corpus."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pyarrow.parquet
import pytest

import firth
from firth.data.world import World


def output(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(result):
    return json.loads(output(result).splitlines()[-1])


def test_train_prints_metrics(call, text, tmp_path):
    command = ("train", "cbow", text, "-o", tmp_path / "m", "--dim", 20, "--epochs", 2, "--no-lowercase")
    metrics = as_json(call(*command, "--json"))
    model = firth.load(tmp_path / "m", firth.CBOW)
    assert metrics["status"] == "trained"
    assert metrics["tokens"] == sum(len(line.split()) for line in text.read_text().splitlines())
    assert metrics["vocabulary"] == len(model.vectors)
    assert metrics["loss"] == metrics["epochs"][-1]["loss"] and len(metrics["epochs"]) == 2
    assert metrics["words_per_second"] == pytest.approx(2 * metrics["tokens"] / metrics["seconds"])
    assert model.method == firth.CBOW(dim=20, epochs=2, lowercase=False, min_count=2)
    again = output(call(*command))
    assert "automatic" in again and "min_count 2" in again  # chosen by the size of the text
    assert "already finished" in again and f"{metrics['tokens']:,}" in again and "firth query neighbors" in again


def test_train_reads_standard_input_and_columns(call, text, tmp_path):
    lines = text.read_text().splitlines()
    rows = "".join(json.dumps({"body": line, "id": number}) + "\n" for number, line in enumerate(lines))
    (tmp_path / "rows.jsonl").write_text(rows)
    options = ("--dim", 8, "--epochs", 1, "--deterministic", "--json")
    piped = as_json(call("train", "skipgram", "-", "-o", tmp_path / "a", *options, input=text.read_text()))
    columns = call("train", "skipgram", tmp_path / "rows.jsonl", "--column", "body", "-o", tmp_path / "b", *options)
    files = [(tmp_path / name / "vectors.safetensors").read_bytes() for name in "ab"]
    assert piped["tokens"] == as_json(columns)["tokens"] and files[0] == files[1]


def test_train_continues_from_a_model(call, model, tmp_path):
    (tmp_path / "more.txt").write_text("the zeppelin flies over the castle\n" * 20)
    command = ("train", "skipgram", tmp_path / "more.txt", "-o", tmp_path / "m", "--start", model, "--dim", 30)
    output(call(*command))
    old, new = firth.load(model, firth.SkipGram), firth.load(tmp_path / "m", firth.SkipGram)
    assert set(old.vectors.keys) < set(new.vectors.keys) and "zeppelin" in new.vectors
    assert as_json(call(*command, "--json"))["status"] == "already finished"


def test_help_has_sections_ranges_and_defaults(call):
    shown = output(call("train", "skipgram", "--help"))
    text = " ".join(shown.split())
    assert re.findall(r"^(\S.*):$", shown, re.MULTILINE) == ["Method options", "Run settings", "Data", "Other"]
    assert "--window INTEGER context words on each side [1–256, default 5]" in text
    assert "--lowercase / --no-lowercase convert text to lowercase [default on]" in text
    assert "--seed INTEGER random seed [at least 0, default 1]" in text


def test_methods(call):
    methods = {method["name"]: method for method in as_json(call("methods", "--json"))}
    assert {"skipgram", "cbow"} <= set(methods)
    window = next(option for option in methods["skipgram"]["options"] if option["name"] == "window")
    expected = {
        "name": "window",
        "kind": "int",
        "default": 5,
        "help": "context words on each side",
        "low": 1,
        "high": 256,
    }
    assert window == {**expected, "path": False}
    assert re.search(r"^cbow +words +word vectors", output(call("methods")), re.MULTILINE)


def test_info_of_a_model_and_of_a_file(call, model, tmp_path):
    fields = as_json(call("info", model, "--json"))
    assert fields["method"] == "skipgram" and fields["options"]["dim"] == 30
    assert fields["tables"]["words"] == {"rows": fields["training"]["vocabulary"], "dim": 30}
    assert re.search(r"^options.dim +30$", output(call("info", model)), re.MULTILINE)
    output(call("convert", model, tmp_path / "v.bin"))
    fields = as_json(call("info", tmp_path / "v.bin", "--json"))
    assert (fields["format"], fields["dim"]) == ("word2vec-binary", 30)


def test_neighbors(call, model, tmp_path):
    vectors = firth.load(model, firth.SkipGram).vectors
    neighbors = as_json(call("query", "neighbors", model, "king", "queen", "-k", 3, "--metric", "euclidean", "--json"))
    assert list(neighbors) == ["king", "queen"]
    assert [hit["key"] for hit in neighbors["queen"]] == [
        hit.key for hit in vectors.neighbors("queen", 3, metric="euclidean")
    ]
    together = as_json(
        call("query", "neighbors", model, "king", "woman", "--negative", "man", "-k", 1, "--restrict", 500, "--json")
    )
    assert together == [hit._asdict() for hit in vectors.neighbors(["king", "woman"], 1, negative="man", restrict=500)]
    header = output(call("query", "neighbors", model, "king", "queen")).splitlines()[0].split()
    assert header == ["king", "queen"]
    output(call("convert", model, tmp_path / "v.txt"))
    assert output(call("query", "neighbors", tmp_path / "v.txt", "king")) == output(
        call("query", "neighbors", model, "king")
    )


def test_analogy_similarity_and_odd_one_out(call, model):
    vectors = firth.load(model, firth.SkipGram).vectors
    hits = as_json(call("query", "analogy", model, "man", "woman", "king", "--mul", "--json"))
    assert hits == [hit._asdict() for hit in vectors.analogy("man", "woman", "king", 5, method="mul")]
    assert float(output(call("query", "similarity", model, "king", "queen"))) == pytest.approx(
        vectors.similarity("king", "queen"), abs=1e-4
    )
    words = ("king", "queen", "prince", "bread")
    odd = firth.odd_one_out(vectors, words)
    assert output(call("query", "odd-one-out", model, *words)).strip() == odd
    assert as_json(call("query", "odd_one_out", model, *words, "--json"))["odd"] == odd


def test_evaluate_analogies_and_similarity(call, refused, model, place, tmp_path):
    questions, pairs = place / "questions.txt", tmp_path / "pairs.tsv"
    pairs.write_text("king\tqueen\t9\nking\tbread\t1\nking\tzeppelin\t0\n")
    expected = firth.evaluate.analogies(firth.load(model, firth.SkipGram).vectors, questions)
    analogies = as_json(call("evaluate", "analogies", model, questions, "--json"))
    assert analogies[str(model)]["total"]["correct"] == expected.total.correct > 0
    assert f"{expected.accuracy:.1%}" in output(call("evaluate", "analogies", model, questions))
    similarity = as_json(call("evaluate", "similarity", model, pairs, "--json"))[str(model)]
    assert similarity["answered"] == 2 and similarity["missing"] == ["zeppelin"]
    output(call("convert", model, tmp_path / "v.npy"))
    both = as_json(call("evaluate", "similarity", model, tmp_path / "v.npy", pairs, "--json"))
    assert list(both) == [str(model), str(tmp_path / "v.npy")] and both[str(model)] == similarity
    shown = output(call("evaluate", "similarity", model, tmp_path / "v.npy", pairs)).splitlines()
    assert shown[0] == str(model) and str(tmp_path / "v.npy") in shown
    refused("usage", "evaluate", "similarity", model)
    refused("usage", "evaluate", model)


def test_embed_writes_one_row_per_line(call, model, tmp_path):
    lines = ["the king sleeps", "", "zeppelin the", "qwerty"]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    pooled = firth.load(model, firth.SkipGram).embed_with_counts(lines)
    for suffix in ("npy", "parquet", "jsonl"):
        counts = as_json(call("embed", model, tmp_path / "in.txt", "-o", tmp_path / f"out.{suffix}", "--json"))
        assert (counts["rows"], counts["unknown"], counts["zero_rows"]) == (4, int(pooled.unknown.sum()), 2)
    assert np.array_equal(np.load(tmp_path / "out.npy"), pooled.matrix)
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert np.array_equal(np.array(table["vector"], dtype=np.float32), pooled.matrix)
    assert table["key"] == ["1", "2", "3", "4"] and table["unknown"] == pooled.unknown.tolist()
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert np.array_equal(np.array([row["vector"] for row in rows], dtype=np.float32), pooled.matrix)
    result = call("embed", model, "-", input="\n".join(lines))
    assert output(result) == (tmp_path / "out.jsonl").read_text()
    assert output(call("embed", model, "-", "-o", "-", input="\n".join(lines))) == result.stdout
    assert (
        f"{pooled.unknown.sum()} of {pooled.unknown.sum() + pooled.known.sum()} words have no vector" in result.stderr
    )
    assert call("embed", model, "-", input="king\n\n").stderr == "note: 1 rows are zero.\n"


def test_embed_in_batches(call, model, text, tmp_path, monkeypatch):
    monkeypatch.setattr("firth.cli.embed_batches.BATCH", 1000)
    output(call("embed", model, text, "-o", tmp_path / "all.npy", "--smoothing", 0.001))
    lines = text.read_text().splitlines()
    assert len(lines) > 10_000
    assert list(firth.read_vectors(tmp_path / "all.npy").keys) == [str(line) for line in range(1, len(lines) + 1)]
    assert np.array_equal(
        np.load(tmp_path / "all.npy"), firth.load(model, firth.SkipGram).embed_with_counts(lines, 0.001).matrix
    )


@pytest.mark.parametrize("suffix", ["txt", "bin", "vec", "glove", "npy", "safetensors"])
def test_convert_and_back(call, model, tmp_path, suffix):
    output(call("convert", model, tmp_path / f"v.{suffix}"))
    output(call("convert", tmp_path / f"v.{suffix}", tmp_path / "back.safetensors"))
    vectors, back = firth.load(model, firth.SkipGram).vectors, firth.read_vectors(tmp_path / "back.safetensors")
    assert list(back.keys) == list(vectors.keys) and np.array_equal(back.matrix, vectors.matrix)


def test_outputs_are_named_in_json(call, model, text, tmp_path):
    vectors = firth.load(model, firth.SkipGram).vectors
    for arguments, fields in (
        (("convert", model, tmp_path / "v.vec"), {"rows": len(vectors), "dim": 30}),
        (("corpus", "world", "--sentences", 5, "-o", tmp_path / "w.txt"), {"sentences": 5, "analogies": None}),
        (("plot", "loss", model, "-o", tmp_path / "loss.svg"), {}),
        (("plot", "zipf", text, "-o", tmp_path / "zipf.svg"), {}),
    ):
        assert as_json(call(*arguments, "--json")) == {**fields, "output": str(tmp_path / arguments[-1])}
        assert (tmp_path / arguments[-1]).stat().st_size > 0
    counts = as_json(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.jsonl", "--json"))
    assert counts["documents"] == len((tmp_path / "p.jsonl").read_text().splitlines())


def test_words_are_lowercased_for_a_lowercase_vocabulary(call, refused, model, tmp_path):
    """A note says so; with a vocabulary that has capitals, Paris is not paris."""
    result = call("query", "neighbors", model, "King", "queen", "-k", 2, "--json")
    plain = as_json(call("query", "neighbors", model, "king", "queen", "-k", 2, "--json"))
    assert as_json(result) == {"King": plain["king"], "queen": plain["queen"]}
    note = json.loads(result.stderr)
    assert (note["event"], note["code"]) == ("note", "lowercased") and "'King'" in note["text"]
    for name, words in (("analogy", ("man", "Woman", "King")), ("similarity", ("King", "Queen"))):
        assert output(call("query", name, model, *words)) == output(call("query", name, model, *map(str.lower, words)))
    together = call("query", "neighbors", model, "King", "--negative", "Man", "-k", 2)
    assert output(together) == output(call("query", "neighbors", model, "king", "--negative", "man", "-k", 2))
    output(call("plot", "map", model, "King", "Queen", "--highlight", "Man", "-o", tmp_path / "m.svg"))
    output(call("plot", "analogies", model, "King:Queen", "man:woman", "-o", tmp_path / "a.svg"))
    (tmp_path / "mixed.txt").write_text("3 2\nking 1 0\nQueen 0 1\nbread 1 1\n")
    assert "'king'" in refused("unknown_key", "query", "neighbors", tmp_path / "mixed.txt", "King", key="King")


def test_vectors_in_one_direction_are_noted(call, model, tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 20)) * 0.1 + 1
    firth.write_vectors(firth.Vectors([f"w{n}" for n in range(50)], rows), tmp_path / "same.vec")
    for arguments in (("w1", "w2"), ("w1", "--together"), ("w1", "--restrict", 10)):
        note = json.loads(call("query", "neighbors", tmp_path / "same.vec", *arguments, "--json").stderr)
        assert note["code"] == "similar_vectors" and "0.99" in note["text"]
    assert call("query", "neighbors", tmp_path / "same.vec", "w1", "--metric", "euclidean").stderr == ""
    assert call("query", "neighbors", model, "king").stderr == ""
    firth.write_vectors(firth.Vectors(["a", "b"], [[1.0, 0.5], [1.0, -0.5]]), tmp_path / "two.vec")
    assert call("query", "neighbors", tmp_path / "two.vec", "a").stderr == ""


def test_a_text_is_not_a_file(call, refused, model):
    for verb, output in (("embed", ("-o", "out.npy")), ("predict", ())):
        assert "(-)" in refused("not_found", verb, model, "a fine text", *output, path="a fine text")
        assert len(call(verb, model, "a fine text " * 1000).stderr) < 300


def test_similarity_of_texts(call, refused, model):
    similarity = as_json(call("query", "similarity", model, "the old king", "the queen", "--texts", "--json"))
    first, second = firth.load(model, firth.SkipGram).embed(["the old king", "the queen"])
    assert similarity["score"] == pytest.approx(firth.similarity(first, second))
    refused("usage", "query", "similarity", model, "a", "b", "--texts", "--table", "words")


def test_convert_to_int8(call, model, tmp_path):
    output(call("convert", model, tmp_path / "v.safetensors", "--dtype", "int8"))
    vectors, small = firth.load(model, firth.SkipGram).vectors, firth.read_vectors(tmp_path / "v.safetensors")
    assert np.abs(vectors.matrix - small.matrix).max() <= np.abs(vectors.matrix).max() / 127 / 2 * 1.001


def test_corpus_world_and_info(call, tmp_path):
    made = ("corpus", "world", "--seed", 9, "--sentences", 500, "--analogies", tmp_path / "q.txt")
    output(call(*made, "-o", tmp_path / "w.txt"))
    lines = (tmp_path / "w.txt").read_text().splitlines()
    assert lines == list(World(seed=9).sentences(500)) and (tmp_path / "q.txt").read_text().startswith(": ")
    rows = [json.loads(line) for line in output(call(*made)).splitlines()]
    assert [row["text"] for row in rows] == lines
    (tmp_path / "w.txt").write_bytes((tmp_path / "w.txt").read_bytes() + b"\xff\xfe ok\n")
    result = call("corpus", "info", tmp_path / "w.txt", "--json", "-k", 2)
    counts = as_json(result)
    words = [word for line in lines for word in line.split()]
    assert counts["documents"] == 501 and counts["words"] in range(len(words), len(words) + 4)
    assert counts["most_frequent"]["the"] == words.count("the") and len(counts["most_frequent"]) == 2
    assert len(counts["notes"]) == 1 and json.loads(result.stderr.splitlines()[-1])["text"] == counts["notes"][0]
    assert re.search(r"^documents +501$", output(call("corpus", "info", tmp_path / "w.txt")), re.MULTILINE)


def test_corpus_python(call, tmp_path):
    output(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.jsonl"))
    rows = {row["key"]: row["text"] for row in map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())}
    assert rows["json.dumps"].startswith("Serialize ``obj`` to a JSON formatted ``str``.")
    output(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.txt"))
    assert len((tmp_path / "p.txt").read_text().splitlines()) == len(rows)


def test_verify(call, refused, model, tmp_path):
    assert "vectors.safetensors" in as_json(call("verify", model, "--json"))["sha256"]
    copy = firth.load(model).save(tmp_path / "copy")
    data = bytearray((copy / "vectors.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "vectors.safetensors").write_bytes(data)
    refused("hash_mismatch", "verify", copy)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("map", ["-k", "40", "--highlight", "king"]),
        ("map", ["king", "queen", "man"]),
        ("analogies", ["king:queen", "man:woman"]),
        ("loss", []),
        ("zipf", []),
        ("tree", ["-k", "12"]),
        ("similarity", ["king", "queen", "bread"]),
    ],
)
def test_plot(call, model, tmp_path, kind, arguments):
    output(call("plot", kind, model, *arguments, "-o", tmp_path / "p.svg"))
    assert "<svg" in (tmp_path / "p.svg").read_text()[:1000]


def test_a_map_is_scored_and_saved(call, model, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    drawn = ("plot", "map", copy, "--method", "tsne", "--save", "--restrict", 90, "--neighbors", 12)
    metrics = as_json(call(*drawn, "--json", "-o", tmp_path / "map.png", "--highlight", "king"))
    assert metrics["points"] == 90 and metrics["saved"] is True
    assert metrics["recall"] > 2 * metrics["chance"] and 0.5 < metrics["trustworthiness"] <= 1
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    file = copy / "maps" / "words-tsne.safetensors"
    before = file.stat().st_mtime_ns
    assert "90 points" in output(call(*drawn))  # without a picture, and not computed again
    assert file.stat().st_mtime_ns == before
    assert as_json(call("info", copy, "--json"))["maps"]["words-tsne"]["points"] == 90
    assert call("verify", copy).exit_code == 0
    text = model.parent / "world.txt"
    output(call("train", "cbow", text, "-o", copy, "--dim", 4, "--epochs", 1, "--overwrite"))  # maps are replaced too
    assert not file.exists()
    some = as_json(call("plot", "map", copy, "king", "queen", "man", "woman", "-o", tmp_path / "m.svg", "--json"))
    assert some["points"] == 4 and not some["saved"]


def test_errors_of_plot_map(refused, model, tmp_path):
    picture = ("-o", tmp_path / "x.png")
    assert "'-o'" in refused("usage", "plot", "map", model)
    refused("too_few", "plot", "map", model, "king", "queen", "--method", "tsne", *picture)
    refused("conflicting_options", "plot", "map", model, "--neighbors", 4, *picture)
    refused("unknown_table", "plot", "map", model, "--table", "users", "--save", table="users")
    refused("invalid_value", "plot", "map", model, "--restrict", 0, "--save", got=0)
    assert not (tmp_path / "x.png").exists() and not (model / "maps").exists()


def test_plot_zipf_of_a_text(call, text, tmp_path):
    output(call("plot", "zipf", text, "-o", tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_counts_of_a_column(call, refused, model, tmp_path):
    (tmp_path / "mail.csv").write_text("head,body\n" + "short,a longer text of more words\n" * 3)
    for kind in ("zipf", "tree"):
        command = ("plot", kind, tmp_path / "mail.csv", "-o", tmp_path / f"{kind}.svg")
        assert "--column" in refused("unknown_column", *command)
        output(call(*command, "--column", "body"))
    tree = (tmp_path / "tree.svg").read_text()
    assert "longer" in tree and "short" not in tree
    refused("unsupported_model", "plot", "zipf", model, "--column", "body", "-o", tmp_path / "x.svg", path=model)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion(call, shell):
    assert "_FIRTH_COMPLETE" in output(call("completion", shell))


def test_completion_completes_flags(start):
    environment = {"_FIRTH_COMPLETE": "zsh_complete", "COMP_WORDS": "firth train skipgram --win", "COMP_CWORD": "3"}
    assert "--window" in start(environment=environment).communicate()[0]


@pytest.mark.parametrize("name", ["fasttext-classifier", "fasttext_classifier"])
def test_hyphens_and_underscores_are_equivalent(call, tmp_path, name):
    (tmp_path / "labels.txt").write_text("__label__a one two\n__label__b three four\n" * 20)
    data = tmp_path / "labels.txt"
    flags = ("--dim", 4, "--min_count", 1, "--learning-rate", 0.5, "--threads", 1)
    trained = call("train", name, data, "-o", tmp_path / "m", *flags, "--json")
    assert trained.exit_code == 0, trained.output
    assert json.loads(trained.stdout)["method"] == "fasttext_classifier"
    tried = ("--try", "word-ngrams=1,2", "--classification", data, "--budget", 1, "--json")
    swept = call("sweep", name, data, "-o", tmp_path / "s", *flags, *tried)
    assert swept.exit_code == 0, swept.output
    assert call("train", name, "--help").exit_code == 0


@pytest.mark.parametrize("value", ["inverse_sqrt", "inverse-sqrt"])
def test_choices_with_hyphens_or_underscores(refused, tmp_path, value):
    """The choice is accepted: the error is about the data."""
    refused("not_found", "train", "gpt", tmp_path / "none.txt", "-o", tmp_path / "m", "--schedule", value)
