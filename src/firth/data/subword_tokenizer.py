"""`SubwordTokenizer`: encodes and decodes text with the package `tokenizers`; reads its, BERT's and GPT-2's files."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.storage import new_file, read_json, saying_where

TOKENIZER, VOCAB_TXT, VOCAB_JSON, MERGES, CONFIG = (
    "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json",
)  # fmt: skip
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNKNOWN = ("[UNK]", "<unk>")  # special tokens for what is not in the vocabulary
END_OF_WORD = "</w>"
MOST_BYTES = 1 << 29  # maximum size of a tokenizer file; the largest known ones have a thirtieth of it
MOST_TOKENS = 10_000_000


class Encoding(NamedTuple):
    """An encoded text: token ids, tokens, and the character offsets (begin, end) of each token."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class SubwordTokenizer:
    """A tokenizer trained by `BPE`, `WordPiece` or `Characters`, or read from files by `SubwordTokenizer.load`.

    Immutable, so threads can share it.
    """

    def __init__(self, engine: Any) -> None:
        engine.no_truncation()  # truncation is up to the caller
        engine.no_padding()
        self.engine = engine
        if self.size > MOST_TOKENS:
            count = len(self.ids)
            raise FirthError(
                "invalid_tokenizer",
                "The highest token id is {highest:,} for {tokens:,} tokens; it must be below {maximum:,}.",
                highest=self.size - 1,
                tokens=count,
                maximum=MOST_TOKENS,
            )

    # ---- text to ids and back ----

    def encode(self, text: str, special: bool = True) -> Encoding:
        """Encode a text; `special` adds the special tokens around it, such as [CLS] … [SEP] for WordPiece."""
        return self.encode_batch([text], special)[0]

    def encode_batch(self, texts: Sequence[str], special: bool = True) -> list[Encoding]:
        """Encode several texts on all cores."""
        encodings = self._call(self.engine.encode_batch, checked_texts(texts), add_special_tokens=special)
        return [Encoding(encoding.ids, encoding.tokens, encoding.offsets) for encoding in encodings]

    def ids_batch(self, texts: Sequence[str], special: bool = True) -> list[list[int]]:
        """Return only the ids of several texts, which is faster than `encode_batch`."""
        encodings = self._call(self.engine.encode_batch_fast, checked_texts(texts), add_special_tokens=special)
        return [encoding.ids for encoding in encodings]

    def count_known(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of known and of unknown tokens of each text, without special tokens."""
        unknown_ids = {id for token in UNKNOWN if (id := self.ids.get(token)) is not None}
        ids = self.ids_batch(texts, special=False)
        unknown = np.array([sum(id in unknown_ids for id in each) for each in ids], np.int64)
        return np.array([len(each) for each in ids], np.int64) - unknown, unknown

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """Decode ids to text, without special tokens unless `special` is set."""
        numbers = [int(id) for id in ids]
        unknown_ids = [id for id in numbers if id not in self.tokens]
        if unknown_ids:
            raise FirthError(
                "unknown_token",
                "There is no token with the id {got}; ids go from 0 to {highest}.",
                got=unknown_ids[0],
                highest=self.size - 1,
            )
        return str(self._call(self.engine.decode, numbers, skip_special_tokens=not special))

    def _call(self, work: Callable[..., Any], *values: Any, **settings: Any) -> Any:
        with translating_errors("The tokenizer failed"):
            return work(*values, **settings)

    # ---- tokens ----

    @cached_property
    def normalize(self) -> Callable[[str], str]:
        """A function that normalizes a word as the tokenizer does, for example to lower case without accents."""
        engine = self.engine.normalizer
        return lru_cache(1 << 16)(lambda word: str(engine.normalize_str(word)).strip() if engine else word)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The id of each token, including special tokens."""
        return dict(sorted(self.engine.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1]))

    @cached_property
    def tokens(self) -> Mapping[int, str]:
        """The token of each id."""
        return {id: token for token, id in self.ids.items()}

    @property
    def size(self) -> int:
        """The highest id plus one: the number of rows of an embedding table."""
        return max(self.ids.values(), default=-1) + 1

    def __len__(self) -> int:
        return self.size

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """The id of each special token."""
        added = self.engine.get_added_tokens_decoder()
        return {token.content: id for id, token in sorted(added.items()) if token.special}

    def special_id(self, token: str) -> int:
        """Return the id of a special token."""
        if token not in self.special_tokens:
            available = ", ".join(self.special_tokens) or "none"
            raise FirthError(
                "unknown_token",
                "This tokenizer has no special token {token!r}; it has {available}.",
                token=token,
                available=available,
            )
        return self.special_tokens[token]

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    @property
    def kind(self) -> str:
        """The type of the model: bpe, wordpiece, characters, or the type given in an external file."""
        name = str(self._document["model"].get("type")).lower()
        alone = name == "bpe" and not self.merges and not self._document["pre_tokenizer"]
        return "characters" if alone else name

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The merges of BPE in order; WordPiece has none."""
        pairs = self._document["model"].get("merges") or ()
        return [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in pairs]  # type: ignore[misc]

    @property
    def fingerprint(self) -> str:
        """A hash of the tokenizer's JSON form."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __repr__(self) -> str:
        return f"SubwordTokenizer({self.kind}, {len(self.ids):,} tokens, {len(self.special_tokens)} special)"

    # ---- files ----

    def to_json(self) -> str:
        """Return the content of tokenizer.json."""
        return str(self.engine.to_str(pretty=True))

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "tokenizer.json") -> SubwordTokenizer:
        """Read what `to_json` returned. No code in it is executed."""
        data = text.encode() if isinstance(text, str) else text
        with translating_errors(f"{where} is not a tokenizer"):
            return cls(load_engine().Tokenizer.from_buffer(data))

    def save(self, path: str | Path) -> Path:
        """Write tokenizer.json (path *.json), vocab.txt (path *.txt), or a folder with tokenizer.json and the files of
        the model type: vocab.txt for WordPiece, vocab.json and merges.txt for BPE."""
        target = Path(path)
        if target.suffix == ".json":
            write_text(target, self.to_json())
        elif target.suffix == ".txt":
            write_text(target, self._vocab_text())
        else:
            with saying_where(target):
                target.mkdir(parents=True, exist_ok=True)
            write_text(target / TOKENIZER, self.to_json())
            if self.kind == "wordpiece":
                write_text(target / VOCAB_TXT, self._vocab_text())
            elif self.kind == "bpe":
                write_text(target / VOCAB_JSON, json.dumps(self.ids, ensure_ascii=False))
                lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges), ""]
                write_text(target / MERGES, "\n".join(lines))
        return target

    def _vocab_text(self) -> str:
        if self.kind != "wordpiece":
            raise FirthError(
                "unknown_format",
                "vocab.txt is a WordPiece file; this tokenizer is {kind}. Save a .json file or a folder.",
                kind=self.kind,
            )
        if sorted(self.tokens) != list(range(self.size)):
            raise FirthError(
                "conflicting_options",
                "vocab.txt needs a token for every id, but {missing:,} ids have none. Save a .json file.",
                missing=self.size - len(self.tokens),
            )
        return "".join(token + "\n" for token in self.ids)

    @classmethod
    def load(cls, path: str | Path, lowercase: bool = True) -> SubwordTokenizer:
        """Load tokenizer.json, vocab.txt, or a folder with one of them or with vocab.json and merges.txt.

        vocab.txt does not record whether text is lowercased. tokenizer_config.json in the same folder does; without it,
        `lowercase` is used.
        """
        source = Path(path)
        if not source.is_dir():
            if source.suffix == ".txt":
                return cls(wordpiece_engine(read_vocab_text(source), lowercase_setting(source.parent, lowercase), BERT))
            return cls.from_json(read_bytes(source), str(source))
        if (source / TOKENIZER).exists():
            return cls.from_json(read_bytes(source / TOKENIZER), str(source / TOKENIZER))
        if (source / VOCAB_TXT).exists():
            return cls.load(source / VOCAB_TXT, lowercase)
        if (source / VOCAB_JSON).exists() and (source / MERGES).exists():
            return cls(read_gpt2(source))
        raise FirthError(
            "invalid_tokenizer",
            "{path} has no tokenizer; expected {expected}.",
            path=source,
            expected=f"{TOKENIZER}, {VOCAB_TXT}, or {VOCAB_JSON} with {MERGES}",
        )


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list, and refuse anything that is not valid Unicode text."""
    if isinstance(texts, str):
        raise FirthError(
            "invalid_type", "encode_batch takes a list of texts; got {got}. Use encode for one text.", got="str"
        )
    for text in texts:
        if not isinstance(text, str):
            raise FirthError(
                "invalid_type", "A text must be str; got {got}: {text!r:.40}.", got=type(text).__name__, text=text
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise FirthError(
                "invalid_encoding",
                "A text has the lone surrogate {got!a}, which is not a character.",
                got=text[error.start],
            ) from None
    return list(texts)


@contextlib.contextmanager
def translating_errors(rule: str) -> Iterator[None]:
    """Turn errors and panics of the Rust code (panics are a BaseException) into a FirthError."""
    try:
        yield
    except (FirthError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        raise FirthError(
            "invalid_tokenizer", "{rule}: {reason}.", rule=rule, reason=str(error).strip() or type(error).__name__
        ) from None


def load_engine() -> Any:
    """Import the package `tokenizers`."""
    try:
        import tokenizers
    except ImportError:
        raise missing_package("Subword tokenizers need", "tokenizers", "tokenizers") from None
    return tokenizers


# ---- engines ----


def bytes_engine(vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Sequence[str]) -> Any:
    """Return a byte-level BPE tokenizer, as in GPT-2, which can encode any text without loss."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=list(merges)))
    engine.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = tk.decoders.ByteLevel()
    engine.post_processor = tk.processors.ByteLevel(trim_offsets=False)
    return with_special(engine, special)


def characters_engine(
    vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Sequence[str], lowercase: bool
) -> Any:
    """Return a character-level BPE tokenizer with an end-of-word suffix, as in the first GPT."""
    tk = load_engine()
    model = tk.models.BPE(vocab=dict(vocab), merges=list(merges), unk_token="<unk>", end_of_word_suffix=END_OF_WORD)
    engine = tk.Tokenizer(model)
    engine.normalizer = tk.normalizers.BertNormalizer(lowercase=lowercase)
    engine.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tk.decoders.BPEDecoder(suffix=END_OF_WORD)
    return with_special(engine, special)


def wordpiece_engine(vocab: Mapping[str, int], lowercase: bool, special: Sequence[str]) -> Any:
    """Return a WordPiece tokenizer, as in BERT: greedy longest match, with [CLS] and [SEP] around a text."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.WordPiece(vocab=dict(vocab), unk_token="[UNK]"))
    engine.normalizer = tk.normalizers.BertNormalizer(lowercase=lowercase)
    engine.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tk.decoders.WordPiece(prefix="##")
    if "[CLS]" in vocab and "[SEP]" in vocab:
        engine.post_processor = tk.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, vocab[token]) for token in ("[CLS]", "[SEP]")],
        )
    return with_special(engine, [token for token in special if token in vocab])


def single_characters_engine(vocab: Mapping[str, int], special: Sequence[str]) -> Any:
    """Return a tokenizer with one token per character: BPE without merges."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=[], unk_token="<unk>"))
    engine.decoder = tk.decoders.Fuse()
    return with_special(engine, special)


def with_special(engine: Any, special: Sequence[str]) -> Any:
    """Mark special tokens, which are recognized in texts and omitted when decoding."""
    if special:  # they already have ids
        engine.add_special_tokens(list(special))
    return engine


# ---- files ----


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with new_file(path) as work:
        work.write_text(text, encoding="utf-8", newline="\n")


def read_bytes(path: Path) -> bytes:
    """Read a tokenizer file, whose size is limited."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FirthError(
                "invalid_tokenizer",
                "{path} has {size:,} bytes; a tokenizer file may have at most {maximum:,}.",
                path=path,
                size=size,
                maximum=MOST_BYTES,
            )
        return path.read_bytes()
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file."""
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FirthError(
            "invalid_encoding", "{path} is not valid UTF-8 at byte {byte:,}.", path=path, byte=error.start
        ) from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def read_vocab_text(path: Path) -> dict[str, int]:
    """Read a vocab.txt with one token per line; the id is the line number, from 0."""
    lines = read_lines(path)
    vocab = {token: id for id, token in enumerate(lines)}
    if len(vocab) < len(lines) or "" in vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path}: each line must have a different token; {repeated} lines are empty or repeated.",
            path=path,
            repeated=len(lines) - len(vocab) + ("" in vocab),
        )
    if "[UNK]" not in vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path} has no {missing} token, which WordPiece needs for words it cannot encode.",
            path=path,
            missing="[UNK]",
        )
    return vocab


def read_gpt2(folder: Path) -> Any:
    """Read vocab.json and merges.txt, as GPT-2 uses them."""
    vocab = read_json(folder / VOCAB_JSON)
    is_valid = isinstance(vocab, dict) and all(type(id) is int and 0 <= id < MOST_TOKENS for id in vocab.values())
    if not is_valid or not vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path} must be a JSON object that maps each token to an id below {maximum:,}.",
            path=folder / VOCAB_JSON,
            maximum=MOST_TOKENS,
        )
    if len(set(vocab.values())) < len(vocab):
        raise FirthError(
            "invalid_tokenizer",
            "{path} has {tokens:,} tokens but only {ids:,} different ids.",
            path=folder / VOCAB_JSON,
            tokens=len(vocab),
            ids=len(set(vocab.values())),
        )
    lines = [line for line in read_lines(folder / MERGES) if line]
    lines = lines[1:] if lines and lines[0].startswith("#version") else lines
    merges = [tuple(line.split(" ")) for line in lines]
    malformed = next((line for line, pair in zip(lines, merges, strict=True) if len(pair) != 2), None)
    if malformed is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path}: each line must have two tokens separated by a space; got {got!r:.60}.",
            path=folder / MERGES,
            got=malformed,
        )
    learned = {part for left, is_valid in merges for part in (left, is_valid, left + is_valid)}
    missing = min(learned - set(vocab), default=None)
    if missing is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path} uses the token {missing!r:.60}, which is not in {vocabulary}.",
            path=folder / MERGES,
            missing=missing,
            vocabulary=VOCAB_JSON,
        )
    bracketed = (token for token in vocab if len(token) > 2 and token[0] + token[-1] in ("<>", "[]"))
    special = [token for token in bracketed if token not in learned]
    with translating_errors(f"{folder} is not a tokenizer"):
        if any(token.endswith(END_OF_WORD) for token in vocab):
            return characters_engine(vocab, merges, special, lowercase_setting(folder, False))  # type: ignore[arg-type]
        return bytes_engine(vocab, merges, special)  # type: ignore[arg-type]


def lowercase_setting(folder: Path, default: bool) -> bool:
    """Return the lowercase setting of tokenizer_config.json, or `default` if there is none."""
    if not (folder / CONFIG).exists():
        return default
    config = read_json(folder / CONFIG)
    return bool(config.get("do_lower_case", default)) if isinstance(config, dict) else default


@runtime_checkable
class HasSubwordTokenizer(Protocol):
    """Splits texts into subwords."""

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer."""
