"""Tokenizer files: written and read back, from other libraries, damaged and malicious."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from refusing import refuses
from tokenizers import ByteLevelBPETokenizer, Tokenizer

import firth
from firth import BPE, Characters, FirthError, SubwordTokenizer, WordPiece

TEXT = ["low low low low low lower lower newest newest newest newest newest newest widest widest widest, naïve!"]
KINDS: dict[str, BPE | WordPiece | Characters] = {
    "bytes": BPE(size=262),
    "characters": BPE(size=34, level="characters"),
    "wordpiece": WordPiece(size=41),
    "cased wordpiece": WordPiece(size=41, lowercase=False),
    "single": Characters(),
}


def same(a: SubwordTokenizer, b: SubwordTokenizer) -> bool:
    texts = ["Lower than the newest, naïve; 中", "", "wide\n west  low"]
    return a.ids == b.ids and a.special_tokens == b.special_tokens and a.encode_batch(texts) == b.encode_batch(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenizer_is_loaded_unchanged(kind: str, tmp_path: Path) -> None:
    made = KINDS[kind].train(TEXT)
    assert made.save(tmp_path / "one" / "tokenizer.json") == tmp_path / "one" / "tokenizer.json"
    assert SubwordTokenizer.load(tmp_path / "one" / "tokenizer.json").fingerprint == made.fingerprint
    made.save(tmp_path / "folder")
    assert SubwordTokenizer.load(tmp_path / "folder").fingerprint == made.fingerprint
    assert Tokenizer.from_file(str(tmp_path / "folder" / "tokenizer.json")).get_vocab() == made.ids
    (tmp_path / "folder" / "tokenizer.json").unlink()
    names = {path.name for path in (tmp_path / "folder").iterdir()}
    if kind == "single":
        assert names == set()
        return
    assert names == ({"vocab.txt"} if "wordpiece" in kind else {"vocab.json", "merges.txt"})
    assert same(SubwordTokenizer.load(tmp_path / "folder", lowercase=kind != "cased wordpiece"), made)


def test_config_file_has_the_lowercase_setting_of_vocab_txt(tmp_path: Path) -> None:
    made = KINDS["cased wordpiece"].train(TEXT)
    made.save(tmp_path / "vocab.txt")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert same(SubwordTokenizer.load(tmp_path), made)
    assert same(SubwordTokenizer.load(tmp_path / "vocab.txt"), made)


def test_vocab_txt_has_one_token_per_line(tmp_path: Path) -> None:
    made = KINDS["wordpiece"].train(TEXT)
    made.save(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_text().split("\n") == [*made.ids, ""]
    (tmp_path / "vocab.txt").write_bytes((tmp_path / "vocab.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert same(SubwordTokenizer.load(tmp_path / "vocab.txt"), made)


def test_files_of_the_package_tokenizers_are_read(tmp_path: Path) -> None:
    theirs = ByteLevelBPETokenizer()
    theirs.train_from_iterator(TEXT, vocab_size=270, special_tokens=["<s>", "<pad>"], show_progress=False)
    theirs.save_model(str(tmp_path))
    loaded = SubwordTokenizer.load(tmp_path)
    assert loaded.special_tokens == {"<s>": 0, "<pad>": 1}
    assert loaded.encode("lowest é").ids == theirs.encode("lowest é").ids


def test_truncation_and_padding_are_disabled() -> None:
    made = KINDS["bytes"].train(TEXT)
    cutting = Tokenizer.from_str(made.to_json())
    cutting.enable_truncation(2)
    cutting.enable_padding(length=50)
    text = "lower than the newest"
    assert SubwordTokenizer.from_json(cutting.to_str()).encode(text) == made.encode(text)


def test_invalid_paths_are_refused(tmp_path: Path) -> None:
    made = KINDS["bytes"].train(TEXT)
    with refuses("unknown_format", kind="bpe"):
        made.save(tmp_path / "vocab.txt")
    with refuses("unreadable_file", path=tmp_path / "nothing.json", reason="No such file or directory"):
        SubwordTokenizer.load(tmp_path / "nothing.json")
    with refuses("invalid_tokenizer", path=tmp_path) as caught:
        SubwordTokenizer.load(tmp_path)
    assert "vocab.txt" in caught.value.values["expected"] and "spiece.model" in caught.value.values["expected"]
    (tmp_path / "file").write_text("")
    with refuses("unwritable_file"):
        made.save(tmp_path / "file" / "folder")


@pytest.mark.parametrize(
    ("files", "code", "values"),
    [
        ({"vocab.txt": "[UNK]\na\na\n"}, "invalid_tokenizer", {"file": "vocab.txt", "repeated": 1}),
        ({"vocab.txt": "[UNK]\n\na\n"}, "invalid_tokenizer", {"file": "vocab.txt", "repeated": 1}),
        ({"vocab.txt": "a\nb\n"}, "invalid_tokenizer", {"file": "vocab.txt", "missing": "[UNK]"}),
        ({"vocab.txt": b"[UNK]\n\xff\n"}, "invalid_encoding", {"file": "vocab.txt", "byte": 6}),
        ({"vocab.json": "[1]", "merges.txt": ""}, "invalid_tokenizer", {"file": "vocab.json", "maximum": 10_000_000}),
        ({"vocab.json": '{"a": -1}', "merges.txt": ""}, "invalid_tokenizer", {"maximum": 10_000_000}),
        ({"vocab.json": '{"a": 99999999}', "merges.txt": ""}, "invalid_tokenizer", {"maximum": 10_000_000}),
        ({"vocab.json": '{"a": 0, "b": 0}', "merges.txt": ""}, "invalid_tokenizer", {"tokens": 2, "ids": 1}),
        ({"vocab.json": '{"a": 0', "merges.txt": ""}, "damaged_model", {"file": "vocab.json"}),
        ({"vocab.json": '{"a": 0, "b": 1}', "merges.txt": "a b c\n"}, "invalid_tokenizer", {"got": "a b c"}),
        (
            {"vocab.json": '{"a": 0, "b": 1}', "merges.txt": "a b\n"},
            "invalid_tokenizer",
            {"file": "merges.txt", "missing": "ab", "vocabulary": "vocab.json"},
        ),
        ({"tokenizer.json": ""}, "invalid_tokenizer", {"rule": True}),
        ({"tokenizer.json": "[" * 100_000}, "invalid_tokenizer", {"rule": True}),
        ({"tokenizer.json": '{"model": {"type": "BPE"}}'}, "invalid_tokenizer", {"rule": True}),
        ({"tokenizer.json": b"\xff\xfe\x00"}, "invalid_tokenizer", {"rule": True}),
    ],
)
def test_damaged_files_are_refused(
    files: dict[str, str | bytes], code: str, values: dict[str, object], tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    values = dict(values)
    if "file" in values:
        values["path"] = tmp_path / str(values.pop("file"))
    if "rule" in values:
        values["rule"] = f"{tmp_path / 'tokenizer.json'} is not a tokenizer"
    with refuses(code, **values):
        SubwordTokenizer.load(tmp_path)


def test_too_large_ids_are_refused() -> None:
    document = json.loads(KINDS["wordpiece"].train(TEXT).to_json())
    document["model"]["vocab"]["huge"] = 4_000_000_000
    with refuses("invalid_tokenizer", highest=4_000_000_000, tokens=42, maximum=10_000_000):
        SubwordTokenizer.from_json(json.dumps(document))


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_and_changed_files_are_refused_or_read(kind: str) -> None:
    """There is never a crash, a panic or another kind of error."""
    complete = KINDS[kind].train(TEXT).to_json().encode()
    dice = random.Random(7)
    for size in range(0, len(complete) - 2, max(1, len(complete) // 40)):
        with refuses("invalid_tokenizer"):
            SubwordTokenizer.from_json(complete[:size])
    refused = 0
    for _ in range(150):
        changed = bytearray(complete)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(len(changed))] = dice.choice(b'0123456789"{}[],:abtrue\xff\0-')
        try:
            tokenizer = SubwordTokenizer.from_json(bytes(changed))
            tokenizer.decode(tokenizer.encode("Lower than the newest, naïve; 中").ids)
        except FirthError:
            refused += 1
    assert refused > 30


def test_tokenizer_classes_are_exported() -> None:
    assert firth.BPE is BPE and {"BPE", "WordPiece", "Characters", "SubwordTokenizer", "encode_corpus"} <= set(
        firth.__all__
    )
