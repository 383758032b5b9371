"""Tokenizer files of other libraries: tokenizer.json, vocab.txt, vocab.json with merges.txt, sentencepiece models, and
the settings in the files beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.storage import new_file, read_json
from firth.data import sentencepiece_files
from firth.data.special_tokens import BERT_NAMES, FAIRSEQ_NAMES, declared_names
from firth.data.tokenizer_engines import (
    END_OF_WORD,
    WordPieceText,
    bytes_engine,
    characters_engine,
    load_engine,
    roberta_processor,
    translating_errors,
    with_added_tokens,
    with_template,
    wordpiece_engine,
)

TOKENIZER, VOCAB_TXT, VOCAB_JSON, MERGES, CONFIG = (
    "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json",
)  # fmt: skip
SPECIAL_MAP, ADDED_TOKENS, MODEL_CONFIG = "special_tokens_map.json", "added_tokens.json", "config.json"
SOURCE_MODEL, TARGET_VOCAB = "source.spm", "target_vocab.json"  # of Marian, beside vocab.json
SENTENCEPIECE = ("sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "spm.model")
MOST_BYTES = 1 << 29  # maximum size of a tokenizer file; the largest known ones have a thirtieth of it
MOST_TOKENS = 10_000_000
ANY_FAMILY = ("", "pretrained", "pretrainedfast", "tokenizersbackend")  # classes that name no family
BYTE_FAMILIES = ("gpt2", "gpt", "roberta", "bart", "longformer", "led", "deberta", "openaigpt")


class Settings(NamedTuple):
    """What the files beside a tokenizer file say; empty where there are none."""

    folder: Path
    config: Mapping[str, Any]  # tokenizer_config.json
    special_map: Mapping[str, Any]  # special_tokens_map.json
    model: Mapping[str, Any]  # config.json of the model

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read the files of a folder."""
        model = read_json(folder / MODEL_CONFIG) if (folder / MODEL_CONFIG).is_file() else {}
        config, special_map = read_object(folder / CONFIG), read_object(folder / SPECIAL_MAP)
        return cls(folder, config, special_map, model if isinstance(model, dict) else {})

    @property
    def family(self) -> str:
        """The family of models whose conventions apply, such as xlmroberta; by tokenizer class, else by model type."""
        named = str(self.config.get("tokenizer_class") or "").removesuffix("Fast").removesuffix("Tokenizer").lower()
        family = self.model.get("model_type") if named in ANY_FAMILY else named
        return str(family or "").lower().replace("-", "").replace("_", "")

    def names(self, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the special tokens by role; `defaults` are the family's."""
        return {**(defaults or {}), **declared_names(((CONFIG, self.config), (SPECIAL_MAP, self.special_map)))}

    def flag(self, name: str, default: Any) -> Any:
        """Return a setting of tokenizer_config.json that is true, false or null."""
        value = self.config.get(name, default)
        if value is not None and not isinstance(value, bool):
            raise FirthError(
                "invalid_tokenizer",
                "{file}: {key} must be true or false; got {got!r:.60}.",
                file=self.folder / CONFIG,
                key=name,
                got=value,
            )
        return default if value is None else value

    def added(self, names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Return the added tokens with flags and declared ids: the special tokens by role, and those that the files
        list. The mask of most families absorbs the space before it."""
        names = dict(names)
        added: dict[str, dict[str, Any]] = {
            token: {"special": True, "lstrip": role == "mask" and token != BERT_NAMES["mask"]}
            for role, token in names.items()
        }
        for document in (self.special_map, self.config):
            for entry in (document.get(f"{role}_token") for role in names):
                if isinstance(entry, dict) and isinstance(entry.get("content"), str):
                    added[entry["content"]] = {**entry, "special": True}
        listed = self.config.get("added_tokens_decoder") or {}
        old = read_object(self.folder / ADDED_TOKENS)
        try:
            added |= {token: {**added.get(token, {}), "id": int(id)} for token, id in old.items()}
            added |= {entry["content"]: {**entry, "id": int(id)} for id, entry in listed.items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FirthError(
                "invalid_tokenizer",
                "{folder}: {files} must list added tokens with an id and a content.",
                folder=self.folder,
                files=f"{CONFIG} and {ADDED_TOKENS}",
            ) from None
        return added


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if the file does not exist."""
    document = read_json(path) if path.is_file() else {}
    if not isinstance(document, dict):
        raise FirthError("invalid_tokenizer", "{path} must be a JSON object.", path=path)
    return document


def open_engine(path: Path, lowercase: bool) -> tuple[Any, Settings]:
    """Return the engine of a tokenizer file, or of the first such file in a folder, and the settings beside it.

    `lowercase` is used for WordPiece if no file says whether text is lowercased.
    """
    settings = Settings.read(path if path.is_dir() else path.parent)
    if path.is_dir():
        if not (path / TOKENIZER).exists() and (path / SOURCE_MODEL).exists():
            return read_marian(path, settings), settings
        files = (TOKENIZER, VOCAB_TXT, VOCAB_JSON, *SENTENCEPIECE)
        name = next((name for name in files if (path / name).exists()), "")
        if not name or (name == VOCAB_JSON and not (path / MERGES).exists()):
            raise FirthError(
                "invalid_tokenizer",
                "{path} has no tokenizer; expected {expected}.",
                path=path,
                expected=f"{TOKENIZER}, {VOCAB_TXT}, {VOCAB_JSON} with {MERGES}, or {', '.join(SENTENCEPIECE)}",
            )
        path /= name
    if path.suffix == ".txt":
        return read_wordpiece(path, settings, lowercase), settings
    if path.name == VOCAB_JSON and (path.parent / MERGES).exists():
        return read_byte_pairs(path.parent, settings), settings
    if path.suffix in (".model", ".spm"):
        return read_sentencepiece(path, settings, settings.family), settings
    data = read_bytes(path)
    with translating_errors(f"{path} is not a tokenizer"):
        return load_engine().Tokenizer.from_buffer(data), settings


def read_sentencepiece(path: Path, settings: Settings, family: str, vocab: Mapping[str, int] | None = None) -> Any:
    """Read a sentencepiece model, with the ids of `vocab` if given."""
    names = settings.names(sentencepiece_files.names_of(family, path.name))
    flags = {name: settings.flag(name, default) for name, default in sentencepiece_files.FLAGS.items()}
    extra = settings.config.get("extra_ids", 100)
    engine = sentencepiece_files.engine_of(read_bytes(path), str(path), family, names, flags, extra, vocab)
    return with_added_tokens(engine, present(engine, settings.added(names)), str(path))


def read_marian(folder: Path, settings: Settings) -> Any:
    """Read a Marian: the source is split by its sentencepiece model, and vocab.json has the ids of both languages."""
    if (folder / TARGET_VOCAB).exists():
        raise FirthError(
            "invalid_tokenizer",
            "{folder} has separate vocabularies ({file}); Firth reads Marian models with a shared one.",
            folder=folder,
            file=TARGET_VOCAB,
        )
    vocab = read_vocab_json(folder / VOCAB_JSON)
    missing = min({*range(len(vocab))} - {*vocab.values()}, default=None) if "<unk>" in vocab else "<unk>"
    if missing is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path} must have <unk> and ids from 0 without gaps; {missing} is missing.",
            path=folder / VOCAB_JSON,
            missing=missing,
        )
    return read_sentencepiece(folder / SOURCE_MODEL, settings, "marian", vocab)


def present(engine: Any, added: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the added tokens that the vocabulary has or whose id a file declares."""
    return {token: entry for token, entry in added.items() if "id" in entry or engine.token_to_id(token) is not None}


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


def read_wordpiece(path: Path, settings: Settings, lowercase: bool) -> Any:
    """Read a vocab.txt with one token per line, as BERT and MPNet use it; the id is the line number, from 0."""
    lines = read_lines(path)
    vocab = {token: id for id, token in enumerate(lines)}
    if len(vocab) < len(lines) or "" in vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path}: each line must have a different token; {repeated} lines are empty or repeated.",
            path=path,
            repeated=len(lines) - len(vocab) + ("" in vocab),
        )
    mpnet = settings.family == "mpnet"
    names = settings.names({**FAIRSEQ_NAMES, "unk": "[UNK]"} if mpnet else BERT_NAMES)
    if names["unk"] not in vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path} has no {missing} token, which WordPiece needs for words it cannot encode.",
            path=path,
            missing=names["unk"],
        )
    text = WordPieceText(
        settings.flag("do_lower_case", lowercase),
        settings.flag("strip_accents", None),
        settings.flag("tokenize_chinese_chars", True),
    )
    with translating_errors(f"{path} is not a tokenizer"):
        engine = wordpiece_engine(vocab, text, (), names, bert_pairs=not mpnet)
    return with_added_tokens(engine, present(engine, settings.added(names)), str(path))


def read_byte_pairs(folder: Path, settings: Settings) -> Any:
    """Read vocab.json and merges.txt, as GPT-2, RoBERTa and the first GPT use them."""
    family = settings.family
    if family not in (*BYTE_FAMILIES, *ANY_FAMILY):
        raise FirthError(
            "invalid_tokenizer",
            "{folder}: {files} of the family {family!r} need {tokenizer}; without it, Firth knows the families "
            "{choices}.",
            folder=folder,
            files=f"{VOCAB_JSON} and {MERGES}",
            family=family,
            tokenizer=TOKENIZER,
            choices=", ".join(BYTE_FAMILIES),
        )
    vocab = read_vocab_json(folder / VOCAB_JSON)
    merges = read_merges(folder / MERGES, vocab)
    merged = {part for left, right in merges for part in (left, right, left + right)}
    bracketed = (token for token in vocab if len(token) > 2 and token[0] + token[-1] in ("<>", "[]"))
    special = [token for token in bracketed if token not in merged]
    with translating_errors(f"{folder} is not a tokenizer"):
        if any(token.endswith(END_OF_WORD) for token in vocab):
            return characters_engine(vocab, merges, special, settings.flag("do_lower_case", False))
        bert_like = family == "deberta"
        usual = {"<s>", "</s>", "<pad>", "<unk>", "<mask>"} <= vocab.keys() and family in ANY_FAMILY
        roberta = family in ("roberta", "bart", "longformer", "led") or usual
        names = settings.names(BERT_NAMES if bert_like else FAIRSEQ_NAMES if roberta else {})
        prefix_space, trim = settings.flag("add_prefix_space", False), settings.flag("trim_offsets", roberta)
        engine = bytes_engine(vocab, merges, (), prefix_space, trim)
        cls, sep = names.get("cls", ""), names.get("sep", "")
        if bert_like and cls in vocab and sep in vocab:
            with_template(engine, vocab, cls, sep, bert_pairs=True)
        elif roberta and cls in vocab and sep in vocab:
            engine.post_processor = roberta_processor(vocab, cls, sep, trim, prefix_space)
    added = {token: {"special": True} for token in special} | settings.added(names)
    return with_added_tokens(engine, present(engine, added), str(folder))


def read_vocab_json(path: Path) -> dict[str, int]:
    """Read a vocab.json, which maps each token to its id."""
    vocab = read_json(path)
    is_valid = isinstance(vocab, dict) and all(type(id) is int and 0 <= id < MOST_TOKENS for id in vocab.values())
    if not is_valid or not vocab:
        raise FirthError(
            "invalid_tokenizer",
            "{path} must be a JSON object that maps each token to an id below {maximum:,}.",
            path=path,
            maximum=MOST_TOKENS,
        )
    if len(set(vocab.values())) < len(vocab):
        raise FirthError(
            "invalid_tokenizer",
            "{path} has {tokens:,} tokens but only {ids:,} different ids.",
            path=path,
            tokens=len(vocab),
            ids=len(set(vocab.values())),
        )
    return dict(vocab)


def read_merges(path: Path, vocab: Mapping[str, int]) -> list[tuple[str, str]]:
    """Read the merges of BPE, one pair of tokens per line, whose parts and results must be in the vocabulary."""
    lines = [line for line in read_lines(path) if line]
    lines = lines[1:] if lines and lines[0].startswith("#version") else lines
    merges = list[tuple[str, str]]()
    for line in lines:
        pair = line.split(" ")
        if len(pair) != 2:
            raise FirthError(
                "invalid_tokenizer",
                "{path}: each line must have two tokens separated by a space; got {got!r:.60}.",
                path=path,
                got=line,
            )
        merges.append((pair[0], pair[1]))
    parts = {part for left, right in merges for part in (left, right, left + right)}
    missing = min(parts - vocab.keys(), default=None)
    if missing is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{path} uses the token {missing!r:.60}, which is not in {vocabulary}.",
            path=path,
            missing=missing,
            vocabulary=VOCAB_JSON,
        )
    return merges
