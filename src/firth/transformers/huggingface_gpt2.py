"""Conversion between Firth's and Hugging Face's weight names and config of GPT-2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.nets.transformer import Size

#: Names within a block: Firth's, GPT-2's, and whether the matrix is transposed (GPT-2 stores inputs × outputs).
BLOCK = (
    ("attention_norm.weight", "ln_1.weight", False),
    ("attention_norm.bias", "ln_1.bias", False),
    ("attention.query_key_value.weight", "attn.c_attn.weight", True),
    ("attention.query_key_value.bias", "attn.c_attn.bias", False),
    ("attention.output.weight", "attn.c_proj.weight", True),
    ("attention.output.bias", "attn.c_proj.bias", False),
    ("feed_norm.weight", "ln_2.weight", False),
    ("feed_norm.bias", "ln_2.bias", False),
    ("feed.wide.weight", "mlp.c_fc.weight", True),
    ("feed.wide.bias", "mlp.c_fc.bias", False),
    ("feed.back.weight", "mlp.c_proj.weight", True),
    ("feed.back.bias", "mlp.c_proj.bias", False),
)
REST = (
    ("embedding.tokens.weight", "wte.weight", False),
    ("embedding.positions.table", "wpe.weight", False),
    ("stack.norm.weight", "ln_f.weight", False),
    ("stack.norm.bias", "ln_f.bias", False),
)
ACTIVATIONS = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}


def is_gpt2(size: Size) -> bool:
    """Return whether a network is a GPT-2: learned positions, pre-norm and no gated activation."""
    return size.positions == "learned" and size.pre_norm and size.activation in ACTIVATIONS


def names(layers: int) -> Iterator[tuple[str, str, bool]]:
    """Yield Firth's name, GPT-2's name and whether to transpose, for each array."""
    yield from REST
    for layer in range(layers):
        for ours, theirs, transposed in BLOCK:
            yield f"stack.blocks.{layer}.{ours}", f"h.{layer}.{theirs}", transposed


def to_gpt2(state: Mapping[str, Tensor], size: Size, vocabulary_size: int) -> dict[str, NDArray[Any]]:
    """Return the weights by GPT-2's names, without the padding rows of the embedding."""
    arrays = {}
    for ours, theirs, transposed in names(size.layers):
        array = state[ours].detach().cpu().float().numpy()
        arrays[f"transformer.{theirs}"] = np.ascontiguousarray(array.T) if transposed else array
    arrays["transformer.wte.weight"] = arrays["transformer.wte.weight"][:vocabulary_size]
    return arrays


def from_gpt2(arrays: Mapping[str, NDArray[Any]], size: Size) -> dict[str, Tensor]:
    """Return Firth's weights from GPT-2's names, with or without the prefix "transformer."."""
    known = {name.removeprefix("transformer."): array for name, array in arrays.items()}
    expected = list(names(size.layers))
    missing = [theirs for _, theirs, _ in expected if theirs not in known]
    ignored = {"lm_head.weight"} | {
        f"h.{layer}.attn.{name}" for layer in range(size.layers) for name in ("bias", "masked_bias")
    }
    extra = sorted(known.keys() - {theirs for _, theirs, _ in expected} - ignored)
    if missing or extra:
        problem = "; ".join(
            listed(names_found, what)
            for names_found, what in ((missing, "missing"), (extra, "unexpected"))
            if names_found
        )
        raise FirthError(
            "damaged_model",
            "These are not the weights of a GPT-2 with {layers} layers: {problem}.",
            layers=size.layers,
            problem=problem,
        )
    return {
        ours: torch.from_numpy(np.array(known[theirs].T if transposed else known[theirs], dtype=np.float32))
        for ours, theirs, transposed in expected
    }


def from_foreign(arrays: Mapping[str, NDArray[Any]], size: Size, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return Firth's weights from a Hugging Face folder, with the attention scaling of its config.json."""
    state, head = from_gpt2(arrays, size), arrays.get("lm_head.weight")
    tied = head is None or config.get("tie_word_embeddings", True)
    if not tied and not np.array_equal(np.asarray(head), state["embedding.tokens.weight"]):
        raise FirthError(
            "unsupported_architecture",
            "This GPT-2 has separate input and output embeddings ({name}); Firth's GPT ties them.",
            name="lm_head.weight",
        )
    for layer in range(size.layers):  # fold other attention scales into the queries
        scale = 1.0 if config.get("scale_attn_weights", True) else (size.dim / size.heads) ** 0.5
        scale /= layer + 1 if config.get("scale_attn_by_inverse_layer_idx") else 1
        for end in ("weight", "bias"):
            state[f"stack.blocks.{layer}.attention.query_key_value.{end}"][: size.dim] *= scale
    return state


def listed(names_found: list[str], problem: str) -> str:
    """Return the first three names, the number of others, and what is wrong with them."""
    return (
        f"{', '.join(names_found[:3])}{f' and {len(names_found) - 3} more' if len(names_found) > 3 else ''} {problem}"
    )


def config_of(size: Size, vocabulary_size: int) -> dict[str, Any]:
    """Return Hugging Face's config.json for a network."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocabulary_size,
        "n_positions": size.max_positions,
        "n_embd": size.dim,
        "n_layer": size.layers,
        "n_head": size.heads,
        "n_inner": size.feedforward_dim or 4 * size.dim,
        "activation_function": ACTIVATIONS[size.activation],
        "resid_pdrop": size.dropout,
        "embd_pdrop": size.dropout,
        "attn_pdrop": size.dropout,
        "layer_norm_epsilon": size.epsilon,
        "tie_word_embeddings": True,
    }


def size_of(config: Mapping[str, Any]) -> tuple[Size, int]:
    """Return the network size and vocabulary size from Hugging Face's config.json."""

    def number(name: str, default: int | None = None) -> int:
        value = config.get(name) or default
        if not isinstance(value, int) or value < 1:
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be a positive integer; got {got!r}.",
                name=name,
                got=config.get(name),
            )
        return value

    activation = config.get("activation_function", "gelu_new")
    ours = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"gelu_pytorch_tanh": "gelu_tanh"}
    if activation not in ours:
        raise FirthError(
            "unsupported_architecture",
            "config.json: {name} must be one of {choices}; got {got!r}.",
            name="activation_function",
            choices=", ".join(ours),
            got=activation,
        )
    dim = number("n_embd")
    size = Size(
        layers=number("n_layer"),
        dim=dim,
        heads=number("n_head"),
        feedforward_dim=number("n_inner", 4 * dim),
        max_positions=number("n_positions"),
        dropout=float(config.get("resid_pdrop", 0.1)),
        activation=ours[activation],
        epsilon=float(config.get("layer_norm_epsilon", 1e-5)),
    )
    return size, number("vocab_size")
