"""Hugging Face's names for the weights of a `Bert`, so that folders are theirs too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.learners.gpt2 import told
from firth.nets.bert import Bert
from firth.nets.transformer import Size

#: Firth's name in a block, Hugging Face's.
BLOCK = (
    ("attention.output", "attention.output.dense"),
    ("attention_norm", "attention.output.LayerNorm"),
    ("feed.wide", "intermediate.dense"),
    ("feed.back", "output.dense"),
    ("feed_norm", "output.LayerNorm"),
)
ATTENTION = ("query", "key", "value")  # three matrices there, one below the other here
ENDS = (".weight", ".bias")
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}
IGNORED = ("embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
HEADS = ("pooler", "masked", "following")


def names(layers: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Firth's name of each array, and those of Hugging Face's arrays that make it up."""
    yield "input.tokens.weight", ("embeddings.word_embeddings.weight",)
    yield "input.places.weight", ("embeddings.position_embeddings.weight",)
    yield "input.segments.weight", ("embeddings.token_type_embeddings.weight",)
    for end in ENDS:
        yield f"input.norm{end}", (f"embeddings.LayerNorm{end}",)
        yield f"pooler{end}", (f"pooler.dense{end}",)
        yield f"masked.dense{end}", (f"cls.predictions.transform.dense{end}",)
        yield f"masked.norm{end}", (f"cls.predictions.transform.LayerNorm{end}",)
        yield f"following{end}", (f"cls.seq_relationship{end}",)
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
    """Weights by Hugging Face's names; a net without heads of pre-training is a bare model there."""
    state, found = net.state_dict(), dict[str, NDArray[Any]]()
    before = "bert." if net.masked is not None or net.following is not None else ""
    for ours, theirs in names(net.size.layers):
        if ours in state:
            parts = np.split(state[ours].detach().cpu().float().numpy(), len(theirs))
            named = (name if name.startswith("cls.") else before + name for name in theirs)
            found |= zip(named, parts, strict=True)
    return found


def from_bert(arrays: Mapping[str, NDArray[Any]], size: Size, known_heads: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """The inverse of `to_bert`. Heads may be missing; `known_heads` are arrays that belong to somebody else."""
    known = {name.removeprefix("bert."): array for name, array in arrays.items()}
    state, missing, used = dict[str, Tensor](), list[str](), set[str]()
    for ours, theirs in names(size.layers):
        lacking = [name for name in theirs if name not in known]
        if not lacking:
            joined = np.concatenate([known[name].astype(np.float32) for name in theirs])
            state[ours] = torch.from_numpy(joined)
            used.update(theirs)
        elif not ours.startswith(HEADS):
            missing += lacking
    extra = sorted(known.keys() - used - set(IGNORED) - set(known_heads))
    for head in HEADS:  # a head is there whole or not at all
        if any(name.startswith(head) for name in state):
            wanted = [(ours, theirs) for ours, theirs in names(size.layers) if ours.startswith(head)]
            missing += [name for ours, theirs in wanted if ours not in state for name in theirs]
    if missing or extra:
        wrong = "; ".join(told(found, what) for found, what in ((missing, "missing"), (extra, "not known")) if found)
        raise FirthError(f"These are not the weights of a BERT of {size.layers} layers: {wrong}.")
    return state


def net_of(state: Mapping[str, Tensor], size: Size) -> Bert:
    """A net with these weights, and with the heads they have."""
    heads = {head: any(name.startswith(head) for name in state) for head in HEADS}
    shape = state["input.tokens.weight"].shape
    with torch.device("meta"):
        net = Bert(shape[0], size, **heads, segments=len(state["input.segments.weight"]))
    wrong = [
        f"{name} is {tuple(state[name].shape)} and must be {tuple(part.shape)}"
        for name, part in net.state_dict().items()
        if state[name].shape != part.shape
    ]
    if wrong:
        raise FirthError(f"The weights do not fit config.json: {'; '.join(wrong[:3])}.")
    net.load_state_dict(state, assign=True)
    return net.eval()


def config_of(net: Bert) -> dict[str, Any]:
    """What Hugging Face's config.json says."""
    size = net.size
    kinds = {(True, True): "BertForPreTraining", (True, False): "BertForMaskedLM"}
    return {
        "model_type": "bert",
        "architectures": [kinds.get((net.masked is not None, net.following is not None), "BertModel")],
        "vocab_size": net.input.tokens.num_embeddings,
        "hidden_size": size.dim,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.hidden or 4 * size.dim,
        "hidden_act": ACTIVATIONS[size.activation],
        "hidden_dropout_prob": size.dropout,
        "attention_probs_dropout_prob": size.dropout,
        "max_position_embeddings": size.places,
        "type_vocab_size": net.input.segments.num_embeddings,
        "layer_norm_eps": size.epsilon,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }


def size_of(config: Mapping[str, Any]) -> Size:
    """The size that Hugging Face's config.json tells."""

    def number(name: str, default: int | None = None) -> int:
        value = config.get(name, default)
        if type(value) is not int or value < 1:
            raise FirthError(f"config.json of a BERT must give {name} as a whole number; got {config.get(name)!r}.")
        return value

    activation = config.get("hidden_act", "gelu")
    ours = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    if activation not in ours:
        raise FirthError(f"hidden_act must be one of {', '.join(ours)}; got {activation!r}.")
    if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder"):
        raise FirthError("Firth reads BERT encoders with absolute positions; config.json tells of something else.")
    return Size(
        layers=number("num_hidden_layers"),
        dim=number("hidden_size"),
        heads=number("num_attention_heads"),
        hidden=number("intermediate_size"),
        places=number("max_position_embeddings", 512),
        dropout=float(config.get("hidden_dropout_prob", 0.1)),
        activation=ours[activation],
        pre_norm=False,
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )
