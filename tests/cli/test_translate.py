"""`firth train seq2seq` and `firth generate translation`, on a few pairs of the invented language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firth
from firth.data.world import World
from firth.transformers.translation_model import Translation, Translator

PAIRS = list(World(seed=4).translations(120))
SMALL = ("--layers", 1, "--dim", 8, "--heads", 2, "--epochs", 1, "--vocabulary", 300, "--context", 80, "--threads", 1)


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
    model = firth.Seq2Seq(layers=1, dim=8, heads=2, epochs=1, vocabulary=300, context=80)
    model.fit(firth.TranslationPairs(files / "train.en", files / "train.xx"), firth.Run(threads=1)).save(
        files / "model"
    )
    return files / "model"


def done(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(result) -> str:
    assert result.exit_code == 1 and "Traceback" not in result.output
    return result.stderr


def test_two_files_or_one_table_are_trained_on(call, files, tmp_path):
    validation = f"{files / 'val.en'},{files / 'val.xx'}"
    command = ("train", "seq2seq", files / "train.en", files / "train.xx", "-o", tmp_path / "a", *SMALL)
    figures = json.loads(done(call(*command, "--validation", validation, "--json")).splitlines()[-1])
    assert (figures["pairs"], figures["held_out_pairs"]) == (100, 20) and figures["perplexity"] > 1
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
    found = json.loads(done(call("generate", "translation", translator, *texts, "--beam", 2, "--json")))["translations"]
    assert [row["text"] for row in found] == lines[:3] and [row["source"] for row in found] == texts
    assert all(row["score"] <= 0 and isinstance(row["ended"], bool) for row in found)


def test_bleu_against_a_reference(call, translator, tmp_path, monkeypatch):
    """Whatever the model would say, here it says "a b c d x" (see test_bleu of the evaluation)."""
    said = Translation("a b c d x", -1.0, True)
    monkeypatch.setattr(Translator, "translations", lambda model, texts, *_: [said for _ in texts])
    texts = [pair.source for pair in PAIRS[:3]]
    (tmp_path / "right").write_text("a b c d e\n" * 3)
    result = call("generate", "translation", translator, *texts, "--reference", tmp_path / "right")
    assert "BLEU 66.87" in result.stderr and done(result) == "a b c d x\n" * 3
    shown = json.loads(
        done(call("generate", "translation", translator, *texts, "--reference", tmp_path / "right", "--json"))
    )
    assert shown["bleu"] == pytest.approx(66.874, abs=0.01)
    (tmp_path / "short").write_text("one\n")
    assert "has 1 lines for 3 texts" in failed(
        call("generate", "translation", translator, *texts, "--reference", tmp_path / "short")
    )


def test_what_is_refused(call, translator, model, files, tmp_path):
    assert "does not translate (skipgram)" in failed(call("generate", "translation", model, "a dog"))
    assert "beam must be at least 1 and at most the 300" in failed(
        call("generate", "translation", translator, "a dog", "--beam", 999)
    )
    long = failed(call("generate", "translation", translator, "a dog sees the cat " * 30))
    assert "at most 80. Split it into sentences" in long
    file = failed(call("generate", "translation", translator, "a dog", files / "val.en"))
    assert "val.en is a file" in file and f"- < {files / 'val.en'}" in file
    train = ("train", "seq2seq", "-o", tmp_path / "m", *SMALL)
    assert "holds one side" in failed(call(*train, files / "train.en"))
    assert "has more lines than" in failed(call(*train, files / "train.en", files / "val.xx"))
    lacking = failed(call(*train, files / "train.tsv"))
    assert "no column 'source'" in lacking and "Pass source=… (--source)" in lacking
