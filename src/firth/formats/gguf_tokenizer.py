"""The tokenizer in the metadata of a GGUF file, as a document for tokenizer.json.

GGUF has two kinds for decoders. "gpt2" is byte-level BPE with a list of merges; how a text is split into words first is
given by a name (tokenizer.ggml.pre), which stands for a pattern in llama.cpp's source. "llama" is the BPE of
sentencepiece: pieces with scores, of which the pair that forms the piece with the highest score is merged first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.formats.gguf import GGUFFile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # types of tokens
LONGEST_PIECE = 256  # characters of a piece with merges: all its splits are tried
SPACE = "\u2581"  # stands for a space in sentencepiece

WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def by_pattern(digits: str) -> list[dict[str, Any]]:
    """The steps that split by the pattern of Llama 3 and Qwen 2, which differ in how many digits make a word."""
    first, rest = WORDS.split("|", 1)
    pattern = {"Regex": f"{ENDINGS}|{first}|{digits}|{rest}"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    return [split, {**BYTES, "use_regex": False}]


GPT2 = [BYTES]
SINGLE_DIGITS = [{"type": "Digits", "individual_digits": True}, BYTES]
LLAMA3, QWEN2 = by_pattern(r"\p{N}{1,3}"), by_pattern(r"\p{N}")
#: How texts are split, by tokenizer.ggml.pre.
SPLITS = {
    "gpt-2": GPT2,
    "phi-2": GPT2,
    "olmo": GPT2,
    "smollm": SINGLE_DIGITS,
    "starcoder": SINGLE_DIGITS,
    "refact": SINGLE_DIGITS,
    "llama-bpe": LLAMA3,
    "llama3": LLAMA3,
    "llama-v3": LLAMA3,
    "qwen2": QWEN2,
    "deepseek-r1-qwen": QWEN2,
}
KINDS = ("gpt2", "llama")


def tokenizer_document(file: GGUFFile) -> dict[str, Any]:
    """Return the content of tokenizer.json for the tokenizer of a GGUF file."""
    kind = file.value("tokenizer.ggml.model", str)
    if kind not in KINDS:
        raise unsupported(file, "tokenizer.ggml.model", kind, KINDS)
    tokens = token_list(file)
    types = numbers(file, "tokenizer.ggml.token_type", len(tokens))
    model, steps = (byte_level if kind == "gpt2" else sentencepiece)(file, tokens, types)
    ids = {token: id for id, token in enumerate(tokens)}
    added = [
        {"id": id, "content": tokens[id], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": bool(types[id] != USER_DEFINED)}
        for id in np.flatnonzero(np.isin(types, (UNKNOWN, CONTROL, USER_DEFINED))).tolist()
        if tokens[id]
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        **steps,
        "post_processor": template(file, tokens, kind),
        "model": {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
        | model
        | {"vocab": ids},
    }


def unsupported(file: GGUFFile, name: str, got: str, available: Sequence[str]) -> FirthError:
    """Return the error for a tokenizer that Firth does not have."""
    return FirthError(
        "unsupported_format",
        "{path}: {name} is {got!r}; Firth opens {available}.",
        path=file.path,
        name=name,
        got=got,
        available=", ".join(available),
    )


def invalid(file: GGUFFile, rule: str, got: Any) -> FirthError:
    """Return the error for a damaged tokenizer."""
    return FirthError("invalid_tokenizer", "{path}: {rule}; got {got}.", path=file.path, rule=rule, got=got)


def token_list(file: GGUFFile) -> list[str]:
    """Return the tokens by id."""
    tokens: list[str] = file.value("tokenizer.ggml.tokens", list)
    if len(set(tokens)) < len(tokens):
        rule = "tokenizer.ggml.tokens must not repeat a token"
        raise invalid(file, rule, f"{len(tokens):,} tokens, {len(set(tokens)):,} of them different")
    return tokens


def numbers(file: GGUFFile, key: str, count: int) -> np.ndarray[Any, Any]:
    """Return one number per token; all are 1 if the file has none."""
    values: np.ndarray[Any, Any] = file.value(key, np.ndarray, np.ones(count, np.int32))
    if len(values) != count:
        raise invalid(file, f"{key} must have {count:,} numbers, one per token", f"{len(values):,}")
    return values


def byte_level(
    file: GGUFFile, tokens: Sequence[str], types: np.ndarray[Any, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model and the other steps of byte-level BPE."""
    name = file.value("tokenizer.ggml.pre", str)
    if name not in SPLITS:
        raise unsupported(file, "tokenizer.ggml.pre", name, list(SPLITS))
    merges = [merge.partition(" ")[::2] for merge in file.value("tokenizer.ggml.merges", list)]
    split = SPLITS[name]
    return (
        {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": split is LLAMA3}
        | {"merges": [list(pair) for pair in merges]},
        {
            "normalizer": {"type": "NFC"} if split is QWEN2 else None,
            "pre_tokenizer": split[0] if len(split) == 1 else {"type": "Sequence", "pretokenizers": split},
            "decoder": BYTES,
        },
    )


def sentencepiece(
    file: GGUFFile, tokens: Sequence[str], types: np.ndarray[Any, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model and the other steps of sentencepiece's BPE, which falls back to bytes."""
    scores = numbers(file, "tokenizer.ggml.scores", len(tokens))
    prefixed = file.value("tokenizer.ggml.add_space_prefix", bool, True)
    unknown = np.flatnonzero(types == UNKNOWN).tolist()
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    steps = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}]
    steps += [{"type": "Fuse"}, *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else [])]
    return (
        {"unk_token": tokens[unknown[0]] if unknown else None, "fuse_unk": True, "byte_fallback": True}
        | {"ignore_merges": False, "merges": merges_of(file, tokens, types, scores)},
        {
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, spaces]}
            if prefixed
            else spaces,
            "pre_tokenizer": None,
            "decoder": {"type": "Sequence", "decoders": steps},
        },
    )


def merges_of(
    file: GGUFFile, tokens: Sequence[str], types: np.ndarray[Any, Any], scores: np.ndarray[Any, Any]
) -> list[list[str]]:
    """Return every pair of pieces that forms a piece, those with the highest score of the result first."""
    ids = np.flatnonzero(np.isin(types, (NORMAL, USER_DEFINED)))
    pieces = {tokens[id] for id in ids.tolist()}
    longest = max(map(len, pieces), default=0)
    if longest > LONGEST_PIECE:
        raise invalid(file, f"a piece must have at most {LONGEST_PIECE} characters", f"{longest:,}")
    merges = []
    for id in ids[np.argsort(-scores[ids], kind="stable")].tolist():
        piece = tokens[id]
        splits = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        merges += [[left, right] for left, right in splits if left in pieces and right in pieces]
    return merges


def template(file: GGUFFile, tokens: Sequence[str], kind: str) -> dict[str, Any] | None:
    """Return the step that adds the first and last token, as far as the file asks for them."""
    default = kind == "llama" or SPLITS.get(str(file.metadata.get("tokenizer.ggml.pre"))) is LLAMA3
    around = {"bos": default, "eos": False}
    ids = {
        name: file.value(f"tokenizer.ggml.{name}_token_id", int)
        for name, wanted in around.items()
        if file.value(f"tokenizer.ggml.add_{name}_token", bool, wanted)
    }
    outside = [id for id in ids.values() if not 0 <= id < len(tokens)]
    if outside:
        raise invalid(file, f"special tokens must have ids below {len(tokens):,}", outside[0])
    if not ids:
        return None if kind == "llama" else {**BYTES, "trim_offsets": False}

    def sequence(text: str, segment: int) -> list[dict[str, Any]]:
        parts = {name: [{"SpecialToken": {"id": tokens[id], "type_id": segment}}] for name, id in ids.items()}
        return [*parts.get("bos", []), {"Sequence": {"id": text, "type_id": segment}}, *parts.get("eos", [])]

    return {
        "type": "TemplateProcessing",
        "single": sequence("A", 0),
        "pair": [*sequence("A", 0), *sequence("B", 1)],
        "special_tokens": {tokens[id]: {"id": tokens[id], "ids": [id], "tokens": [tokens[id]]} for id in ids.values()},
    }
