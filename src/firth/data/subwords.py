"""Training of subword tokenizers: `BPE`, `WordPiece` and `Characters`, as in `BPE(size=8000).train(corpus)`.

Sources: Sennrich, Haddow & Birch (2016) for BPE, Radford et al. (2019) for its byte-level form, Schuster & Nakajima
(2012) and Devlin et al. (2019) for WordPiece. As in the package `tokenizers`, WordPiece is trained like BPE, by pair
counts. It differs in the markers (## for a continuation, </w> for the end of a word) and in how words are encoded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from firth.core.errors import FirthError
from firth.core.options import check_options, option
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.pretokens import PretokenCounts, count_pretokens
from firth.data.special_tokens import BERT_NAMES
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.tokenizer_engines import (
    END_OF_WORD,
    WordPieceText,
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
    """Byte-pair encoding of bytes, as in GPT-2, which is lossless, or of characters with an end-of-word suffix.

    `special_tokens` get the first ids. The default is <|endoftext|> for bytes and <unk> for characters.
    """

    size: int = option(8000, "vocabulary size: special tokens, bytes or characters, and merges", low=1, high=10_000_000)
    level: str = option("bytes", "units that the merges start from", choices=("bytes", "characters"))
    min_count: int = option(2, "minimum count of a pair to be merged", low=1)
    max_characters: int = option(1000, "number of most frequent characters to keep (level=characters)", low=1)
    lowercase: bool = option(False, "lowercase and remove accents (level=characters)")
    special_tokens: Special | None = None

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if self.level == "bytes" and self.lowercase:
            raise FirthError(
                "conflicting_options",
                "{option} needs level=characters; byte-level BPE does not change the text.",
                option="BPE.lowercase",
            )
        if self.level == "characters" and "<unk>" not in self.special:
            raise missing_special("BPE", "<unk>", "for unknown characters (level=characters)")

    @property
    def special(self) -> Special:
        """The special tokens, or their default for the level."""
        usual = ("<|endoftext|>",) if self.level == "bytes" else ("<unk>",)
        return usual if self.special_tokens is None else self.special_tokens

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        """Train a tokenizer on a corpus."""
        load_engine()
        if self.level == "bytes":
            pretokens = count_corpus(corpus, "gpt2", False, run)
            letters = kernel.alphabet(kernel.Words.of(dict.fromkeys(BYTE_LETTERS.values(), 1)))
            result = learn_merges(self, pretokens, kernel.initial_tokens(self.special, letters), run)
            return SubwordTokenizer(bytes_engine(*vocabulary_and_merges(result), self.special))
        pretokens = count_corpus(corpus, "bert", self.lowercase, run)
        characters = frequent_characters(self, pretokens, "<unk>", run)
        result = learn_merges(self, pretokens, kernel.initial_tokens(self.special, characters, suffix=END_OF_WORD), run)
        return SubwordTokenizer(characters_engine(*vocabulary_and_merges(result), self.special, self.lowercase))


@dataclass(frozen=True, kw_only=True)
class WordPiece:
    """BERT's tokenizer: continuation subwords begin with ##; words are encoded by greedy longest match."""

    size: int = option(8000, "vocabulary size: special tokens, characters and merges", low=1, high=10_000_000)
    min_count: int = option(2, "minimum count of a pair to be merged", low=1)
    max_characters: int = option(1000, "number of most frequent characters to keep", low=1)
    lowercase: bool = option(True, "lowercase and remove accents")
    special_tokens: Special = tuple(BERT_NAMES.values())

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if "[UNK]" not in self.special_tokens:
            raise missing_special("WordPiece", "[UNK]", "for words it cannot encode")

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        """Train a tokenizer on a corpus."""
        load_engine()
        pretokens = count_corpus(corpus, "bert", self.lowercase, run)
        characters = frequent_characters(self, pretokens, "[UNK]", run)
        result = learn_merges(self, pretokens, kernel.initial_tokens(self.special_tokens, characters, prefix="##"), run)
        vocab, text = vocabulary_and_merges(result)[0], WordPieceText(self.lowercase)
        return SubwordTokenizer(wordpiece_engine(vocab, text, self.special_tokens))


@dataclass(frozen=True, kw_only=True)
class Characters:
    """One token per character, including spaces and line ends; ids are in order of the code points."""

    min_count: int = option(1, "minimum count of a character", low=1)
    special_tokens: Special = ("<unk>",)

    def __post_init__(self) -> None:
        check_options(self)
        check_special(self)
        if "<unk>" not in self.special_tokens:
            raise missing_special("Characters", "<unk>", "for unknown characters")

    def train(self, corpus: Any, run: Run = Run()) -> SubwordTokenizer:
        """Train a tokenizer on a corpus."""
        load_engine()
        counts: Counter[str] = Counter()
        for pretoken, count in count_corpus(corpus, "gpt2", False, run).words.pairs():
            for character in letters_to_text(pretoken):
                counts[character] += count
        characters = sorted(character for character, count in counts.items() if count >= self.min_count)
        left_out = len(counts) - len(characters)
        if left_out:
            text = f"min_count={self.min_count} left out {left_out:,} characters; they are encoded as <unk>."
            run.report.note(text, "characters_left_out")
        vocab = {token: id for id, token in enumerate(dict.fromkeys([*self.special_tokens, *characters]))}
        return SubwordTokenizer(single_characters_engine(vocab, self.special_tokens))


def missing_special(name: str, token: str, purpose: str) -> FirthError:
    """Return the error for a required special token that is not given."""
    return FirthError(
        "invalid_value",
        "{option} must include {missing!r}, {purpose}.",
        option=f"{name}.special_tokens",
        missing=token,
        purpose=purpose,
    )


def check_special(settings: BPE | WordPiece | Characters) -> None:
    """Refuse special tokens that are not a tuple of different, nonempty strings."""
    tokens = settings.special_tokens
    if tokens is None:
        return
    name = f"{type(settings).__name__}.special_tokens"
    if not isinstance(tokens, tuple) or not all(isinstance(token, str) for token in tokens):
        raise FirthError(
            "invalid_value",
            '{option} must be a tuple of str, such as ("<s>", "</s>"); got {got!r}.',
            option=name,
            got=tokens,
        )
    if any(not token or "\0" in token for token in tokens) or len(set(tokens)) < len(tokens):
        raise FirthError(
            "duplicate_name", "{option} must be different and not empty; got {got!r}.", option=name, got=tokens
        )


def count_corpus(corpus: Any, split: str, lowercase: bool, run: Run) -> PretokenCounts:
    """Count the pre-tokens of a corpus and report the notes."""
    texts = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    pretokens = count_pretokens(texts, split, lowercase, run)
    for note in pretokens.notes:
        run.report.note(*note)
    return pretokens


def frequent_characters(
    settings: BPE | WordPiece, pretokens: PretokenCounts, unknown: str, run: Run
) -> kernel.Alphabet:
    """Return the most frequent characters, and report how many are left out."""
    alphabet = kernel.alphabet(pretokens.words)
    frequent = kernel.most_frequent(alphabet, settings.max_characters)
    if len(frequent.codes) < len(alphabet.codes):
        left_out, share = len(alphabet.codes) - len(frequent.codes), 1 - frequent.counts.sum() / alphabet.counts.sum()
        run.report.note(
            f"max_characters={settings.max_characters:,} left out the {left_out:,} rarest characters "
            f"({share:.2g} of the text); they are encoded as {unknown}.",
            "characters_left_out",
        )
    return frequent


def learn_merges(
    settings: BPE | WordPiece, pretokens: PretokenCounts, initial: kernel.InitialTokens, run: Run
) -> kernel.TrainedBpe:
    """Learn merges until the vocabulary has the requested size."""
    first, size, name = len(initial.tokens), settings.size, type(settings).__name__
    if first > size:
        raise FirthError(
            "invalid_value",
            "{option} must be at least {minimum:,} for this corpus, the number of special tokens and characters; got "
            "{got:,}.",
            option=f"{name}.size",
            minimum=first,
            got=size,
        )
    run.report.begin("merging", size - first, "tokens")
    try:
        result = kernel.train(pretokens.words, initial, size, settings.min_count, run.report.step)
    finally:
        run.report.end()
    if len(result.tokens) < size:
        run.report.note(
            f"The vocabulary has only {len(result.tokens):,} tokens instead of size={size:,}: no other pair occurs "
            f"min_count={settings.min_count} times.",
            "small_vocabulary",
        )
    return result


def vocabulary_and_merges(result: kernel.TrainedBpe) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the vocabulary and the merges for the engine; if a pair was merged twice, the last merge counts."""
    pairs: dict[tuple[int, int], None] = {}
    for merge in result.merges:
        pairs.pop((merge.left, merge.right), None)
        pairs[merge.left, merge.right] = None
    tokens = result.tokens
    return {token: id for id, token in enumerate(tokens)}, [(tokens[left], tokens[right]) for left, right in pairs]
