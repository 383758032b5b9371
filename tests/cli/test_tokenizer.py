"""`firth tokenizer`: train, encode, decode, and errors."""

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


def test_a_cluster_gives_the_same_file(call, refused, sample: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firth.data.corpus_shards.LEAST_BYTES", 2000)
    train = ["tokenizer", "train", sample, "--size", "400"]
    call(*train, "-o", tmp_path / "one.json")
    done = call(*train, "-o", tmp_path / "two.json", "--cluster", "processes", "--workers", "2")
    assert done.exit_code == 0 and (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    refused("missing_option", *train, "-o", tmp_path / "three.json", "--workers", "2", option="--workers")


def test_tokens_and_json(call, sample: Path, tmp_path: Path) -> None:
    call("tokenizer", "train", sample, "-o", tmp_path / "folder", "--kind", "wordpiece", "--size", "200")
    tokenizer = SubwordTokenizer.load(tmp_path / "folder" / "vocab.txt")
    line = sample.read_text().splitlines()[0]
    encoded = tokenizer.encode(line)
    assert (
        call("tokenizer", "encode", tmp_path / "folder", "--tokens", input=line).stdout
        == " ".join(encoded.tokens) + "\n"
    )
    printed = call("tokenizer", "encode", tmp_path / "folder" / "vocab.txt", "--json", input=line).stdout
    assert json.loads(printed) == {
        "key": "1", "ids": encoded.ids, "tokens": encoded.tokens, "offsets": [list(pair) for pair in encoded.offsets],
    }  # fmt: skip
    text = json.loads(
        call("tokenizer", "decode", tmp_path / "folder", "--json", "--special-tokens", input=printed).stdout
    )["text"]
    assert text.startswith("[CLS] ") and text.endswith(" [SEP]")
    bare = call("tokenizer", "encode", tmp_path / "folder", "--no-special-tokens", input=line).stdout.split()
    assert list(map(int, bare)) == encoded.ids[1:-1]


def test_options_and_counts(call, refused, sample: Path, tmp_path: Path) -> None:
    special = ["--special-token", "<s>", "--special-token", "<unk>"]
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
    refused("output_exists", *command, path=tmp_path / "t.json")
    assert call(*command, "--overwrite").exit_code == 0


NEW = ["-o", "{new}.json"]
DECODE = ["decode", "{made}"]


@pytest.mark.parametrize(
    ("code", "values", "arguments", "input"),
    [
        ("usage", {}, ["train", "{sample}", *NEW, "--kind", "characters", "--size", "5"], ""),
        ("invalid_value", {"got": 100}, ["train", "{sample}", *NEW, "--size", "100"], ""),
        ("unknown_format", {"kind": "bpe"}, ["train", "{sample}", "-o", "{new}.txt"], ""),
        ("not_found", {"path": "nothing.txt"}, ["train", "nothing.txt", *NEW], ""),
        ("empty_data", {}, ["train", "-", *NEW], ""),
        ("unreadable_file", {}, ["encode", "nothing.json"], "a"),
        ("invalid_tokenizer", {}, ["encode", "{sample}"], "a"),
        ("operating_system", {"errno": 2}, [*DECODE, "nothing.txt"], ""),
        ("malformed_data", {"number": 1}, DECODE, b"\xff\n"),
        ("malformed_data", {"number": 1, "got": f"1 x{'y' * 37}"}, DECODE, "1 x" + "y" * 90),
        ("malformed_data", {"number": 1}, DECODE, '{"id": 1}'),
        ("malformed_data", {"number": 1}, DECODE, '{"ids": [1.7]}'),
        ("malformed_data", {"number": 1}, DECODE, '{"ids": "12"}'),
        ("unknown_token", {}, DECODE, "99999"),
    ],
)
def test_errors(call, refused, sample: Path, tmp_path: Path, code, values, arguments, input) -> None:
    made = tmp_path / "made.json"
    assert call("tokenizer", "train", sample, "-o", made, "--size", "260").exit_code == 0
    paths = {"sample": sample, "new": tmp_path / "new", "made": made}
    refused(code, "tokenizer", *(argument.format(**paths) for argument in arguments), input=input, **values)
    assert not list(tmp_path.glob("new*"))


def test_info_of_tokenizers_and_data(call, refused, sample: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "made.json", tmp_path / "folder"):
        assert call("tokenizer", "train", sample, "-o", output, "--size", "260").exit_code == 0
        fields = json.loads(call("info", output, "--json").stdout)
        assert (fields["kind"], fields["method"], fields["tokens"], fields["merges"]) == ("tokenizer", "bpe", 260, 3)
    data = tmp_path / "data.csv"
    data.write_text("text\na b\n")
    assert f"`firth corpus info {data}`" in refused("wrong_input", "info", data, path=data)
