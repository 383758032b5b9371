"""`firth train seq2seq`, `firth generate translation` and `firth evaluate translation` on synthetic pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firth
from firth.data.world import World
from firth.transformers.translation_model import Translation, Translator

PAIRS = list(World(seed=4).translations(120))
SMALL = (
    "--layers",
    1,
    "--dim",
    8,
    "--heads",
    2,
    "--epochs",
    1,
    "--vocabulary-size",
    300,
    "--context-length",
    80,
    "--threads",
    1,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for name, side in (("en", 0), ("xx", 1)):
        (folder / f"train.{name}").write_text("".join(pair[side] + "\n" for pair in PAIRS[:100]))
        (folder / f"val.{name}").write_text("".join(pair[side] + "\n" for pair in PAIRS[100:]))
    rows = ["english\tother", *("\t".join(pair) for pair in PAIRS[:100])]
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def translator(files: Path) -> Path:
    model = firth.Seq2Seq(layers=1, dim=8, heads=2, epochs=1, vocabulary_size=300, context_length=80)
    model.fit(firth.TranslationPairs(files / "train.en", files / "train.xx"), firth.Run(threads=1)).save(
        files / "model"
    )
    return files / "model"


def done(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def test_train_on_two_files_or_one_table(call, files, tmp_path):
    dev = f"{files / 'val.en'},{files / 'val.xx'}"
    command = ("train", "seq2seq", files / "train.en", files / "train.xx", "-o", tmp_path / "a", *SMALL)
    metrics = json.loads(done(call(*command, "--dev", dev, "--json")).splitlines()[-1])
    assert (metrics["pairs"], metrics["held_out_pairs"]) == (100, 20) and metrics["perplexity"] > 1
    table = ("train", "seq2seq", files / "train.tsv", "--source", "english", "--target", "other", "-o", tmp_path / "b")
    shown = done(call(*table, *SMALL))
    assert "firth generate translation" in shown and "98" in shown  # two are held out
    assert "unfinished" not in done(call("info", tmp_path / "b"))


def test_texts_lines_and_json(call, translator):
    texts = [PAIRS[0].source, "", PAIRS[1].source]
    lines = done(call("generate", "translation", translator, *texts, "--beam", 2)).split("\n")
    assert len(lines) == 4 and lines[1] == "" and lines[0]
    assert (
        done(call("generate", "translation", translator, "-", "--beam", 2, input="\n".join(texts) + "\n")).split("\n")
        == lines
    )
    rows = json.loads(done(call("generate", "translation", translator, *texts, "--beam", 2, "--json")))["translations"]
    assert [row["text"] for row in rows] == lines[:3] and [row["source"] for row in rows] == texts
    assert all(row["score"] <= 0 and isinstance(row["ended"], bool) for row in rows)


def test_evaluate_translation(call, refused, translator, tmp_path, monkeypatch):
    """The model is replaced by one that always returns "a b c d x" (compare test_bleu of the evaluation)."""
    output = Translation("a b c d x", -1.0, True)
    monkeypatch.setattr(Translator, "translations", lambda model, texts, *_: [output for _ in texts])
    sources, references = tmp_path / "sources", tmp_path / "references"
    sources.write_text("".join(pair.source + "\n" for pair in PAIRS[:3]))
    references.write_text("a b c d e\n" * 3)
    command = ("evaluate", "translation", translator)
    assert done(call(*command, sources, references)) == "BLEU 66.87 on 3 texts\n"
    scores = json.loads(done(call(*command, sources, references, "--json")))[str(translator)]
    assert scores["bleu"] == pytest.approx(66.874, abs=0.01) and scores["texts"] == 3
    table = tmp_path / "pairs.tsv"
    table.write_text("english\tother\n" + "".join(f"{pair.source}\ta b c d e\n" for pair in PAIRS[:3]))
    assert "BLEU 66.87" in done(call(*command, table, "--source", "english", "--target", "other"))
    (tmp_path / "short").write_text("one\n")
    refused("wrong_input", *command, sources, tmp_path / "short")


def test_errors(refused, translator, model, files, tmp_path):
    translation = ("generate", "translation")
    refused("unsupported_model", *translation, model, "a dog", path=model, method="skipgram")
    refused("invalid_value", *translation, translator, "a dog", "--beam", 999, got=999)
    refused("text_too_long", *translation, translator, "a dog sees the cat " * 30)
    message = refused("wrong_input", *translation, translator, "a dog", files / "val.en", file=files / "val.en")
    assert f"- < {files / 'val.en'}" in message
    train = ("train", "seq2seq", "-o", tmp_path / "m", *SMALL)
    refused("wrong_input", *train, files / "train.en")
    refused("wrong_input", *train, files / "train.en", files / "val.xx")
    assert "--source" in refused("unknown_column", *train, files / "train.tsv", name="source")
