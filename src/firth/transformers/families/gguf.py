"""Decoders in GGUF files: their settings as config.json of the same family, and the names of their tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.formats.gguf import GGUFFile
from firth.kernels.decoder import FloatArray, Linear
from firth.nets.architecture import Architecture
from firth.nets.positions import LLAMA3, RotaryScaling, rotary_frequencies
from firth.transformers.families import DECODERS
from firth.transformers.families.family import Config, Family
from firth.transformers.native_decoder import split_rows

#: general.architecture -> model_type of the family.
ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "gpt2": "gpt2",
}
#: Settings: their names after the architecture, and in config.json.
SETTINGS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}
GPT2_SETTINGS = {
    "block_count": "n_layer",
    "embedding_length": "n_embd",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
    "context_length": "n_positions",
}
#: Firth's modules and the tensors they consist of; `*` is the layer.
NAMES: dict[str, tuple[str, ...]] = {
    "embedding.tokens": ("token_embd",),
    "embedding.positions": ("position_embd",),
    "output": ("output",),
    "stack.norm": ("output_norm",),
    "stack.blocks.*.attention.query_key_value": ("blk.*.attn_q", "blk.*.attn_k", "blk.*.attn_v"),
    "stack.blocks.*.attention.output": ("blk.*.attn_output",),
    "stack.blocks.*.attention.query_norm": ("blk.*.attn_q_norm",),
    "stack.blocks.*.attention.key_norm": ("blk.*.attn_k_norm",),
    "stack.blocks.*.attention_norm": ("blk.*.attn_norm",),
    "stack.blocks.*.attention_output_norm": ("blk.*.post_attention_norm",),
    "stack.blocks.*.feed.wide": ("blk.*.ffn_gate", "blk.*.ffn_up"),
    "stack.blocks.*.feed.back": ("blk.*.ffn_down",),
    "stack.blocks.*.feed_norm": ("blk.*.ffn_norm",),
    "stack.blocks.*.feed_output_norm": ("blk.*.post_ffw_norm",),
}
GPT2_NAMES = {
    **NAMES,
    "stack.blocks.*.attention.query_key_value": ("blk.*.attn_qkv",),
    "stack.blocks.*.feed.wide": ("blk.*.ffn_up",),
}
FREQUENCY_FACTORS = "rope_freqs.weight"  # what the frequencies of rotary positions are divided by


def gguf_architecture(file: GGUFFile) -> Architecture:
    """Return the architecture of the network in a file."""
    name = file.value("general.architecture", str)
    if name not in ARCHITECTURES:
        raise FirthError(
            "unsupported_architecture",
            "{path} contains a network of architecture {kind!r}; Firth opens {choices}.",
            path=file.path,
            kind=name,
            choices=", ".join(ARCHITECTURES),
        )
    family = DECODERS[ARCHITECTURES[name]]
    try:
        size = family.architecture(Config(gguf_config(file, name)))
    except FirthError as error:
        raise error.within(file.path) from None
    rotated = plain(file.metadata.get(f"{name}.rope.dimension_count", size.width_of_head))
    if size.positions == "rotary" and rotated != size.width_of_head:
        raise FirthError(
            "unsupported_architecture",
            "{path} rotates {got} of the {head_dim} dimensions of each head; Firth supports only all of them.",
            path=file.path,
            got=rotated,
            head_dim=size.width_of_head,
        )
    return replace(size, rotary_scaling=frequency_scaling(file, size)) if FREQUENCY_FACTORS in file.tensors else size


def gguf_config(file: GGUFFile, name: str) -> dict[str, Any]:
    """Return the settings of a file as config.json of its family."""
    settings = GPT2_SETTINGS if name == "gpt2" else SETTINGS
    config = {
        theirs: plain(file.metadata[f"{name}.{key}"])
        for key, theirs in settings.items()
        if f"{name}.{key}" in file.metadata
    }
    config["tie_word_embeddings"] = "output.weight" not in file.tensors
    kind = file.metadata.get(f"{name}.rope.scaling.type", "none")
    if kind not in ("none", "linear"):
        raise FirthError(
            "unsupported_architecture",
            "{path}: rope.scaling.type is {got!r}; Firth supports {choices}.",
            path=file.path,
            got=kind,
            choices="none, linear",
        )
    if kind == "linear":
        config["rope_scaling"] = {"rope_type": kind, "factor": plain(file.metadata.get(f"{name}.rope.scaling.factor"))}
    if name.startswith("gemma"):
        config |= gemma_config(config)
    return config


def gemma_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a Gemma that its files do not have; llama.cpp knows them by the number of layers."""
    largest = config.get("num_hidden_layers") in (46, 62)  # Gemma 2 and 3 of 27 billion parameters
    heads = config.get("num_attention_heads")
    per_head = largest and isinstance(heads, int) and heads and isinstance(config.get("hidden_size"), int)
    scale = config["hidden_size"] // heads if per_head else config.get("head_dim", 256)
    caps = {name: config.get(name) for name in ("attn_logit_softcapping", "final_logit_softcapping")}
    return {"query_pre_attn_scalar": scale, **caps}


def plain(value: Any) -> Any:
    """Return a value as Config expects it; lists, such as one number of heads per layer, are refused there."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def frequency_scaling(file: GGUFFile, size: Architecture) -> RotaryScaling:
    """Return the scaling whose factors a file has; Llama 3's is the only one that is stored like this."""
    factors = file.tensors[FREQUENCY_FACTORS].floats().ravel()
    dim = size.rotary_dim or size.width_of_head
    scaling = RotaryScaling(LLAMA3, float(factors.max()))
    plain_frequencies = rotary_frequencies(dim, size.rotary_base)
    expected = (plain_frequencies / rotary_frequencies(dim, size.rotary_base, scaling)).numpy()
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=1e-3):
        raise FirthError(
            "unsupported_architecture",
            "{path}: Firth supports only the rotary scaling of Llama 3; the factors in {name} differ from it.",
            path=file.path,
            name=FREQUENCY_FACTORS,
        )
    return scaling


class GGUFWeights:
    """The tensors of a file by Firth's names, for the native engine and as arrays of a network."""

    def __init__(self, file: GGUFFile, size: Architecture) -> None:
        self.file, self.size = file, size
        self.names = GPT2_NAMES if size.family == "gpt2" else NAMES
        # llama.cpp's Llama rotates adjacent dimensions; its converter reorders the rows of queries and keys for that.
        self.interleaved = size.family == "llama"
        self.stored_size = replace(size, rotary_halves=not self.interleaved)  # the architecture of the rows as they are

    def tensors(self, name: str) -> tuple[str, ...]:
        """Return the names of the tensors of a module of Firth, without "weight" or "bias"."""
        parts = name.split(".")
        layer = next((part for part in parts if part.isdigit()), "")
        pattern = ".".join("*" if part.isdigit() else part for part in parts)
        return tuple(tensor.replace("*", layer) for tensor in self.names[pattern])

    def linears(self, name: str, rows: list[int]) -> list[Linear]:
        """Return a layer, split into layers of these numbers of rows."""
        stored = [self.linear(tensor) for tensor in self.tensors(name)]
        return split_rows(stored[0], rows) if len(stored) < len(rows) else stored

    def linear(self, tensor: str) -> Linear:
        """Return a matrix as it is stored; bfloat16 becomes float32."""
        weight, bias = self.file.tensors[f"{tensor}.weight"], self.file.tensors.get(f"{tensor}.bias")
        added = None if bias is None else bias.floats()
        if weight.storage.name == "BF16":
            return Linear(weight.floats(), bias=added)
        return Linear(weight.rows, weight.storage.name, added)

    def array(self, name: str) -> FloatArray | None:
        """Return an array as float32; None if there is none."""
        module, _, end = name.rpartition(".")
        (tensor,) = self.tensors(module)
        stored = self.file.tensors.get(f"{tensor}.{end}")
        return None if stored is None else stored.floats()

    def family(self) -> Family:
        """Return the family whose names are those of the tensors."""
        of_size = DECODERS[self.size.family]
        return replace(of_size, prefix="", names=self.names, head_names={}, ignored=(FREQUENCY_FACTORS,))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all tensors as float32, with the rows of queries and keys in the order of Hugging Face."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, tensor in self.file.tensors.items():
            array = tensor.floats()
            part = name.split(".")[-2] if self.interleaved else ""
            if part in ("attn_q", "attn_k"):
                heads = self.size.heads if part == "attn_q" else self.size.key_value_heads or self.size.heads
                pairs = array.reshape(heads, -1, 2, *array.shape[1:])  # heads × pairs × 2
                array = pairs.swapaxes(1, 2).reshape(array.shape)
            arrays[name] = array
        return arrays
