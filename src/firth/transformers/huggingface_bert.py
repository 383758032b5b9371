"""Conversion between Firth's and Hugging Face's weight names and config of BERT."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError, FirthWarning
from firth.nets.bert import Bert
from firth.nets.transformer import Size
from firth.transformers.huggingface_gpt2 import listed

#: Names within a block: Firth's, Hugging Face's.
BLOCK = (
    ("attention.output", "attention.output.dense"),
    ("attention_norm", "attention.output.LayerNorm"),
    ("feed.wide", "intermediate.dense"),
    ("feed.back", "output.dense"),
    ("feed_norm", "output.LayerNorm"),
)
ATTENTION = ("query", "key", "value")  # three matrices there, stacked here
ENDS = (".weight", ".bias")
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}
SAME_ACTIVATIONS = {"gelu_python": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh"}
OLD_NAMES = {"gamma": "weight", "beta": "bias"}  # of layer norms, in files converted from TensorFlow
WORDS, SEGMENTS = "embeddings.word_embeddings.weight", "embeddings.token_type_embeddings.weight"
BIAS, DECODER, DECODER_BIAS = (f"cls.predictions.{name}" for name in ("bias", "decoder.weight", "decoder.bias"))
IGNORED = ("embeddings.position_ids", "embeddings.token_type_ids", DECODER, DECODER_BIAS)  # buffers and duplicates
HEADS = ("pooler", "masked", "next_sentence")
OURS = ("embeddings.", "encoder.", "pooler.", "cls.")  # prefixes that Firth reads; others are other heads
MOST = {"num_hidden_layers": 1000, "hidden_size": 65536, "num_attention_heads": 1024}  # limits of the options
MOST_ROWS = 1 << 31


def names(layers: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield Firth's name of each array, and the Hugging Face arrays that it stacks."""
    yield "input.tokens.weight", ("embeddings.word_embeddings.weight",)
    yield "input.positions.weight", ("embeddings.position_embeddings.weight",)
    yield "input.segments.weight", ("embeddings.token_type_embeddings.weight",)
    for end in ENDS:
        yield f"input.norm{end}", (f"embeddings.LayerNorm{end}",)
        yield f"pooler{end}", (f"pooler.dense{end}",)
        yield f"masked.dense{end}", (f"cls.predictions.transform.dense{end}",)
        yield f"masked.norm{end}", (f"cls.predictions.transform.LayerNorm{end}",)
        yield f"next_sentence{end}", (f"cls.seq_relationship{end}",)
        for layer in range(layers):
            block, theirs = f"stack.blocks.{layer}", f"encoder.layer.{layer}"
            yield (
                f"{block}.attention.query_key_value{end}",
                tuple(f"{theirs}.attention.self.{part}{end}" for part in ATTENTION),
            )
            for ours, name in BLOCK:
                yield f"{block}.{ours}{end}", (f"{theirs}.{name}{end}",)
    yield "masked.bias", ("cls.predictions.bias",)


def to_bert(net: Bert) -> dict[str, NDArray[Any]]:
    """Return the weights by Hugging Face's names; without pre-training heads, by those of BertModel."""
    state, arrays = net.state_dict(), dict[str, NDArray[Any]]()
    prefix = "bert." if net.masked is not None or net.next_sentence is not None else ""
    for ours, theirs in names(net.size.layers):
        if ours in state:
            parts = np.split(state[ours].detach().cpu().float().numpy(), len(theirs))
            named = (name if name.startswith("cls.") else prefix + name for name in theirs)
            arrays |= zip(named, parts, strict=True)
    return arrays


def from_bert(arrays: Mapping[str, NDArray[Any]], size: Size, known_heads: Collection[str] = ()) -> dict[str, Tensor]:
    """Return Firth's weights from Hugging Face's names, the inverse of `to_bert`.

    Heads may be missing; `known_heads` are arrays that the caller uses. Names and shapes are checked before arrays are
    converted. Other arrays are ignored with a warning.
    """
    known, others = by_name(arrays)
    left_out = sorted(others - set(known_heads))
    if left_out:
        warn(
            f"{listed(left_out, 'ignored')}: Firth reads the encoder and the pre-training heads only.",
            "weights_ignored",
        )
    drop_untied(known)
    expected = dict(names(size.layers))
    missing_parts = {ours: [name for name in theirs if name not in known] for ours, theirs in expected.items()}
    present = {head for head in HEADS if any(ours.startswith(head) and not missing_parts[ours] for ours in expected)}
    if "next_sentence" in present:
        present.add("pooler")  # which it needs
    absent = tuple(set(HEADS) - present)
    used = {ours: theirs for ours, theirs in expected.items() if not ours.startswith(absent)}
    missing = [name for ours in used for name in missing_parts[ours]]
    extra = sorted(known.keys() - {name for theirs in used.values() for name in theirs} - {*IGNORED, *known_heads})
    if missing or extra:
        problem = "; ".join(
            listed(names_found, what)
            for names_found, what in ((missing, "missing"), (extra, "unexpected"))
            if names_found
        )
        raise FirthError(
            "damaged_model",
            "These are not the weights of a BERT with {layers} layers: {problem}.",
            layers=size.layers,
            problem=problem,
        )
    check_shapes(known, used, size)
    return {ours: joined(known, theirs) for ours, theirs in used.items()}


def by_name(arrays: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], set[str]]:
    """Return arrays by the names of BertModel, and the names of arrays of other heads."""
    known, others = dict[str, NDArray[Any]](), set[str]()
    for original, array in arrays.items():
        unwrapped = original.removeprefix("module.")  # from DataParallel
        name = unwrapped.removeprefix("bert.")
        if name == unwrapped and not name.startswith(OURS):
            others.add(original)
            continue
        stem, _, last = name.rpartition(".")
        if stem.endswith("LayerNorm"):
            name = f"{stem}.{OLD_NAMES.get(last, last)}"
        if name in known:
            raise FirthError(
                "damaged_model", "The file has two arrays for {name}; the second is {got}.", name=name, got=original
            )
        known[name] = array
    if DECODER_BIAS in known:  # equal to the bias if both exist; otherwise the one in use
        known[BIAS] = known[DECODER_BIAS]
    return known, others


def drop_untied(known: dict[str, NDArray[Any]]) -> None:
    """Drop a masked-token head with output vectors of its own; Firth's head uses the token embeddings."""
    if DECODER not in known or WORDS not in known or np.array_equal(known[DECODER], known[WORDS]):
        return
    for name in [name for name in known if name.startswith("cls.predictions.")]:
        del known[name]
    warn(
        f"{DECODER} differs from the token embeddings, which Firth's masked-token head uses, so this head was dropped.",
        "untied_head_dropped",
    )


def warn(text: str, code: str) -> None:
    """Issue a FirthWarning with a code."""
    warnings.warn(FirthWarning(text, code), stacklevel=2)


def check_shapes(known: Mapping[str, NDArray[Any]], used: Mapping[str, tuple[str, ...]], size: Size) -> None:
    """Raise damaged_model if shapes or dtypes do not fit config.json."""
    rows = [known[name].shape[0] if known[name].ndim else 0 for name in (WORDS, SEGMENTS)]
    with torch.device("meta"):  # shapes without allocation
        shapes = Bert(rows[0], size, segments=rows[1]).state_dict()
    wrong = []
    for ours, theirs in used.items():
        first, *rest = shapes[ours].shape
        shape = (first // len(theirs), *rest)
        for name in theirs:
            if known[name].shape != shape:
                wrong.append(f"{name} has shape {known[name].shape}, expected {shape}")
            elif known[name].dtype.kind != "f":
                wrong.append(f"{name} has dtype {known[name].dtype}, expected floating point")
    if wrong:
        raise FirthError(
            "damaged_model", "The weights do not fit config.json: {problem}.", problem="; ".join(wrong[:3])
        )


def joined(known: Mapping[str, NDArray[Any]], theirs: tuple[str, ...]) -> Tensor:
    """Return the stacked arrays as one float32 tensor."""
    tensor = torch.from_numpy(np.concatenate([known[name].astype(np.float32) for name in theirs]))
    if not bool(torch.isfinite(tensor).all()):
        raise FirthError(
            "damaged_model",
            "{array} contains NaN or infinity: the file is damaged, or training diverged.",
            array=theirs[0],
        )
    return tensor


def net_of(state: Mapping[str, Tensor], size: Size) -> Bert:
    """Return a network with these weights and the heads they have."""
    heads = {head: any(name.startswith(head) for name in state) for head in HEADS}
    vocabulary_size, segments = (len(state[f"input.{table}.weight"]) for table in ("tokens", "segments"))
    with torch.device("meta"):
        net = Bert(vocabulary_size, size, **heads, segments=segments)
    net.load_state_dict(state, assign=True)
    return net.eval()


def check_rows(net: Bert, config: Mapping[str, Any]) -> None:
    """Raise damaged_model if config.json declares other numbers of embedding rows."""
    for name, table in (("vocab_size", net.input.tokens), ("type_vocab_size", net.input.segments)):
        declared = config.get(name, table.num_embeddings)
        if declared != table.num_embeddings:
            raise FirthError(
                "damaged_model",
                "config.json has {name}={got!r}, but the weights have {rows:,} rows.",
                name=name,
                got=declared,
                rows=table.num_embeddings,
            )


def config_of(net: Bert) -> dict[str, Any]:
    """Return Hugging Face's config.json for a network."""
    size = net.size
    kinds = {
        (True, True): "BertForPreTraining",
        (True, False): "BertForMaskedLM",
        (False, True): "BertForNextSentencePrediction",
    }
    return {
        "model_type": "bert",
        "architectures": [kinds.get((net.masked is not None, net.next_sentence is not None), "BertModel")],
        "vocab_size": net.input.tokens.num_embeddings,
        "hidden_size": size.dim,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.feedforward_dim or 4 * size.dim,
        "hidden_act": ACTIVATIONS[size.activation],
        "hidden_dropout_prob": size.dropout,
        "attention_probs_dropout_prob": size.dropout,
        "max_position_embeddings": size.max_positions,
        "type_vocab_size": net.input.segments.num_embeddings,
        "layer_norm_eps": size.epsilon,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }


def size_of(config: Mapping[str, Any]) -> Size:
    """Return the network size from Hugging Face's config.json."""

    def number(name: str, default: int | None = None) -> int:
        value, limit = config.get(name, default), MOST.get(name, MOST_ROWS)
        if type(value) is not int or not 1 <= value <= limit:
            got = config.get(name)
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be an integer from 1 to {limit:,}; got {got!r}.",
                name=name,
                limit=limit,
                got=got,
            )
        return value

    def share(name: str, default: float) -> float:
        value = config.get(name, default)
        if type(value) not in (int, float) or not 0 <= value <= 0.95:  # excludes NaN
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be a number from 0 to 0.95; got {got!r}.",
                name=name,
                got=value,
            )
        return float(value)

    activation = config.get("hidden_act", "gelu")
    ours = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | SAME_ACTIVATIONS
    if activation not in ours:
        raise FirthError(
            "unsupported_architecture",
            "config.json: {name} must be one of {choices}; got {got!r}.",
            name="hidden_act",
            choices=", ".join(ours),
            got=activation,
        )
    if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder"):
        raise FirthError(
            "unsupported_architecture",
            "Firth supports BERT encoders with absolute positions; config.json has position_embedding_type="
            "{positions!r} and is_decoder={is_decoder!r}.",
            positions=config.get("position_embedding_type", "absolute"),
            is_decoder=config.get("is_decoder", False),
        )
    return Size(
        layers=number("num_hidden_layers"),
        dim=number("hidden_size"),
        heads=number("num_attention_heads"),
        feedforward_dim=number("intermediate_size"),
        max_positions=number("max_position_embeddings", 512),
        dropout=share("hidden_dropout_prob", 0.1),
        activation=ours[activation],
        pre_norm=False,
        epsilon=share("layer_norm_eps", 1e-12),
    )
