"""`SubwordTokenizer`: encodes and decodes text with the package `tokenizers`, whatever files it was read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.remote import RemotePath, as_path
from firth.core.remote_folders import local_copy
from firth.core.storage import new_file, new_folder, saying_where
from firth.data.sentencepiece_files import SPACE
from firth.data.special_tokens import (
    SpecialTokens,
    Template,
    declared_ids,
    declared_names,
    special_tokens_of,
    template_of,
)
from firth.data.tokenizer_engines import load_engine, translating_errors
from firth.data.tokenizer_files import (
    CONFIG,
    MERGES,
    MOST_TOKENS,
    SPECIAL_MAP,
    TOKENIZER,
    VOCAB_JSON,
    VOCAB_TXT,
    open_engine,
    write_text,
)

BYTE_SPACE = "Ġ"  # the space in tokens of byte-level BPE


class Encoding(NamedTuple):
    """An encoded text: token ids, tokens, and the character offsets (begin, end) of each token."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class SubwordTokenizer:
    """A tokenizer trained by `BPE`, `WordPiece` or `Characters`, or read from files by `SubwordTokenizer.load`.

    `names` are special tokens by role and `role_ids` their ids, as far as files beside the tokenizer declare them.
    Immutable, so threads can share it.
    """

    def __init__(
        self, engine: Any, names: Mapping[str, str] | None = None, role_ids: Mapping[str, int] | None = None
    ) -> None:
        padding = {"pad": engine.padding["pad_token"]} if engine.padding else {}
        self._names, self._role_ids = {**padding, **(names or {})}, dict(role_ids or {})
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
        unknown_id = -1 if self.special.unk is None else self.special.unk.id
        ids = self.ids_batch(texts, special=False)
        unknown = np.array([each.count(unknown_id) for each in ids], np.int64)
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

        def normalized(word: str) -> str:
            return str(engine.normalize_str(word)).replace(SPACE, " ").strip() if engine else word

        return lru_cache(1 << 16)(normalized)

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

    @cached_property
    def template(self) -> Template:
        """The ids that `encode` adds around a text and around and between the texts of a pair."""
        template = template_of(self.engine, load_engine())
        highest = max((id for part in template[:5] for id in part), default=0)
        if highest >= self.size:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer adds a special token with the id {got:,} to texts; its ids go from 0 to {highest:,}. "
                "Check its post_processor.",
                got=highest,
                highest=self.size - 1,
            )
        return template

    @property
    def training_template(self) -> Template:
        """The template; for a tokenizer without one, as GPT's, its begin and end tokens around each text."""
        if self.template.added:
            return self.template
        return Template.enclosing(self.special.require("bos").id, self.special.require("eos").id)

    @cached_property
    def special(self) -> SpecialTokens:
        """The special tokens by role: pad, unk, cls, sep, mask, bos and eos; None for a role that no token has."""
        model = self._document["model"]
        unknown = model.get("unk_token") or self.tokens.get(model.get("unk_id"))
        return special_tokens_of(self.ids, self.tokens, self._names, self._role_ids, self.template, unknown)

    @cached_property
    def continues_word(self) -> NDArray[np.bool_]:
        """Whether the token of each id continues a word: it has WordPiece's prefix, or lacks the space before it that
        byte-level BPE and sentencepiece models mark."""
        model = self._document["model"]
        prefix, space = model.get("continuing_subword_prefix") or "", self.space
        continues = np.zeros(self.size, bool)
        special = set(self.special_tokens.values())
        for token, id in self.ids.items():
            if id not in special:
                continues[id] = token.startswith(prefix) if prefix else bool(space) and not token.startswith(space)
        return continues

    @cached_property
    def space(self) -> str:
        """The character that marks a space before a word, in byte-level BPE and sentencepiece models; else empty."""
        texts = json.dumps([self._document.get(step) for step in ("normalizer", "pre_tokenizer")], ensure_ascii=False)
        return BYTE_SPACE if '"ByteLevel"' in texts else SPACE if SPACE in texts else ""

    def lowercased(self) -> SubwordTokenizer:
        """Return a tokenizer that converts text to lower case first; this one if it does already."""
        normalizer = json.dumps(self._document.get("normalizer"))
        if '"lowercase": true' in normalizer or '"Lowercase"' in normalizer:
            return self
        tk = load_engine()
        engine = tk.Tokenizer.from_str(self.to_json())
        steps = [tk.normalizers.Lowercase(), *([engine.normalizer] if engine.normalizer else [])]
        engine.normalizer = tk.normalizers.Sequence(steps)
        return SubwordTokenizer(engine, self._names, self._role_ids)

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
    def from_json(
        cls, text: str | bytes, where: str = TOKENIZER, config: Mapping[str, Any] | None = None
    ) -> SubwordTokenizer:
        """Read what `to_json` returned; `config` is the content of tokenizer_config.json, which declares special
        tokens. No code in them is executed."""
        data = text.encode() if isinstance(text, str) else text
        with translating_errors(f"{where} is not a tokenizer"):
            return cls(load_engine().Tokenizer.from_buffer(data), declared_names([(CONFIG, config or {})]))

    def save(self, path: str | Path) -> Path:
        """Write tokenizer.json (path *.json), vocab.txt (path *.txt), or a folder with tokenizer.json and the files of
        the model type: vocab.txt for WordPiece, vocab.json and merges.txt for BPE."""
        target = as_path(path)
        if isinstance(target, RemotePath):
            with new_file(target) if target.suffix in (".json", ".txt") else new_folder(target) as work:
                self.save(work)
            return cast(Path, target)  # it has the methods of a Path
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
            elif self.kind == "bpe" and self.space != SPACE:  # no file but tokenizer.json says how spaces are marked
                write_text(target / VOCAB_JSON, json.dumps(self.ids, ensure_ascii=False))
                lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges), ""]
                write_text(target / MERGES, "\n".join(lines))
            if SubwordTokenizer(load_engine().Tokenizer.from_str(self.to_json())).special != self.special:
                write_text(target / SPECIAL_MAP, json.dumps(self.special.config(), ensure_ascii=False))
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
        """Load a tokenizer file, or a folder with one: tokenizer.json, vocab.txt, vocab.json with merges.txt, or a
        sentencepiece model (sentencepiece.bpe.model, spiece.model, tokenizer.model, spm.model).

        Other files of the folder are read for special tokens and settings: tokenizer_config.json,
        special_tokens_map.json, added_tokens.json and config.json. `lowercase` is used for a vocab.txt if no file says
        whether text is lowercased.
        """
        with local_copy(path) as local:
            engine, settings = open_engine(local, lowercase)
        return cls(engine, settings.names(), declared_ids(settings.model))


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


@runtime_checkable
class HasSubwordTokenizer(Protocol):
    """Splits texts into subwords."""

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer."""
