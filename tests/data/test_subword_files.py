"""Files of tokenizers: in and out, other people's, broken and hostile ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tokenizers import ByteLevelBPETokenizer, Tokenizer

import firth
from firth import BPE, Characters, FirthError, SubwordTokenizer, WordPiece

TEXT = ["low low low low low lower lower newest newest newest newest newest newest widest widest widest, naïve!"]
KINDS = {
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
def test_a_tokenizer_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
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


def test_case_of_a_vocab_text_is_told_by_its_config(tmp_path: Path) -> None:
    made = KINDS["cased wordpiece"].train(TEXT)
    made.save(tmp_path / "vocab.txt")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert same(SubwordTokenizer.load(tmp_path), made)
    assert same(SubwordTokenizer.load(tmp_path / "vocab.txt"), made)


def test_vocab_text_is_a_token_a_line(tmp_path: Path) -> None:
    made = KINDS["wordpiece"].train(TEXT)
    made.save(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_text().split("\n") == [*made.ids, ""]
    (tmp_path / "vocab.txt").write_bytes((tmp_path / "vocab.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert same(SubwordTokenizer.load(tmp_path / "vocab.txt"), made)


def test_files_of_tokenizers_are_read(tmp_path: Path) -> None:
    theirs = ByteLevelBPETokenizer()
    theirs.train_from_iterator(TEXT, vocab_size=270, special_tokens=["<s>", "<pad>"], show_progress=False)
    theirs.save_model(str(tmp_path))
    found = SubwordTokenizer.load(tmp_path)
    assert found.special_tokens == {"<s>": 0, "<pad>": 1}
    assert found.encode("lowest é").ids == theirs.encode("lowest é").ids


def test_nothing_is_cut_or_filled_unasked() -> None:
    made = KINDS["bytes"].train(TEXT)
    cutting = Tokenizer.from_str(made.to_json())
    cutting.enable_truncation(2)
    cutting.enable_padding(length=50)
    text = "lower than the newest"
    assert SubwordTokenizer.from_json(cutting.to_str()).encode(text) == made.encode(text)


def test_wrong_places(tmp_path: Path) -> None:
    made = KINDS["bytes"].train(TEXT)
    with pytest.raises(FirthError, match=r"vocab.txt is WordPiece's file; this is bpe"):
        made.save(tmp_path / "vocab.txt")
    with pytest.raises(FirthError, match=r"Cannot read .*nothing.json: No such file"):
        SubwordTokenizer.load(tmp_path / "nothing.json")
    with pytest.raises(
        FirthError, match=r"holds no tokenizer: no tokenizer.json, vocab.txt, or vocab.json with merges"
    ):
        SubwordTokenizer.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FirthError, match="Cannot write"):
        made.save(tmp_path / "file" / "folder")


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"vocab.txt": "[UNK]\na\na\n"}, "each line must be another token; 1 are not"),
        ({"vocab.txt": "[UNK]\n\na\n"}, "each line must be another token"),
        ({"vocab.txt": "a\nb\n"}, r"has no \[UNK\]"),
        ({"vocab.txt": b"[UNK]\n\xff\n"}, r"is not UTF-8 \(byte 6\)"),
        ({"vocab.json": "[1]", "merges.txt": ""}, "must give an id below 10,000,000 to each token"),
        ({"vocab.json": '{"a": -1}', "merges.txt": ""}, "must give an id"),
        ({"vocab.json": '{"a": 99999999}', "merges.txt": ""}, "must give an id"),
        ({"vocab.json": '{"a": 0, "b": 0}', "merges.txt": ""}, "the same id to several tokens"),
        ({"vocab.json": '{"a": 0', "merges.txt": ""}, "not valid JSON"),
        ({"vocab.json": '{"a": 0, "b": 1}', "merges.txt": "a b c\n"}, "a line is two tokens with a space between"),
        ({"vocab.json": '{"a": 0, "b": 1}', "merges.txt": "a b\n"}, "merges to 'ab', which vocab.json lacks"),
        ({"tokenizer.json": ""}, "tokenizer.json is not a tokenizer: "),
        ({"tokenizer.json": "[" * 100_000}, "tokenizer.json is not a tokenizer: "),
        ({"tokenizer.json": '{"model": {"type": "BPE"}}'}, "tokenizer.json is not a tokenizer: "),
        ({"tokenizer.json": b"\xff\xfe\x00"}, "tokenizer.json is not a tokenizer: "),
    ],
)
def test_broken_files(files: dict[str, str | bytes], rule: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FirthError, match=rule):
        SubwordTokenizer.load(tmp_path)


def test_ids_beyond_all_measure_are_refused() -> None:
    document = json.loads(KINDS["wordpiece"].train(TEXT).to_json())
    document["model"]["vocab"]["huge"] = 4_000_000_000
    with pytest.raises(FirthError, match="The highest id is 4,000,000,000 for 42 tokens; Firth takes 10,000,000"):
        SubwordTokenizer.from_json(json.dumps(document))


@pytest.mark.parametrize("kind", KINDS)
def test_cut_and_changed_files_give_an_error_or_a_tokenizer(kind: str) -> None:
    """Never a crash, a panic or an error of another kind."""
    whole = KINDS[kind].train(TEXT).to_json().encode()
    dice = random.Random(7)
    for size in range(0, len(whole) - 2, max(1, len(whole) // 40)):
        with pytest.raises(FirthError):
            SubwordTokenizer.from_json(whole[:size])
    refused = 0
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(len(changed))] = dice.choice(b'0123456789"{}[],:abtrue\xff\0-')
        try:
            found = SubwordTokenizer.from_json(bytes(changed))
            found.decode(found.encode("Lower than the newest, naïve; 中").ids)
        except FirthError:
            refused += 1
    assert refused > 30


def test_all_names_are_at_hand() -> None:
    assert firth.BPE is BPE and {"BPE", "WordPiece", "Characters", "SubwordTokenizer", "encode_corpus"} <= set(
        firth.__all__
    )
