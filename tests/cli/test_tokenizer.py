"""`firth tokenizer`: train, encode, decode, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firth import SubwordTokenizer

KINDS = {"bpe": ["--size", "400"], "wordpiece": ["--size", "200"], "characters": []}


@pytest.fixture(scope="module")
def sample(place: Path) -> Path:
    path = place / "sample.txt"
    path.write_text("".join((place / "world.txt").read_text().splitlines(keepends=True)[:400]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_from_text_to_ids_and_back(call, sample: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "tokenizer.json"
    done = call("tokenizer", "train", sample, "-o", out, "--kind", kind, *KINDS[kind])
    assert done.exit_code == 0, done.output
    tokenizer = SubwordTokenizer.load(out)
    assert f"tokens   {tokenizer.size:,}" in done.stdout and kind in done.stdout
    lines = sample.read_text().lower().splitlines()[:5]
    encoded = call("tokenizer", "encode", out, input="\n".join(lines) + "\n")
    assert encoded.stdout.splitlines() == [" ".join(map(str, tokenizer.encode(line).ids)) for line in lines]
    decoded = call("tokenizer", "decode", out, input=encoded.stdout)
    joined = decoded.stdout.splitlines()
    assert [line.replace(" ", "") for line in joined] == [line.replace(" ", "") for line in lines]


def test_tokens_and_json(call, sample: Path, tmp_path: Path) -> None:
    call("tokenizer", "train", sample, "-o", tmp_path / "folder", "--kind", "wordpiece", "--size", "200")
    tokenizer = SubwordTokenizer.load(tmp_path / "folder" / "vocab.txt")
    line = sample.read_text().splitlines()[0]
    encoded = tokenizer.encode(line)
    assert (
        call("tokenizer", "encode", tmp_path / "folder", "--tokens", input=line).stdout
        == " ".join(encoded.tokens) + "\n"
    )
    found = call("tokenizer", "encode", tmp_path / "folder" / "vocab.txt", "--json", input=line).stdout
    assert json.loads(found) == {
        "key": "1", "ids": encoded.ids, "tokens": encoded.tokens, "offsets": [list(pair) for pair in encoded.offsets],
    }  # fmt: skip
    text = json.loads(call("tokenizer", "decode", tmp_path / "folder", "--json", "--special", input=found).stdout)[
        "text"
    ]
    assert text.startswith("[CLS] ") and text.endswith(" [SEP]")
    bare = call("tokenizer", "encode", tmp_path / "folder", "--no-special", input=line).stdout.split()
    assert list(map(int, bare)) == encoded.ids[1:-1]


def test_settings_and_figures(call, sample: Path, tmp_path: Path) -> None:
    special = ["--special", "<s>", "--special", "<unk>"]
    command = [
        "tokenizer",
        "train",
        sample,
        "-o",
        tmp_path / "t.json",
        "--level",
        "characters",
        "--size",
        "90",
        *special,
    ]
    done = call(*command, "--min-count", "3", "--threads", "1", "--memory", "1GB", "--progress", "json", "--json")
    assert json.loads(done.stdout) == {
        "kind": "bpe", "tokens": 90, "merges": len(SubwordTokenizer.load(tmp_path / "t.json").merges),
        "special": {"<s>": 0, "<unk>": 1}, "output": str(tmp_path / "t.json"),
    }  # fmt: skip
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert {event["task"] for event in events if event["event"] == "begin"} == {"reading", "merging"}
    again = call(*command)
    assert again.exit_code == 1 and again.stderr == f"firth: {tmp_path / 't.json'} exists; --overwrite replaces it.\n"
    assert call(*command, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "input", "says"),
    [
        (
            ["train", "{sample}", "-o", "{new}.json", "--kind", "characters", "--size", "5"],
            "",
            "--size is no option of",
        ),
        (["train", "{sample}", "-o", "{new}.json", "--size", "100"], "", "BPE.size must be at least 257"),
        (["train", "{sample}", "-o", "{new}.txt"], "", "vocab.txt is WordPiece's file"),
        (["train", "nothing.txt", "-o", "{new}.json"], "", "There is no file nothing.txt"),
        (["train", "-", "-o", "{new}.json"], "", "no text to train a tokenizer on"),
        (["encode", "nothing.json"], "a", "Cannot read nothing.json"),
        (["encode", "{sample}"], "a", "each line must have a different token"),
        (["decode", "{made}", "nothing.txt"], "", "nothing.txt: No such file"),
        (["decode", "{made}"], b"\xff\n", "Line 1 must be ids"),
        (["decode", "{made}"], "1 x" + "y" * 90, f"got '1 x{'y' * 37}'."),
        (["decode", "{made}"], '{"id": 1}', "Line 1 must be ids"),
        (["decode", "{made}"], '{"ids": [1.7]}', "Line 1 must be ids"),
        (["decode", "{made}"], '{"ids": "12"}', "Line 1 must be ids"),
        (["decode", "{made}"], "1\n99999", "no token with the id 99999"),
    ],
)
def test_bad_input_is_told_in_a_line(
    call, sample: Path, tmp_path: Path, arguments: list, input: str | bytes, says: str
) -> None:
    made = tmp_path / "made.json"
    assert call("tokenizer", "train", sample, "-o", made, "--size", "260").exit_code == 0
    places = {"sample": sample, "new": tmp_path / "new", "made": made}
    done = call("tokenizer", *(argument.format(**places) for argument in arguments), input=input)
    assert done.exit_code in (1, 2) and says in done.stderr and "Traceback" not in done.output
    assert not list(tmp_path.glob("new*"))


def test_info_knows_tokenizers_and_tells_data_from_them(call, sample: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "made.json", tmp_path / "folder"):
        assert call("tokenizer", "train", sample, "-o", output, "--size", "260").exit_code == 0
        facts = json.loads(call("info", output, "--json").stdout)
        assert (facts["kind"], facts["method"], facts["tokens"], facts["merges"]) == ("tokenizer", "bpe", 260, 3)
    (tmp_path / "data.csv").write_text("text\na b\n")
    told = call("info", tmp_path / "data.csv")
    assert told.exit_code == 1 and f"`firth corpus info {tmp_path / 'data.csv'}`" in told.stderr
