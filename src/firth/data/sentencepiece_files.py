"""Sentencepiece models (Kudo and Richardson 2018) as engines of the package `tokenizers`.

The file is a protocol buffer (sentencepiece_model.proto). Firth reads the few fields it needs itself: a parser of the
wire format is a page, and the package `protobuf` would be a dependency with its own version conflicts. Lengths are
checked before anything is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.data.special_tokens import BERT_NAMES, FAIRSEQ_NAMES
from firth.data.tokenizer_engines import load_engine, translating_errors, with_template

SPACE = "▁"
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # SentencePiece.Type
MOST_EXTRA_IDS = 10_000
#: Settings of tokenizer_config.json that matter here, with their defaults; None: as the family or the model says.
FLAGS = {
    "do_lower_case": None, "keep_accents": False, "legacy": False, "add_prefix_space": None, "add_bos_token": None,
    "add_eos_token": None,
}  # fmt: skip


class Piece(NamedTuple):
    """An entry of the vocabulary."""

    text: str
    score: float = 0.0
    type: int = 1


@dataclass
class SentencePieceModel:
    """The fields of a sentencepiece model that matter for encoding, with the defaults of sentencepiece_model.proto."""

    pieces: list[Piece] = field(default_factory=list)
    model_type: int = UNIGRAM
    byte_fallback: bool = False
    split_by_whitespace: bool = True
    unk_id: int = 0
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True


# ---- protocol buffers ----

Value = int | bytes | memoryview


def fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field of a message: an integer, or bytes (also those of a float)."""
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            length, at = varint(data, at)
        elif wire_type in (1, 5):
            length = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type} at byte {at}")
        if length > end - at:
            raise ValueError(f"a field of {length:,} bytes at byte {at:,}, where {end - at:,} are left")
        yield number, data[at : at + length]
        at += length


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an integer of 7 bits per byte, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"an incomplete integer at byte {at:,}")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def text_of(value: Value) -> str:
    """Return the value of a text field."""
    if isinstance(value, int):
        raise ValueError("a number where a text is expected")
    return bytes(value).decode("utf-8")


def message_of(value: Value) -> memoryview:
    """Return the bytes of a nested message."""
    if isinstance(value, int):
        raise ValueError("a number where a message is expected")
    return memoryview(value)


def number_of(value: Value) -> int:
    """Return the value of an integer field, which may be negative."""
    if not isinstance(value, int):
        raise ValueError("bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value  # negative numbers are stored in 64 bits


def float_of(value: Value) -> float:
    """Return the value of a 32-bit float field, which must be finite."""
    if isinstance(value, int) or len(value) != 4:
        raise ValueError("no number of 32 bits where a score is expected")
    score: float = struct.unpack("<f", value)[0]
    if score != score or abs(score) == float("inf"):
        raise ValueError("a score that is not finite")
    return score


def boolean_of(value: Value) -> bool:
    """Return the value of a boolean field."""
    return bool(number_of(value))


PIECE_FIELDS: dict[int, tuple[str, Callable[[Value], Any]]] = {
    1: ("text", text_of), 2: ("score", float_of), 3: ("type", number_of),
}  # fmt: skip
TRAINER_FIELDS: dict[int, tuple[str, Callable[[Value], Any]]] = {
    3: ("model_type", number_of), 22: ("split_by_whitespace", boolean_of), 35: ("byte_fallback", boolean_of),
    40: ("unk_id", number_of),
}  # fmt: skip
NORMALIZER_FIELDS: dict[int, tuple[str, Callable[[Value], Any]]] = {
    2: ("charsmap", lambda value: bytes(message_of(value))), 3: ("add_dummy_prefix", boolean_of),
    4: ("remove_extra_whitespaces", boolean_of),
}  # fmt: skip


def known_fields(data: memoryview, known: Mapping[int, tuple[str, Callable[[Value], Any]]]) -> dict[str, Any]:
    """Return the values of the known fields of a message by name."""
    return {known[number][0]: known[number][1](value) for number, value in fields(data) if number in known}


def parse(data: bytes) -> SentencePieceModel:
    """Parse a model; raise ValueError if it is not one."""
    model = SentencePieceModel()
    for number, value in fields(memoryview(data)):
        if number == 1:
            model.pieces.append(Piece(**{"text": "", **known_fields(message_of(value), PIECE_FIELDS)}))
        elif number in (2, 3):
            known = known_fields(message_of(value), TRAINER_FIELDS if number == 2 else NORMALIZER_FIELDS)
            model = replace(model, **known)
    texts = {piece.text for piece in model.pieces}
    if not texts or len(texts) < len(model.pieces) or "" in texts:
        raise ValueError(f"{len(model.pieces):,} pieces with {len(texts - {''}):,} different texts")
    if not 0 <= model.unk_id < len(model.pieces):
        raise ValueError(f"unk_id {model.unk_id} of {len(model.pieces):,} pieces")
    return model


# ---- families ----


class Family(NamedTuple):
    """How a family of models uses a sentencepiece model: its first ids, added pieces, special tokens and template."""

    names: Mapping[str, str]
    first: tuple[Piece, ...] = ()  # replace the first `skipped` pieces
    skipped: int = 0
    added: tuple[str, ...] = ()  # after the pieces
    words: bool = True  # split at whitespace, each word with a space before it
    template: str = "roberta"  # roberta, bert, end, or decoder


def first_pieces(*texts: str) -> tuple[Piece, ...]:
    """Return the pieces that a family puts before those of the model."""
    return tuple(Piece(text, -100.0 if text == "<unk>NOTUSED" else 0.0) for text in texts)


END_NAMES = {role: FAIRSEQ_NAMES[role] for role in ("pad", "unk", "eos")}
DECODER_NAMES = {role: FAIRSEQ_NAMES[role] for role in ("unk", "bos", "eos")}
ALBERT_NAMES = {**BERT_NAMES, "pad": "<pad>", "unk": "<unk>"}
GEMMA_NAMES = {"pad": "<pad>", "unk": "<unk>", "bos": "<bos>", "eos": "<eos>"}
FAMILIES = {
    "xlmroberta": Family(FAIRSEQ_NAMES, first_pieces("<s>", "<pad>", "</s>", "<unk>"), 3, ("<mask>",)),
    "camembert": Family(
        FAIRSEQ_NAMES,
        first_pieces("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"),
        1,
        ("<mask>",),
    ),
    "t5": Family(END_NAMES, template="end"),
    "marian": Family(END_NAMES, template="end"),
    "albert": Family(ALBERT_NAMES, template="bert"),
    "debertav2": Family(BERT_NAMES, added=("[MASK]",), template="bert"),
    "llama": Family(DECODER_NAMES, words=False, template="decoder"),
    "gemma": Family(GEMMA_NAMES, words=False, template="decoder"),
}
FAMILIES |= {"mt5": FAMILIES["t5"], "umt5": FAMILIES["t5"], "codellama": FAMILIES["llama"]}
FAMILIES |= dict.fromkeys(("mistral", "mixtral"), FAMILIES["llama"])
FAMILIES |= dict.fromkeys(("gemma2", "gemma3", "gemma3text"), FAMILIES["gemma"])
FILES = {"sentencepiece.bpe.model": "xlmroberta", "spm.model": "debertav2"}  # families by file name
ANY = Family(DECODER_NAMES, words=False, template="decoder")  # ids as in the file


def family_of(name: str, file: str) -> Family:
    """Return a family by name, or by file name if it is unknown."""
    return FAMILIES.get(name) or FAMILIES.get(FILES.get(file, "")) or ANY


def names_of(name: str, file: str) -> Mapping[str, str]:
    """Return the special tokens of a family by role."""
    return family_of(name, file).names


def engine_of(
    data: bytes,
    path: str,
    family_name: str,
    names: Mapping[str, str],
    flags: Mapping[str, Any],
    extra_ids: Any,
    vocab: Mapping[str, int] | None = None,
) -> Any:
    """Return the engine of a sentencepiece model.

    `names` are the special tokens by role, `flags` the values of `FLAGS`; T5 has `extra_ids` tokens after the pieces.
    Marian's ids are those of `vocab`.
    """
    try:
        model = parse(data)
    except (ValueError, OverflowError, struct.error) as error:
        raise FirthError(
            "invalid_tokenizer", "{path} is not a sentencepiece model: {reason}.", path=path, reason=str(error)
        ) from None
    if model.model_type not in (UNIGRAM, BPE):
        raise FirthError(
            "invalid_tokenizer",
            "{path}: Firth reads sentencepiece models of the types unigram (1) and BPE (2); this one has type {got}.",
            path=path,
            got=model.model_type,
        )
    family = family_of(family_name, path.rsplit("/", 1)[-1])
    added = family.added
    if family is FAMILIES["t5"]:
        if type(extra_ids) is not int or not 0 <= extra_ids <= MOST_EXTRA_IDS:
            raise FirthError(
                "invalid_tokenizer",
                "{path}: extra_ids must be from 0 to {maximum:,}; got {got!r:.60}.",
                path=path,
                maximum=MOST_EXTRA_IDS,
                got=extra_ids,
            )
        added = tuple(f"<extra_id_{number}>" for number in reversed(range(extra_ids)))
    pieces = [*family.first, *model.pieces[family.skipped :]] if vocab is None else with_ids(model, vocab)
    texts = {piece.text for piece in pieces}
    pieces += [Piece(text, type=CONTROL) for text in added if text not in texts]
    if len({piece.text for piece in pieces}) < len(pieces):
        raise FirthError(
            "invalid_tokenizer",
            "{path} repeats a special token of the family {family}: {token!r:.60}.",
            path=path,
            family=family_name,
            token=next(piece.text for piece in family.first if piece.text in {p.text for p in model.pieces}),
        )
    unknown = "<unk>" if family.first or vocab is not None else pieces[model.unk_id].text
    with translating_errors(f"{path} is not a sentencepiece model"):
        engine = model_engine(model, pieces, unknown)
        set_text_steps(engine, model, family, family_name, flags)
        special = [piece for piece in pieces if piece.type in (CONTROL, USER_DEFINED)]
        tk = load_engine()
        engine.add_tokens(
            [tk.AddedToken(piece.text, normalized=False, special=piece.type == CONTROL) for piece in special]
        )
        set_template(engine, family, names, flags)
    return engine


def with_ids(model: SentencePieceModel, vocab: Mapping[str, int]) -> list[Piece]:
    """Return the pieces of a vocabulary that two models share, in the order of their ids, with the scores of one.

    Those of the other model are so unlikely that they are only used for characters that this one does not know.
    Language codes such as >>fra<< are special tokens.
    """
    known, other = {piece.text: piece for piece in model.pieces}, min(piece.score for piece in model.pieces) - 1e6
    pieces = list[Piece]()
    for text in sorted(vocab, key=vocab.__getitem__):
        code = text.startswith(">>") and text.endswith("<<")
        pieces.append(Piece(text, 0.0, CONTROL) if code else known.get(text, Piece(text, other)))
    return pieces


def model_engine(model: SentencePieceModel, pieces: list[Piece], unknown: str) -> Any:
    """Return an engine with the vocabulary of a model: Unigram with its scores, or BPE with merges in their order."""
    tk, ids = load_engine(), {piece.text: id for id, piece in enumerate(pieces)}
    if model.model_type == UNIGRAM:
        scores = [(piece.text, piece.score) for piece in pieces]
        return tk.Tokenizer(tk.models.Unigram(scores, unk_id=ids[unknown], byte_fallback=model.byte_fallback))
    merges = []
    for piece in sorted(pieces, key=lambda piece: -piece.score):  # sorted is stable: equal scores by id
        if piece.type in (UNKNOWN, CONTROL):
            continue
        halves = ((piece.text[:at], piece.text[at:]) for at in range(1, len(piece.text)))
        merges += [(left, right) for left, right in halves if left in ids and right in ids]
    return tk.Tokenizer(tk.models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=model.byte_fallback))


def set_text_steps(
    engine: Any, model: SentencePieceModel, family: Family, family_name: str, flags: Mapping[str, Any]
) -> None:
    """Set normalizer, pre-tokenizer and decoder."""
    tk = load_engine()
    steps = list[Any]()
    if family_name == "albert":
        steps += [tk.normalizers.Replace("``", '"'), tk.normalizers.Replace("''", '"')]
        steps += [] if flags["keep_accents"] else [tk.normalizers.NFKD(), tk.normalizers.StripAccents()]
    if flags["do_lower_case"] or (flags["do_lower_case"] is None and family_name == "albert"):
        steps.append(tk.normalizers.Lowercase())
    if model.charsmap:
        steps.append(tk.normalizers.Precompiled(model.charsmap))
    if not family.words and model.remove_extra_whitespaces:
        steps += [
            tk.normalizers.Replace(tk.Regex("^ +| +$"), ""),
            tk.normalizers.Replace(tk.Regex(" {2,}"), " "),
        ]
    if steps:
        engine.normalizer = tk.normalizers.Sequence(steps)
    prefix = model.add_dummy_prefix if flags["add_prefix_space"] is None else flags["add_prefix_space"]
    always = "first" if family.template == "decoder" and family is not ANY and not flags["legacy"] else "always"
    scheme, split = (
        always if prefix else "never",
        family.words or (model.model_type == UNIGRAM and model.split_by_whitespace),
    )
    spaces = tk.pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=split)
    engine.pre_tokenizer = (
        tk.pre_tokenizers.Sequence([tk.pre_tokenizers.WhitespaceSplit(), spaces]) if family.words else spaces
    )
    if model.byte_fallback:
        parts = [tk.decoders.Replace(SPACE, " "), tk.decoders.ByteFallback(), tk.decoders.Fuse()]
        parts += [tk.decoders.Strip(content=" ", left=1)] if prefix else []
        engine.decoder = tk.decoders.Sequence(parts)
    else:
        engine.decoder = tk.decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=split)


def set_template(engine: Any, family: Family, names: Mapping[str, str], flags: Mapping[str, Any]) -> None:
    """Set the template of the family; a decoder has bos and eos as tokenizer_config.json says, by default bos only."""
    ids = {token: id for token in names.values() if (id := engine.token_to_id(token)) is not None}
    begin, end = (names.get(first) or names.get(other, "") for first, other in (("cls", "bos"), ("sep", "eos")))
    if family.template != "decoder":
        begin = "" if family.template == "end" else begin
        if end in ids and (not begin or begin in ids):
            with_template(engine, ids, begin, end, family.template == "bert")
        return
    default = family is not ANY
    use_bos = default if flags["add_bos_token"] is None else flags["add_bos_token"]
    first = [begin] if begin in ids and use_bos else []
    last = [end] if end in ids and flags["add_eos_token"] else []
    if first or last:
        second = [f"{token}:1" for token in (*first, "$B", *last)]
        engine.post_processor = load_engine().processors.TemplateProcessing(
            single=[*first, "$A", *last],
            pair=[*first, "$A", *last, *second],
            special_tokens=[(token, ids[token]) for token in (*first, *last)],
        )
