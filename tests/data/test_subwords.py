"""`BPE`, `WordPiece` and `Characters`: comparison with the package `tokenizers`, and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
from tokenizers.implementations.char_level_bpe import CharBPETokenizer

import firth
from firth import BPE, Characters, Corpus, Run, WordPiece
from firth.core.extras import how_to_install
from firth.core.report import Silence
from firth.data.docstrings import python_docstrings
from firth.data.pretokens import count_pretokens
from firth.kernels import bpe as kernel

EXAMPLE = ["low low low low low lower lower newest newest newest newest newest newest widest widest widest"]


class Notes(Silence):
    """Records notes and tasks."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.tasks: list[str] = []

    def begin(self, task: str, total: float, unit: str) -> None:
        self.tasks.append(task)

    def note(self, text: str, code: str = "note") -> None:
        self.notes.append((code, text))


@pytest.fixture(scope="module")
def english() -> list[str]:
    """Return half a megabyte of real text with code, accents and symbols."""
    texts = [text for _, text in python_docstrings(["numpy"], report=Notes())]
    return [*texts[:500], "Déjà vu: naïve café, 東京タワー 3½ ≠ 4 — “quotes” … Ünïcödé 한국어 👍🏽"]


@pytest.fixture(scope="module")
def bytes_tokenizer(english: list[str]) -> firth.SubwordTokenizer:
    return BPE(size=1500).train(english)


# ---- training ----


def test_byte_merges_and_encodings_equal_those_of_tokenizers(
    english: list[str], bytes_tokenizer: firth.SubwordTokenizer
) -> None:
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        min_frequency=2,
        special_tokens=["<|endoftext|>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    engine.train_from_iterator(english, trainer)
    document = json.loads(engine.to_str())
    assert bytes_tokenizer.merges == [tuple(pair) for pair in document["model"]["merges"]]
    assert bytes_tokenizer.ids == engine.get_vocab()
    for text in english[-20:]:
        encoding, expected = bytes_tokenizer.encode(text), engine.encode(text)
        assert (encoding.ids, encoding.tokens, encoding.offsets) == (expected.ids, expected.tokens, expected.offsets)


@pytest.mark.parametrize("kind", ["wordpiece", "characters"])
def test_merges_of_prefixed_and_suffixed_characters_equal_those_of_tokenizers(english: list[str], kind: str) -> None:
    """Start from the same initial ids, because that package numbers characters in the order of a hash table."""
    fold, mark = kind == "wordpiece", {"prefix": "##"} if kind == "wordpiece" else {"suffix": "</w>"}
    engine = Tokenizer(models.WordPiece(unk_token="<s>") if fold else models.BPE(end_of_word_suffix="</w>"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=fold)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    shared: dict[str, Any] = {"vocab_size": 1500, "special_tokens": ["<s>"], "show_progress": False}
    trainer = trainers.WordPieceTrainer(**shared) if fold else trainers.BpeTrainer(**shared, end_of_word_suffix="</w>")
    engine.train_from_iterator(english, trainer)
    vocab = engine.get_vocab()
    words = count_pretokens(Corpus(english), "bert", fold, Run()).words
    begin = kernel.initial_tokens(["<s>"], kernel.alphabet(words), **mark)
    first = sorted(vocab, key=vocab.__getitem__)[: len(begin.tokens)]
    to = np.array([first.index(token) for token in begin.tokens] + [-1], dtype=np.int32)
    same = begin._replace(tokens=first, plain_ids=to[begin.plain_ids], affixed_ids=to[begin.affixed_ids])
    learned = kernel.train(words, same, 1500, 1)
    assert {token: id for id, token in enumerate(learned.tokens)} == vocab
    if not fold:
        spelled = [[learned.tokens[merge.left], learned.tokens[merge.right]] for merge in learned.merges]
        assert spelled == [list(pair) for pair in json.loads(engine.to_str())["model"]["merges"]]


def test_wordpiece_encodes_as_tokenizers_does(english: list[str], tmp_path: Path) -> None:
    for lowercase in (True, False):
        tokenizer = WordPiece(size=1200, lowercase=lowercase).train(english)
        tokenizer.save(tmp_path / "vocab.txt")
        reference = BertWordPieceTokenizer.from_file(str(tmp_path / "vocab.txt"), lowercase=lowercase)
        for text in english[-20:]:
            ours, expected = tokenizer.encode(text), reference.encode(text)
            assert (ours.ids, ours.tokens, ours.offsets) == (expected.ids, expected.tokens, expected.offsets)
            assert tokenizer.decode(ours.ids) == reference.decode(expected.ids)


def test_character_bpe_encodes_as_tokenizers_does(english: list[str], tmp_path: Path) -> None:
    tokenizer = BPE(size=1200, level="characters").train(english)
    tokenizer.save(tmp_path / "folder")
    reference = CharBPETokenizer.from_file(str(tmp_path / "folder/vocab.json"), str(tmp_path / "folder/merges.txt"))
    for text in english[-20:]:
        ours, expected = tokenizer.encode(text), reference.encode(text)
        assert (ours.ids, ours.tokens, ours.offsets) == (expected.ids, expected.tokens, expected.offsets)


def test_the_example_of_sennrich_haddow_and_birch() -> None:
    found = BPE(size=20, level="characters").train(EXAMPLE)
    assert found.merges[:3] == [("e", "s"), ("es", "t</w>"), ("l", "o")]
    assert found.encode("lowest newest").tokens == ["lo", "w", "est</w>", "newest</w>"]
    assert found.decode(found.encode("lowest newest").ids) == "lowest newest"
    assert found.encode("löwest").tokens[:2] == ["l", "<unk>"]


def test_result_does_not_depend_on_threads_and_source(english: list[str], tmp_path: Path) -> None:
    (tmp_path / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in english))
    prints = {BPE(size=600).train(english, Run(threads=threads)).fingerprint for threads in (1, 2, 4)}
    prints.add(BPE(size=600).train(iter(english)).fingerprint)
    prints.add(BPE(size=600).train(tmp_path / "text.jsonl").fingerprint)
    assert len(prints) == 1


def test_special_tokens_come_first_and_are_recognized_in_text() -> None:
    found = BPE(size=262, special_tokens=("<s>", "</s>", "<pad>", "<unk>")).train(EXAMPLE)
    assert found.special_tokens == {"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3}
    assert found.special_id("<pad>") == 2
    encoded = found.encode("low</s>")
    assert encoded.ids[-1] == 1 and encoded.offsets[-1] == (3, 7)
    assert found.decode(encoded.ids) == "low" and found.decode(encoded.ids, special=True) == "low</s>"
    with refuses("unknown_token", token="[CLS]", available="<s>, </s>, <pad>, <unk>"):
        found.special_id("[CLS]")


def test_dropped_characters_and_small_vocabularies_are_reported(english: list[str]) -> None:
    notes = Notes()
    BPE(size=5000).train(EXAMPLE, Run(report=notes))
    assert notes.tasks == ["reading", "merging"]
    ((code, text),) = notes.notes
    assert code == "small_vocabulary" and "272 tokens" in text and "size=5,000" in text
    notes = Notes()
    WordPiece(size=600, max_characters=60).train(english, Run(report=notes))
    code, text = notes.notes[0]
    assert code == "characters_left_out" and "max_characters=60" in text and "[UNK]" in text
    notes = Notes()
    Characters(min_count=2).train(["aab"], Run(report=notes))
    ((code, text),) = notes.notes
    assert code == "characters_left_out" and "min_count=2 left out 1 " in text and "<unk>" in text
    notes = Notes()
    BPE(size=257, min_count=1).train(["a\udcffb"], Run(report=notes))
    code, text = notes.notes[0]
    assert code == "invalid_utf8" and text.startswith("1 ")


def test_each_character_is_a_token() -> None:
    found = Characters(special_tokens=("<unk>", "<pad>")).train(["to be,\nor\0 é 👍"])
    assert list(found.ids) == ["<unk>", "<pad>", "\0", "\n", " ", ",", "b", "e", "o", "r", "t", "é", "👍"]
    encoded = found.encode("robot\n?")
    assert encoded.tokens == ["r", "o", "b", "o", "t", "\n", "<unk>"]
    assert encoded.offsets == [(i, i + 1) for i in range(7)]
    assert found.decode(found.encode("be to\0 \n👍").ids) == "be to\0 \n👍"
    assert found.kind == "characters"


# ---- text to ids and back ----


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_byte_level_encoding_is_lossless(bytes_tokenizer: firth.SubwordTokenizer, text: str) -> None:
    encoded = bytes_tokenizer.encode(text)
    assert bytes_tokenizer.decode(encoded.ids) == text
    covered = 0
    for begin, end in encoded.offsets:  # every character has its tokens, in order
        assert begin <= covered <= end
        covered = max(covered, end)
    assert covered == len(text)


def test_wordpiece_uses_greedy_longest_match(tmp_path: Path) -> None:
    """The example is from BERT's own code: unaffable."""
    (tmp_path / "vocab.txt").write_text(
        "[UNK]\n[CLS]\n[SEP]\nwant\n##want\n##ed\nwa\nun\nrunn\n##ing\n##aff\n##able\n##a\n"
    )
    found = firth.SubwordTokenizer.load(tmp_path / "vocab.txt")
    assert found.encode("unwanted running", special=False).tokens == ["un", "##want", "##ed", "runn", "##ing"]
    assert found.encode("Unaffable").tokens == ["[CLS]", "un", "##aff", "##able", "[SEP]"]
    assert found.encode("unwantedX running", special=False).tokens == ["[UNK]", "runn", "##ing"]
    assert found.encode("Unaffable wanted").offsets == [(0, 0), (0, 2), (2, 5), (5, 9), (10, 14), (14, 16), (0, 0)]
    assert found.decode(found.encode("Unaffable wanted").ids) == "unaffable wanted"


def test_empty_texts(bytes_tokenizer: firth.SubwordTokenizer) -> None:
    assert bytes_tokenizer.encode("") == ([], [], [])
    assert bytes_tokenizer.decode([]) == ""
    assert bytes_tokenizer.encode_batch([]) == []
    assert bytes_tokenizer.ids_batch(["", "a"])[0] == []
    assert WordPiece(size=30).train(EXAMPLE).encode("").tokens == ["[CLS]", "[SEP]"]


def test_size_and_repr(bytes_tokenizer: firth.SubwordTokenizer) -> None:
    assert len(bytes_tokenizer) == bytes_tokenizer.size == len(bytes_tokenizer.tokens) == 1500
    assert repr(bytes_tokenizer) == "SubwordTokenizer(bpe, 1,500 tokens, 1 special)"
    assert bytes_tokenizer.tokens[0] == "<|endoftext|>"


# ---- errors ----


@pytest.mark.parametrize(
    ("make", "code", "values"),
    [
        (lambda: BPE(size=200).train(EXAMPLE), "invalid_value", {"option": "BPE.size", "minimum": 257, "got": 200}),
        (lambda: BPE(lowercase=True), "conflicting_options", {"option": "BPE.lowercase"}),
        (
            lambda: BPE(level="characters", special_tokens=("<s>",)),
            "invalid_value",
            {"option": "BPE.special_tokens", "missing": "<unk>"},
        ),
        (
            lambda: BPE(special_tokens="<s>"),  # type: ignore[arg-type]
            "invalid_value",
            {"option": "BPE.special_tokens", "got": "<s>"},
        ),
        (lambda: BPE(special_tokens=("<s>", "<s>")), "duplicate_name", {"option": "BPE.special_tokens"}),
        (lambda: BPE(special_tokens=("",)), "duplicate_name", {"got": ("",)}),
        (lambda: WordPiece(special_tokens=("[PAD]",)), "invalid_value", {"missing": "[UNK]"}),
        (lambda: WordPiece(size=10).train(EXAMPLE), "invalid_value", {"option": "WordPiece.size", "minimum": 23}),
        (lambda: Characters(special_tokens=()), "invalid_value", {"missing": "<unk>"}),
        (lambda: BPE().train([]), "empty_data", {}),
        (lambda: WordPiece().train(["  \n "]), "empty_data", {}),
        (lambda: BPE().train(5), "invalid_type", {"got": "int"}),
    ],
)
def test_invalid_settings_and_corpora_are_refused(make: Any, code: str, values: dict[str, Any]) -> None:
    with refuses(code, **values):
        make()


@pytest.mark.parametrize(
    ("make", "option", "got"),
    [
        (lambda: BPE(size=0), "BPE.size", 0),
        (lambda: BPE(level="words"), "BPE.level", "words"),
        (lambda: WordPiece(min_count=0), "WordPiece.min_count", 0),
    ],
)
def test_options_out_of_range_are_refused(make: Any, option: str, got: object) -> None:
    with refuses("invalid_value", got=got) as error:
        make()
    assert option in str(error.value)


def test_invalid_texts_and_ids_are_refused(bytes_tokenizer: firth.SubwordTokenizer) -> None:
    with refuses("invalid_encoding", got="\ud800"):
        bytes_tokenizer.encode("\ud800")
    with refuses("invalid_type", got="int", text=5):
        bytes_tokenizer.encode(5)  # type: ignore[arg-type]
    with refuses("invalid_type", got="str"):
        bytes_tokenizer.encode_batch("text")
    for id in (-1, 1500, 2**40):
        with refuses("unknown_token", got=id, highest=1499):
            bytes_tokenizer.decode([0, id])


def test_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with refuses("missing_package", how=how_to_install("tokenizers")):
        BPE().train(EXAMPLE)


# ---- memory ----

MEASURE = """
import sys, threading, time, firth
from firth.core.report import LogLines, Silence
letters = str.maketrans("0123456789", "ghijklmnop")
def texts():
    for line in range(20_000):
        numbers = range(line * 10, line * 10 + 10)
        yield " ".join(f"{n * 2654435761:x}".translate(letters) for n in numbers) + " the common words"
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))
firth.BPE(size=257).train(["everything is imported"])
corpus = firth.Corpus(texts())
for _ in corpus: pass  # copied to disk
before, peak, done = anonymous(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.0005)
watcher = threading.Thread(target=watch)
watcher.start()
found = firth.BPE(size=400).train(corpus, firth.Run(memory=sys.argv[1], threads=1, report=LogLines(progress=False)))
done = True
watcher.join()
print(peak - before, found.encode("the common words").tokens)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_limit_is_respected() -> None:
    """With 200,000 different pre-tokens, the rarest are dropped, which is reported."""

    def measure(memory: str) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, "-c", MEASURE, memory], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        used, _, tokens = done.stdout.partition(" ")
        return int(used), tokens, done.stderr

    bounded, tokens, notes = measure("12MB")
    free, _, nothing = measure("")
    assert bounded < 12_000_000 < 24_000_000 < free
    assert "exceeded memory=12MB" in notes and "rarest words were dropped" in notes and "exceeded" not in nothing
    assert "'Ġcommon'" in tokens  # frequent words are kept


def test_sufficient_memory_limit_changes_nothing(english: list[str]) -> None:
    free, bounded = (BPE(size=500).train(english, Run(memory=memory)).fingerprint for memory in ("", "1GB"))
    assert free == bounded
