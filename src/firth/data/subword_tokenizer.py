"""`SubwordTokenizer`: text to ids and back by the package `tokenizers`, with its files and those of BERT and GPT-2."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.storage import new_file, read_json, saying_where

TOKENIZER, VOCAB_TXT, VOCAB_JSON, MERGES, CONFIG = (
    "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json",
)  # fmt: skip
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
END_OF_WORD = "</w>"
MOST_BYTES = 1 << 29  # of a file of tokens; the largest known ones have a thirtieth of it
MOST_TOKENS = 10_000_000


class Encoding(NamedTuple):
    """A text as tokens: ids, how they are written, and where in the text each stands (characters, begin and end)."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class SubwordTokenizer:
    """Made by `BPE`, `WordPiece` or `Characters`, or read from files: `SubwordTokenizer.load`.

    Immutable: threads can share it.
    """

    def __init__(self, engine: Any) -> None:
        engine.no_truncation()  # nothing is cut unasked
        engine.no_padding()
        self.engine = engine
        if self.size > MOST_TOKENS:
            count = len(self.ids)
            raise FirthError(
                "invalid_tokenizer",
                "The highest id is {size:,} for {count:,} tokens; Firth takes {most_tokens:,}.",
                size=self.size - 1,
                count=count,
                most_tokens=MOST_TOKENS,
            )

    # ---- text to ids and back ----

    def encode(self, text: str, special: bool = True) -> Encoding:
        """`special` adds what the tokenizer puts around a text: [CLS] … [SEP] for WordPiece, nothing for BPE."""
        return self.encode_batch([text], special)[0]

    def encode_batch(self, texts: Sequence[str], special: bool = True) -> list[Encoding]:
        """On all cores."""
        encodings = self._call(self.engine.encode_batch, checked_texts(texts), add_special_tokens=special)
        return [Encoding(encoding.ids, encoding.tokens, encoding.offsets) for encoding in encodings]

    def ids_batch(self, texts: Sequence[str], special: bool = True) -> list[list[int]]:
        """`encode_batch`, the ids alone: quicker."""
        encodings = self._call(self.engine.encode_batch_fast, checked_texts(texts), add_special_tokens=special)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """The text; special tokens are left out unless asked for."""
        numbers = [int(id) for id in ids]
        unknown_ids = [id for id in numbers if id not in self.tokens]
        if unknown_ids:
            raise FirthError(
                "unknown_token",
                "There is no token {problem}; ids go from 0 to {size}.",
                problem=unknown_ids[0],
                size=self.size - 1,
            )
        return str(self._call(self.engine.decode, numbers, skip_special_tokens=not special))

    def _call(self, work: Callable[..., Any], *values: Any, **settings: Any) -> Any:
        with translating_errors("This tokenizer can't do that"):
            return work(*values, **settings)

    # ---- tokens ----

    @cached_property
    def normalize(self) -> Callable[[str], str]:
        """A word as the tokenizer sees it: without capitals and accents, where it folds them."""
        engine = self.engine.normalizer
        return lru_cache(1 << 16)(lambda word: str(engine.normalize_str(word)).strip() if engine else word)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Id of each token, special ones among them."""
        return dict(sorted(self.engine.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1]))

    @cached_property
    def tokens(self) -> Mapping[int, str]:
        return {id: token for token, id in self.ids.items()}

    @property
    def size(self) -> int:
        """One more than the highest id: the rows that a table of vectors needs."""
        return max(self.ids.values(), default=-1) + 1

    def __len__(self) -> int:
        return self.size

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        added = self.engine.get_added_tokens_decoder()
        return {token.content: id for id, token in sorted(added.items()) if token.special}

    def special_id(self, token: str) -> int:
        """The id of a special token."""
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
        """bpe, wordpiece or characters; of other people's tokenizers, what their file says."""
        name = str(self._document["model"].get("type")).lower()
        alone = name == "bpe" and not self.merges and not self._document["pre_tokenizer"]
        return "characters" if alone else name

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs that BPE joins, the first first; WordPiece has none."""
        pairs = self._document["model"].get("merges") or ()
        return [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in pairs]  # type: ignore[misc]

    @property
    def fingerprint(self) -> str:
        """Tells whether two are the same."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __repr__(self) -> str:
        return f"SubwordTokenizer({self.kind}, {len(self.ids):,} tokens, {len(self.special_tokens)} special)"

    # ---- files ----

    def to_json(self) -> str:
        """What tokenizer.json holds."""
        return str(self.engine.to_str(pretty=True))

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "tokenizer.json") -> SubwordTokenizer:
        """The inverse of `to_json`. Nothing in it is executed."""
        data = text.encode() if isinstance(text, str) else text
        with translating_errors(f"{where} is not a tokenizer"):
            return cls(load_engine().Tokenizer.from_buffer(data))

    def save(self, path: str | Path) -> Path:
        """A file .json: tokenizer.json. A file .txt: vocab.txt. Else a folder with these, and GPT-2's two files."""
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
                "vocab.txt is WordPiece's file; this is {kind}: save a .json file or a folder.",
                kind=self.kind,
            )
        if sorted(self.tokens) != list(range(self.size)):
            raise FirthError(
                "conflicting_options",
                "vocab.txt has a line for each id, but here some ids have no token; save a .json file.",
            )
        return "".join(token + "\n" for token in self.ids)

    @classmethod
    def load(cls, path: str | Path, lowercase: bool = True) -> SubwordTokenizer:
        """A tokenizer.json, a vocab.txt, or a folder with one of them or with vocab.json and merges.txt.

        vocab.txt does not say whether case is folded: `lowercase` does, or tokenizer_config.json in the same folder.
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
            "{path} holds no tokenizer: no {tokenizer}, {vocab_txt}, or {vocab_json} with {merges}.",
            path=source,
            tokenizer=TOKENIZER,
            vocab_txt=VOCAB_TXT,
            vocab_json=VOCAB_JSON,
            merges=MERGES,
        )


def checked_texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise FirthError("invalid_type", "encode_batch takes a list of texts; for one text there is encode.")
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
                "A text can't hold {text!a}, a lone surrogate: no character.",
                text=text[error.start],
            ) from None
    return list(texts)


@contextlib.contextmanager
def translating_errors(rule: str) -> Iterator[None]:
    """What the Rust code refuses, or panics at (which is a BaseException), becomes one line."""
    try:
        yield
    except (FirthError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        raise FirthError(
            "invalid_tokenizer", "{rule}: {reason}.", rule=rule, reason=str(error).strip() or type(error).__name__
        ) from None


def load_engine() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise missing_package("Subword tokenizers need", "tokenizers", "tokenizers") from None
    return tokenizers


# ---- engines ----


def bytes_engine(vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Sequence[str]) -> Any:
    """GPT-2's: any text can be written, and comes back as it was."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=list(merges)))
    engine.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = tk.decoders.ByteLevel()
    engine.post_processor = tk.processors.ByteLevel(trim_offsets=False)
    return with_special(engine, special)


def characters_engine(
    vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Sequence[str], lowercase: bool
) -> Any:
    """BPE over characters with an end of word, as the first GPT had it."""
    tk = load_engine()
    model = tk.models.BPE(vocab=dict(vocab), merges=list(merges), unk_token="<unk>", end_of_word_suffix=END_OF_WORD)
    engine = tk.Tokenizer(model)
    engine.normalizer = tk.normalizers.BertNormalizer(lowercase=lowercase)
    engine.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tk.decoders.BPEDecoder(suffix=END_OF_WORD)
    return with_special(engine, special)


def wordpiece_engine(vocab: Mapping[str, int], lowercase: bool, special: Sequence[str]) -> Any:
    """BERT's: the longest piece that fits, then the longest that goes on; [CLS] and [SEP] around a text."""
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
    """Each character a token: BPE without merges."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=[], unk_token="<unk>"))
    engine.decoder = tk.decoders.Fuse()
    return with_special(engine, special)


def with_special(engine: Any, special: Sequence[str]) -> Any:
    if special:  # they have ids already; this makes them found in texts and hidden in decoded ones
        engine.add_special_tokens(list(special))
    return engine


# ---- files ----


def write_text(path: Path, text: str) -> None:
    with new_file(path) as work:
        work.write_text(text, encoding="utf-8", newline="\n")


def read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FirthError(
                "invalid_tokenizer",
                "{path} has {size:,} bytes; a file of a tokenizer has at most {most_bytes:,}.",
                path=path,
                size=size,
                most_bytes=MOST_BYTES,
            )
        return path.read_bytes()
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def read_lines(path: Path) -> list[str]:
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FirthError(
            "invalid_encoding", "{path} is not UTF-8 (byte {start:,}).", path=path, start=error.start
        ) from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def read_vocab_text(path: Path) -> dict[str, int]:
    """One token a line, its id the number of the line."""
    lines = read_lines(path)
    vocab = {token: id for id, token in enumerate(lines)}
    if len(vocab) < len(lines) or "" in vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path}: each line must be another token; {n_lines} are not.",
            path=path,
            n_lines=len(lines) - len(vocab) + ("" in vocab),
        )
    if "[UNK]" not in vocab:
        raise FirthError(
            "invalid_tokenizer", "{path} has no [UNK], which WordPiece needs for what no piece fits.", path=path
        )
    return vocab


def read_gpt2(folder: Path) -> Any:
    """vocab.json and merges.txt, as GPT-2 has them."""
    vocab = read_json(folder / VOCAB_JSON)
    is_valid = isinstance(vocab, dict) and all(type(id) is int and 0 <= id < MOST_TOKENS for id in vocab.values())
    if not is_valid or not vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path} must give an id below {most_tokens:,} to each token.",
            path=folder / VOCAB_JSON,
            most_tokens=MOST_TOKENS,
        )
    if len(set(vocab.values())) < len(vocab):
        raise FirthError("invalid_tokenizer", "{path} gives the same id to several tokens.", path=folder / VOCAB_JSON)
    lines = [line for line in read_lines(folder / MERGES) if line]
    lines = lines[1:] if lines and lines[0].startswith("#version") else lines
    merges = [tuple(line.split(" ")) for line in lines]
    malformed = next((line for line, pair in zip(lines, merges, strict=True) if len(pair) != 2), None)
    if malformed is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path}: a line is two tokens with a space between; got {got!r:.60}.",
            path=folder / MERGES,
            got=malformed,
        )
    learned = {part for left, is_valid in merges for part in (left, is_valid, left + is_valid)}
    missing = min(learned - set(vocab), default=None)
    if missing is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path} has or merges to {missing!r:.60}, which {vocab_json} lacks.",
            path=folder / MERGES,
            missing=missing,
            vocab_json=VOCAB_JSON,
        )
    bracketed = (token for token in vocab if len(token) > 2 and token[0] + token[-1] in ("<>", "[]"))
    special = [token for token in bracketed if token not in learned]
    with translating_errors(f"{folder} is not a tokenizer"):
        if any(token.endswith(END_OF_WORD) for token in vocab):
            return characters_engine(vocab, merges, special, lowercase_setting(folder, False))  # type: ignore[arg-type]
        return bytes_engine(vocab, merges, special)  # type: ignore[arg-type]


def lowercase_setting(folder: Path, default: bool) -> bool:
    """What tokenizer_config.json says, where there is one that says it."""
    if not (folder / CONFIG).exists():
        return default
    config = read_json(folder / CONFIG)
    return bool(config.get("do_lower_case", default)) if isinstance(config, dict) else default
