"""Tokenizers learned from text: `BPE`, `WordPiece`, `Characters`. `BPE(size=8000).train(corpus)` gives one.

Sources: Sennrich, Haddow & Birch (2016) for BPE, Radford et al. (2019) for its byte-level form, Schuster & Nakajima
(2012) and Devlin et al. (2019) for WordPiece. As in the package `tokenizers`, WordPiece is learned like BPE, by counts
of pairs; what differs is the mark (## goes on, </w> ends) and how a word is cut afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from firth.core.errors import FirthError
from firth.core.options import check_options, option
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.pieces import Pieces, count_pieces
from firth.data.subword_tokenizer import (
    BERT,
    END_OF_WORD,
    SubwordTokenizer,
    bytes_engine,
    characters_engine,
    load_engine,
    single_characters_engine,
    wordpiece_engine,
)
from firth.kernels import bpe as kernel
from firth.kernels.pieces import BYTE_LETTERS, letters_to_text

Special = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BPE:
    """Byte-pair encoding. Of bytes (GPT-2's way: any text comes back as it was) or of characters with an end of word.

    `special_tokens` have the first ids; left out, they are <|endoftext|> for bytes and <unk> for characters.
    """

    size: int = option(8000, "tokens in all: special ones, bytes or characters, and merges", low=1, high=10_000_000)
    level: str = option("bytes", "what the merges start from", choices=("bytes", "characters"))
    min_count: int = option(2, "a pair is joined only if it occurs so often", low=1)
    max_characters: int = option(1000, "characters kept, the most frequent; of level characters", low=1)
    lowercase: bool = option(False, "fold case and accents; of level characters")
    special_tokens: Special | None = None

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if self.level == "bytes" and self.lowercase:
            raise FirthError(
                "conflicting_options", "BPE.lowercase needs level=characters: bytes give every text back as it was."
            )
        if self.level == "characters" and "<unk>" not in self.special:
            raise FirthError(
                "invalid_value",
                'BPE.special_tokens must have "<unk>" for level characters: it stands for new characters.',
            )

    @property
    def special(self) -> Special:
        usual = ("<|endoftext|>",) if self.level == "bytes" else ("<unk>",)
        return usual if self.special_tokens is None else self.special_tokens

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        load_engine()
        if self.level == "bytes":
            pieces = counted(corpus, "gpt2", False, run)
            letters = kernel.alphabet(kernel.Words.of(dict.fromkeys(BYTE_LETTERS.values(), 1)))
            learned = learn(self, pieces, kernel.initial_tokens(self.special, letters), run)
            return SubwordTokenizer(bytes_engine(*model_of(learned), self.special))
        pieces = counted(corpus, "bert", self.lowercase, run)
        characters = most_frequent(self, pieces, "<unk>", run)
        learned = learn(self, pieces, kernel.initial_tokens(self.special, characters, suffix=END_OF_WORD), run)
        return SubwordTokenizer(characters_engine(*model_of(learned), self.special, self.lowercase))


@dataclass(frozen=True, kw_only=True)
class WordPiece:
    """BERT's tokenizer: pieces that go on are marked with ##; a word is cut by the longest piece that fits."""

    size: int = option(8000, "tokens in all: special ones, characters and merges", low=1, high=10_000_000)
    min_count: int = option(2, "a pair is joined only if it occurs so often", low=1)
    max_characters: int = option(1000, "characters kept, the most frequent", low=1)
    lowercase: bool = option(True, "fold case and accents")
    special_tokens: Special = BERT

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if "[UNK]" not in self.special_tokens:
            raise FirthError(
                "invalid_value", 'WordPiece.special_tokens must have "[UNK]": it stands for what no piece fits.'
            )

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        load_engine()
        pieces = counted(corpus, "bert", self.lowercase, run)
        characters = most_frequent(self, pieces, "[UNK]", run)
        learned = learn(self, pieces, kernel.initial_tokens(self.special_tokens, characters, prefix="##"), run)
        return SubwordTokenizer(wordpiece_engine(model_of(learned)[0], self.lowercase, self.special_tokens))


@dataclass(frozen=True, kw_only=True)
class Characters:
    """Every character of the text a token, spaces and line ends too; ids in the order of the code points."""

    min_count: int = option(1, "a character is a token only if it occurs so often", low=1)
    special_tokens: Special = ("<unk>",)

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if "<unk>" not in self.special_tokens:
            raise FirthError(
                "invalid_value", 'Characters.special_tokens must have "<unk>": it stands for new characters.'
            )

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        load_engine()
        counts: Counter[str] = Counter()
        for piece, count in counted(corpus, "gpt2", False, run).words.pairs():
            for character in letters_to_text(piece):
                counts[character] += count
        characters = sorted(character for character, count in counts.items() if count >= self.min_count)
        left_out = len(counts) - len(characters)
        if left_out:
            run.report.note(f"min_count={self.min_count} left out {left_out:,} characters; they become <unk>.")
        vocab = {token: id for id, token in enumerate(dict.fromkeys([*self.special_tokens, *characters]))}
        return SubwordTokenizer(single_characters_engine(vocab, self.special_tokens))


def check_special(settings: BPE | WordPiece | Characters) -> None:
    tokens = settings.special_tokens
    if tokens is None:
        return
    name = f"{type(settings).__name__}.special_tokens"
    if not isinstance(tokens, tuple) or not all(isinstance(token, str) for token in tokens):
        raise FirthError(
            "invalid_value",
            '{name} must be a tuple of str, such as ("<s>", "</s>"); got {got!r}.',
            name=name,
            got=tokens,
        )
    if any(not token or "\0" in token for token in tokens) or len(set(tokens)) < len(tokens):
        raise FirthError("duplicate_name", "{name} must differ and not be empty; got {got!r}.", name=name, got=tokens)


def counted(corpus: Any, split: str, lowercase: bool, run: Run) -> Pieces:
    texts = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    pieces = count_pieces(texts, split, lowercase, run)
    for note in pieces.notes:
        run.report.note(note)
    return pieces


def most_frequent(settings: BPE | WordPiece, pieces: Pieces, unknown: str, run: Run) -> kernel.Alphabet:
    """The characters kept; what is left out is said."""
    found = kernel.alphabet(pieces.words)
    kept = kernel.most_frequent(found, settings.max_characters)
    if len(kept.codes) < len(found.codes):
        left_out, share = len(found.codes) - len(kept.codes), 1 - kept.counts.sum() / found.counts.sum()
        run.report.note(
            f"max_characters={settings.max_characters:,} left out the {left_out:,} rarest characters "
            f"({share:.2g} of the text); they become {unknown}."
        )
    return kept


def learn(settings: BPE | WordPiece, pieces: Pieces, begin: kernel.InitialTokens, run: Run) -> kernel.TrainedBpe:
    first, size, name = len(begin.tokens), settings.size, type(settings).__name__
    if first > size:
        raise FirthError(
            "invalid_value",
            "{name}.size must be at least {first:,} here: so many are special tokens and characters; got {got:,}.",
            name=name,
            first=first,
            got=size,
        )
    run.report.begin("merging", size - first, "tokens")
    try:
        learned = kernel.train(pieces.words, begin, size, settings.min_count, run.report.step)
    finally:
        run.report.end()
    if len(learned.tokens) < size:
        run.report.note(
            f"The text gives only {len(learned.tokens):,} tokens of size={size:,}: no other pair occurs "
            f"min_count={settings.min_count} times."
        )
    return learned


def model_of(learned: kernel.TrainedBpe) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges as the engine takes them; of a pair that was joined twice, the last time counts."""
    pairs: dict[tuple[int, int], None] = {}
    for merge in learned.merges:
        pairs.pop((merge.left, merge.right), None)
        pairs[merge.left, merge.right] = None
    tokens = learned.tokens
    return {token: id for id, token in enumerate(tokens)}, [(tokens[left], tokens[right]) for left, right in pairs]
