"""Every verb, on a small world."""

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


def test_train_prints_its_figures_as_json_and_for_people(call, text, tmp_path):
    command = ("train", "cbow", text, "-o", tmp_path / "m", "--dim", 20, "--epochs", 2, "--no-lowercase")
    figures = as_json(call(*command, "--json"))
    model = firth.load(tmp_path / "m")
    assert figures["status"] == "trained"
    assert figures["tokens"] == sum(len(line.split()) for line in text.read_text().splitlines())
    assert figures["vocabulary"] == len(model.vectors)
    assert figures["loss"] == figures["epochs"][-1]["loss"] and len(figures["epochs"]) == 2
    assert figures["words_per_second"] == pytest.approx(2 * figures["tokens"] / figures["seconds"])
    assert model.method == firth.CBOW(dim=20, epochs=2, lowercase=False, min_count=2)
    again = output(call(*command))
    assert "finished already" in again and f"{figures['tokens']:,}" in again and "firth neighbors" in again


def test_train_reads_standard_input_and_columns(call, text, tmp_path):
    lines = text.read_text().splitlines()
    rows = "".join(json.dumps({"body": line, "id": number}) + "\n" for number, line in enumerate(lines))
    (tmp_path / "rows.jsonl").write_text(rows)
    options = ("--dim", 8, "--epochs", 1, "--deterministic", "--json")
    piped = as_json(call("train", "skipgram", "-", "-o", tmp_path / "a", *options, input=text.read_text()))
    columns = call("train", "skipgram", tmp_path / "rows.jsonl", "--column", "body", "-o", tmp_path / "b", *options)
    files = [(tmp_path / name / "vectors.safetensors").read_bytes() for name in "ab"]
    assert piped["tokens"] == as_json(columns)["tokens"] and files[0] == files[1]


def test_train_goes_on_from_a_model(call, model, tmp_path):
    (tmp_path / "more.txt").write_text("the zeppelin flies over the castle\n" * 20)
    command = ("train", "skipgram", tmp_path / "more.txt", "-o", tmp_path / "m", "--start", model, "--dim", 30)
    output(call(*command))
    old, new = firth.load(model), firth.load(tmp_path / "m")
    assert set(old.vectors.keys) < set(new.vectors.keys) and "zeppelin" in new.vectors
    assert "finished already" in output(call(*command))


def test_help_lists_options_by_group_with_range_and_default(call):
    shown = output(call("train", "skipgram", "--help"))
    text = " ".join(shown.split())
    assert re.findall(r"^(\S.*):$", shown, re.MULTILINE) == ["Method options", "Run settings", "Data", "Other"]
    assert "--window INTEGER context words on each side [1–256, default 5]" in text
    assert "--lowercase / --no-lowercase convert text to lowercase [default on]" in text
    assert "--seed INTEGER random seed [at least 0, default 1]" in text


def test_methods(call):
    found = {method["name"]: method for method in as_json(call("methods", "--json"))}
    assert {"skipgram", "cbow"} <= set(found)
    window = next(option for option in found["skipgram"]["options"] if option["name"] == "window")
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
    facts = as_json(call("info", model, "--json"))
    assert facts["method"] == "skipgram" and facts["options"]["dim"] == 30
    assert facts["tables"]["words"] == {"rows": facts["training"]["vocabulary"], "dim": 30}
    assert re.search(r"^options.dim +30$", output(call("info", model)), re.MULTILINE)
    output(call("convert", model, tmp_path / "v.bin"))
    facts = as_json(call("info", tmp_path / "v.bin", "--json"))
    assert (facts["format"], facts["dim"]) == ("word2vec-binary", 30)


def test_neighbors(call, model, tmp_path):
    vectors = firth.load(model).vectors
    found = as_json(call("neighbors", model, "king", "queen", "-k", 3, "--metric", "euclidean", "--json"))
    assert list(found) == ["king", "queen"]
    assert [hit["key"] for hit in found["queen"]] == [
        hit.key for hit in vectors.neighbors("queen", 3, metric="euclidean")
    ]
    together = as_json(call("neighbors", model, "king", "woman", "-n", "man", "-k", 1, "--restrict", 500, "--json"))
    assert together == [hit._asdict() for hit in vectors.neighbors(["king", "woman"], 1, negative="man", restrict=500)]
    header = output(call("neighbors", model, "king", "queen")).splitlines()[0].split()
    assert header == ["king", "queen"]
    output(call("convert", model, tmp_path / "v.txt"))
    assert output(call("neighbors", tmp_path / "v.txt", "king")) == output(call("neighbors", model, "king"))


def test_analogy_and_similarity(call, model):
    vectors = firth.load(model).vectors
    hits = as_json(call("analogy", model, "man", "woman", "king", "--mul", "--json"))
    assert hits == [hit._asdict() for hit in vectors.analogy("man", "woman", "king", 5, method="mul")]
    assert float(output(call("similarity", model, "king", "queen"))) == pytest.approx(
        vectors.similarity("king", "queen"), abs=1e-4
    )
    words = ("king", "queen", "prince", "bread")
    assert output(call("similarity", model, "--odd", *words)).strip() == firth.odd_one_out(vectors, words)


def test_evaluate(call, model, place, tmp_path):
    (tmp_path / "pairs.tsv").write_text("king\tqueen\t9\nking\tbread\t1\nking\tzeppelin\t0\n")
    questions, pairs = place / "questions.txt", tmp_path / "pairs.tsv"
    found = as_json(call("evaluate", model, "--analogies", questions, "--similarity", pairs, "--json"))[str(model)]
    expected = firth.evaluate.analogies(firth.load(model).vectors, questions)
    assert found[str(questions)]["total"]["correct"] == expected.total.correct > 0
    assert found[str(pairs)]["answered"] == 2 and found[str(pairs)]["missing"] == ["zeppelin"]
    shown = output(call("evaluate", model, "--analogies", questions))
    assert f"{expected.accuracy:.1%}" in shown
    assert call("evaluate", model).exit_code == 2


def test_embed_writes_one_row_a_line(call, model, tmp_path):
    lines = ["the king sleeps", "", "zeppelin the", "qwerty"]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    pooled = firth.load(model).pool(lines)
    for suffix in ("npy", "parquet", "jsonl"):
        facts = as_json(call("embed", model, tmp_path / "in.txt", "-o", tmp_path / f"out.{suffix}", "--json"))
        assert (facts["rows"], facts["unknown"], facts["zero_rows"]) == (4, int(pooled.unknown.sum()), 2)
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


def test_embed_goes_through_batches(call, model, text, tmp_path, monkeypatch):
    monkeypatch.setattr("firth.cli.embed.BATCH", 1000)
    output(call("embed", model, text, "-o", tmp_path / "all.npy", "--smoothing", 0.001))
    lines = text.read_text().splitlines()
    assert len(lines) > 10_000
    assert list(firth.read_vectors(tmp_path / "all.npy").keys) == [str(line) for line in range(1, len(lines) + 1)]
    assert np.array_equal(np.load(tmp_path / "all.npy"), firth.load(model).pool(lines, 0.001).matrix)


@pytest.mark.parametrize("suffix", ["txt", "bin", "vec", "glove", "npy", "safetensors"])
def test_convert_and_back(call, model, tmp_path, suffix):
    output(call("convert", model, tmp_path / f"v.{suffix}"))
    output(call("convert", tmp_path / f"v.{suffix}", tmp_path / "back.safetensors"))
    vectors, back = firth.load(model).vectors, firth.read_vectors(tmp_path / "back.safetensors")
    assert list(back.keys) == list(vectors.keys) and np.array_equal(back.matrix, vectors.matrix)


def test_what_was_written_is_told_as_json(call, model, text, tmp_path):
    vectors = firth.load(model).vectors
    for arguments, facts in (
        (("convert", model, tmp_path / "v.vec"), {"rows": len(vectors), "dim": 30}),
        (("corpus", "world", "--sentences", 5, "-o", tmp_path / "w.txt"), {"sentences": 5, "analogies": None}),
        (("plot", "loss", model, "-o", tmp_path / "loss.svg"), {}),
        (("plot", "zipf", text, "-o", tmp_path / "zipf.svg"), {}),
    ):
        assert as_json(call(*arguments, "--json")) == {**facts, "output": str(tmp_path / arguments[-1])}
        assert (tmp_path / arguments[-1]).stat().st_size > 0
    told = as_json(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.jsonl", "--json"))
    assert told["documents"] == len((tmp_path / "p.jsonl").read_text().splitlines())


def test_words_in_capitals(call, model, tmp_path):
    """A vocabulary without any takes them small, and says so; in another, Paris is not paris."""
    result = call("neighbors", model, "King", "queen", "-k", 2, "--json")
    plain = as_json(call("neighbors", model, "king", "queen", "-k", 2, "--json"))
    assert as_json(result) == {"King": plain["king"], "queen": plain["queen"]}
    assert json.loads(result.stderr) == {
        "event": "note",
        "code": "lowercased",
        "text": "'King' is taken for 'king': words have no capitals here.",
    }
    for verb, words in (("analogy", ("man", "Woman", "King")), ("similarity", ("King", "Queen"))):
        assert output(call(verb, model, *words)) == output(call(verb, model, *map(str.lower, words)))
    together = call("neighbors", model, "King", "-n", "Man", "-k", 2)
    assert output(together) == output(call("neighbors", model, "king", "-n", "man", "-k", 2))
    output(call("plot", "map", model, "King", "Queen", "--highlight", "Man", "-o", tmp_path / "m.svg"))
    output(call("plot", "analogies", model, "King:Queen", "man:woman", "-o", tmp_path / "a.svg"))
    (tmp_path / "mixed.txt").write_text("3 2\nking 1 0\nQueen 0 1\nbread 1 1\n")
    refused = call("neighbors", tmp_path / "mixed.txt", "King")
    assert refused.exit_code == 1 and "Did you mean 'king'" in refused.stderr


def test_vectors_that_all_point_one_way_are_told(call, model, tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 20)) * 0.1 + 1
    firth.write_vectors(firth.Vectors([f"w{n}" for n in range(50)], rows), tmp_path / "same.vec")
    note = "note: All vectors point nearly one way (their mean cosine is 0.99)"
    for arguments in (("w1", "w2"), ("w1", "--together"), ("w1", "--restrict", 10)):
        assert call("neighbors", tmp_path / "same.vec", *arguments).stderr.startswith(note)
    assert call("neighbors", tmp_path / "same.vec", "w1", "--metric", "euclidean").stderr == ""
    assert call("neighbors", model, "king").stderr == ""
    firth.write_vectors(firth.Vectors(["a", "b"], [[1.0, 0.5], [1.0, -0.5]]), tmp_path / "two.vec")
    assert call("neighbors", tmp_path / "two.vec", "a").stderr == ""


def test_a_text_is_not_a_file(call, model):
    for verb in ("embed", "predict"):
        refused = call(verb, model, "a fine text")
        assert refused.exit_code == 1 and "To pass a text itself, use standard input (-)" in refused.stderr
        assert len(call(verb, model, "a fine text " * 1000).stderr) < 300


def test_texts_are_compared(call, model):
    told = call("similarity", model, "the old king", "the queen", "--texts", "--json")
    first, second = firth.load(model).embed(["the old king", "the queen"])
    assert json.loads(told.stdout)["score"] == pytest.approx(firth.similarity(first, second))
    assert call("similarity", model, "a", "b", "c", "--odd", "--texts").exit_code == 2


def test_convert_to_int8(call, model, tmp_path):
    output(call("convert", model, tmp_path / "v.safetensors", "--storage", "int8"))
    vectors, small = firth.load(model).vectors, firth.read_vectors(tmp_path / "v.safetensors")
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
    facts = as_json(result)
    words = [word for line in lines for word in line.split()]
    assert facts["documents"] == 501 and facts["words"] in range(len(words), len(words) + 4)
    assert facts["most_frequent"]["the"] == words.count("the") and len(facts["most_frequent"]) == 2
    assert "not valid UTF-8" in facts["notes"][0] and "not valid UTF-8" in result.stderr
    assert re.search(r"^documents +501$", output(call("corpus", "info", tmp_path / "w.txt")), re.MULTILINE)


def test_corpus_python(call, tmp_path):
    output(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.jsonl"))
    rows = {row["key"]: row["text"] for row in map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())}
    assert rows["json.dumps"].startswith("Serialize ``obj`` to a JSON formatted ``str``.")
    output(call("corpus", "python", "--package", "json", "-o", tmp_path / "p.txt"))
    assert len((tmp_path / "p.txt").read_text().splitlines()) == len(rows)


def test_verify(call, model, tmp_path):
    assert "as it was written" in output(call("verify", model))
    copy = firth.load(model).save(tmp_path / "copy")
    data = bytearray((copy / "vectors.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "vectors.safetensors").write_bytes(data)
    result = call("verify", copy)
    assert result.exit_code == 1 and "was changed" in result.stderr


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


def test_a_map_is_scored_and_kept(call, model, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    drawn = ("plot", "map", copy, "--method", "tsne", "--save", "--restrict", 90, "--neighbors", 12)
    figures = as_json(call(*drawn, "--json", "-o", tmp_path / "map.png", "--highlight", "king"))
    assert figures["points"] == 90 and figures["saved"] is True
    assert figures["kept"] > 2 * figures["chance"] and 0.5 < figures["trustworthiness"] <= 1
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    file = copy / "maps" / "words-tsne.safetensors"
    before = file.stat().st_mtime_ns
    assert "90 points" in output(call(*drawn))  # no picture, no new map
    assert file.stat().st_mtime_ns == before
    assert as_json(call("info", copy, "--json"))["maps"]["words-tsne"]["points"] == 90
    assert "as it was written" in output(call("verify", copy))
    text = model.parent / "world.txt"
    output(call("train", "cbow", text, "-o", copy, "--dim", 4, "--epochs", 1, "--overwrite"))  # maps are no obstacle
    assert not file.exists()
    some = as_json(call("plot", "map", copy, "king", "queen", "man", "woman", "-o", tmp_path / "m.svg", "--json"))
    assert some["points"] == 4 and not some["saved"]


def test_bad_maps(call, model, tmp_path):
    for arguments, message in (
        ((model,), "Missing option '-o'"),
        ((model, "king", "queen", "--method", "tsne", "-o", tmp_path / "x.png"), "at least 4 points; got 2"),
        ((model, "--neighbors", 4, "-o", tmp_path / "x.png"), "PCA looks at no neighbours"),
        ((model, "--table", "users", "--save"), "has no table 'users'"),
        ((model, "--restrict", 0, "--save"), "restrict must be at least 1"),
    ):
        result = call("plot", "map", *arguments)
        assert result.exit_code in (1, 2) and message in result.stderr
    assert not (tmp_path / "x.png").exists() and not (model / "maps").exists()


def test_plot_zipf_of_a_text(call, text, tmp_path):
    output(call("plot", "zipf", text, "-o", tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_counts_of_a_column(call, model, tmp_path):
    (tmp_path / "mail.csv").write_text("head,body\n" + "short,a longer text of more words\n" * 3)
    for kind in ("zipf", "tree"):
        command = ("plot", kind, tmp_path / "mail.csv", "-o", tmp_path / f"{kind}.svg")
        assert "--column" in call(*command).stderr
        output(call(*command, "--column", "body"))
    tree = (tmp_path / "tree.svg").read_text()
    assert "longer" in tree and "short" not in tree
    assert "is a model" in call("plot", "zipf", model, "--column", "body", "-o", tmp_path / "x.svg").stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion(call, shell):
    assert "_FIRTH_COMPLETE" in output(call("completion", shell))


def test_completion_answers(start):
    asked = {"_FIRTH_COMPLETE": "zsh_complete", "COMP_WORDS": "firth train skipgram --win", "COMP_CWORD": "3"}
    assert "--window" in start(environment=asked).communicate()[0]


@pytest.mark.parametrize("name", ["fasttext-classifier", "fasttext_classifier"])
def test_hyphens_and_underscores_are_the_same(call, tmp_path, name):
    (tmp_path / "labelled.txt").write_text("__label__a one two\n__label__b three four\n" * 20)
    data = tmp_path / "labelled.txt"
    flags = ("--dim", 4, "--min_count", 1, "--learning-rate", 0.5, "--threads", 1)
    trained = call("train", name, data, "-o", tmp_path / "m", *flags, "--json")
    assert trained.exit_code == 0, trained.output
    assert json.loads(trained.stdout)["method"] == "fasttext_classifier"
    tried = ("--try", "word-ngrams=1,2", "--labelled", data, "--budget", 1, "--json")
    swept = call("sweep", name, data, "-o", tmp_path / "s", *flags, *tried)
    assert swept.exit_code == 0, swept.output
    assert call("train", name, "--help").exit_code == 0


@pytest.mark.parametrize("value", ["inverse_sqrt", "inverse-sqrt"])
def test_choices_by_either_name(call, tmp_path, value):
    """The choice is understood: what is wrong is the data."""
    result = call("train", "gpt", tmp_path / "none.txt", "-o", tmp_path / "m", "--schedule", value, "--json")
    assert json.loads(result.stderr)["error"]["code"] == "not_found"
