"""Engines of the package `tokenizers`: byte-level and character-level BPE, WordPiece, and their special tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.data.special_tokens import BERT_NAMES

END_OF_WORD = "</w>"


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


def bytes_engine(
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    special: Collection[str] = (),
    prefix_space: bool = False,
    trim_offsets: bool = False,
) -> Any:
    """Return a byte-level BPE tokenizer, as in GPT-2, which can encode any text without loss."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=list(merges)))
    engine.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    engine.decoder = tk.decoders.ByteLevel()
    engine.post_processor = tk.processors.ByteLevel(trim_offsets=trim_offsets)
    return with_special(engine, special)


def characters_engine(
    vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Collection[str], lowercase: bool
) -> Any:
    """Return a character-level BPE tokenizer with an end-of-word suffix, as in the first GPT."""
    tk = load_engine()
    model = tk.models.BPE(vocab=dict(vocab), merges=list(merges), unk_token="<unk>", end_of_word_suffix=END_OF_WORD)
    engine = tk.Tokenizer(model)
    engine.normalizer = tk.normalizers.BertNormalizer(lowercase=lowercase)
    engine.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tk.decoders.BPEDecoder(suffix=END_OF_WORD)
    return with_special(engine, special)


class WordPieceText(NamedTuple):
    """How text is prepared for WordPiece; by default, accents are removed together with capitals."""

    lowercase: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True


def wordpiece_engine(
    vocab: Mapping[str, int],
    text: WordPieceText,
    special: Collection[str],
    names: Mapping[str, str] = BERT_NAMES,
    bert_pairs: bool = True,
) -> Any:
    """Return a WordPiece tokenizer, as in BERT: greedy longest match, between special tokens.

    `names` are the special tokens by role. Pairs are encoded as in BERT or as in RoBERTa.
    """
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.WordPiece(vocab=dict(vocab), unk_token=names["unk"]))
    engine.normalizer = tk.normalizers.BertNormalizer(
        lowercase=text.lowercase, strip_accents=text.strip_accents, handle_chinese_chars=text.split_chinese
    )
    engine.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tk.decoders.WordPiece(prefix="##")
    cls, sep = names.get("cls", ""), names.get("sep", "")
    if cls in vocab and sep in vocab and bert_pairs:
        with_template(engine, vocab, cls, sep, bert_pairs)
    elif cls in vocab and sep in vocab:
        engine.post_processor = roberta_processor(vocab, cls, sep, trim_offsets=True, prefix_space=False)
    return with_special(engine, [token for token in special if token in vocab])


def single_characters_engine(vocab: Mapping[str, int], special: Collection[str]) -> Any:
    """Return a tokenizer with one token per character: BPE without merges."""
    tk = load_engine()
    engine = tk.Tokenizer(tk.models.BPE(vocab=dict(vocab), merges=[], unk_token="<unk>"))
    engine.decoder = tk.decoders.Fuse()
    return with_special(engine, special)


def with_special(engine: Any, special: Collection[str]) -> Any:
    """Mark special tokens, which are recognized in texts and omitted when decoding."""
    if special:  # they already have ids
        engine.add_special_tokens(list(special))
    return engine


def with_template(engine: Any, vocab: Mapping[str, int], cls: str, sep: str, bert_pairs: bool) -> None:
    """Set the template of an encoder: [CLS] A [SEP] B [SEP] with two segments (`bert_pairs`), or <s> A </s> </s> B </s>
    as in RoBERTa. An empty `cls` is left out, and `sep` is then not repeated, as in T5."""
    first = [cls] if cls else []
    between = [sep, sep] if cls and not bert_pairs else [sep]
    second = [f"$B:{int(bert_pairs)}", f"{sep}:{int(bert_pairs)}"]
    engine.post_processor = load_engine().processors.TemplateProcessing(
        single=[*first, "$A", sep],
        pair=[*first, "$A", *between, *second],
        special_tokens=[(token, vocab[token]) for token in dict.fromkeys([*first, sep])],
    )


def roberta_processor(vocab: Mapping[str, int], cls: str, sep: str, trim_offsets: bool, prefix_space: bool) -> Any:
    """Return the template <s> A </s> </s> B </s> that can also remove spaces from the offsets of tokens."""
    return load_engine().processors.RobertaProcessing(
        (sep, vocab[sep]), (cls, vocab[cls]), trim_offsets=trim_offsets, add_prefix_space=prefix_space
    )


def with_added_tokens(engine: Any, added: Mapping[str, Mapping[str, Any]], where: str) -> Any:
    """Add tokens to an engine: `added` maps each token to its flags and, if declared, its `id`, which must be free."""
    tk, flags = load_engine(), ("lstrip", "rstrip", "single_word", "normalized", "special")
    order = sorted(added, key=lambda token: added[token].get("id", -1))
    with translating_errors(f"{where} is not a tokenizer"):
        engine.add_tokens(
            [tk.AddedToken(token, **{flag: bool(added[token].get(flag)) for flag in flags}) for token in order]
        )
    for token in order:
        declared, id = added[token].get("id"), engine.token_to_id(token)
        if declared is not None and declared != id:
            raise FirthError(
                "invalid_tokenizer",
                "{where}: the added token {token!r:.60} must have the id {id}, the next free one; got {got}.",
                where=where,
                token=token,
                got=declared,
                id=id,
            )
    return engine
