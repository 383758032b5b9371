"""Every encoder-decoder family gives the logits of transformers, and no part of it can be left out unnoticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from encoder_decoders import BART_COMMON, CONFIGS, END, NAMES, PAD, T5_COMMON, VOCABULARY, hugging_face
from refusing import refuses

from firth.nets.transformer import EncoderDecoder
from firth.transformers.families import ENCODER_DECODERS
from firth.transformers.families.encoder_decoders import read_encoder_decoder, write_encoder_decoder
from firth.transformers.families.family import Config

torch.set_num_threads(1)


def arrays_of(net: Any) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in net.state_dict().items()}


def read(family: str, net: Any) -> EncoderDecoder:
    size = ENCODER_DECODERS[family].architecture(Config(net.config.to_dict()))
    return read_encoder_decoder(ENCODER_DECODERS[family], arrays_of(net), size)


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sources of three lengths with their mask, and targets."""
    torch.manual_seed(6)
    source, target = torch.randint(3, VOCABULARY, (3, 70)), torch.randint(3, VOCABULARY, (3, 60))
    mask = torch.arange(70) < torch.tensor([70, 33, 5])[:, None]
    return source.where(mask, PAD), mask, target


@torch.inference_mode()
def ours(net: EncoderDecoder) -> torch.Tensor:
    return net.logits(net(*inputs()))


@torch.inference_mode()
def theirs(net: Any) -> torch.Tensor:
    source, mask, target = inputs()
    logits: torch.Tensor = net(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
    return logits


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference as a share of the largest value."""
    return float((one - other).abs().max() / other.abs().max())


@pytest.mark.parametrize(("family", "config", "model", "settings"), CONFIGS, ids=NAMES)
def test_logits_are_those_of_transformers(family, config, model, settings):
    other = hugging_face(config, model, settings)
    assert difference(ours(read(family, other)), theirs(other)) <= 1e-5


@pytest.mark.parametrize(("family", "config", "model", "settings"), CONFIGS, ids=NAMES)
def test_writing_is_the_inverse_of_reading(family, config, model, settings, tmp_path):
    other = hugging_face(config, model, settings)
    net, table = read(family, other), ENCODER_DECODERS[family]
    written = {**table.config(net.size), "vocab_size": VOCABULARY, "pad_token_id": PAD, "eos_token_id": END}
    assert replace(table.architecture(Config(written)), logit_bias=net.size.logit_bias) == net.size
    again = getattr(transformers, model).from_pretrained(
        None,
        config=getattr(transformers, config)(**written),
        state_dict={name: torch.from_numpy(array) for name, array in write_encoder_decoder(table, net).items()},
        attn_implementation="eager",
    )
    assert difference(theirs(again.eval()), theirs(other)) <= 1e-5


#: What distinguishes each family: an architecture without it must not give the same logits.
ESSENTIAL: list[tuple[int, dict[str, Any]]] = [
    (0, {"score_bias": "none"}),
    (0, {"relative_far": 30}),
    (0, {"score_scale": 0.0}),
    (0, {"norm": "layer"}),
    (0, {"pre_norm": False}),
    (0, {"logit_scale": 1.0}),
    (0, {"activation": "gelu"}),
    (1, {"activation": "geglu"}),
    (1, {"activation": "swiglu"}),
    (2, {"tied": True}),
    (4, {"positions": "none"}),
    (4, {"embedding_norm": False}),
    (4, {"pre_norm": True}),
    (4, {"logit_bias": False}),
    (4, {"decoder_heads": 4}),
    (5, {"embedding_scale": 1.0}),
    (6, {"positions": "none"}),
    (6, {"sinusoidal_halves": False}),
    (6, {"activation": "gelu"}),
    (6, {"logit_bias": False}),
]


@pytest.mark.parametrize(
    ("number", "change"), ESSENTIAL, ids=[f"{NAMES[number]}-{next(iter(x))}" for number, x in ESSENTIAL]
)
def test_leaving_a_part_out_breaks_parity(number, change):
    family, config, model, settings = CONFIGS[number]
    other = hugging_face(config, model, settings)
    net = read(family, other)
    changed = EncoderDecoder(VOCABULARY, VOCABULARY, replace(net.size, **change), tied=True).eval()
    state = net.state_dict()
    needed = changed.state_dict()
    fitting = {name: state[name] for name in needed if name in state and state[name].shape == needed[name].shape}
    left = needed.keys() - fitting.keys()
    assert all(name.rpartition(".")[0].endswith("norm") for name in left), left  # which begin as ones and zeros
    changed.load_state_dict(fitting, strict=False)
    assert difference(ours(changed), theirs(other)) > 5e-5  # 100 times the difference of the same network


def test_damaged_weights_are_refused_by_name():
    other = hugging_face(*CONFIGS[0][1:])
    table = ENCODER_DECODERS["t5"]
    size = table.architecture(Config(other.config.to_dict()))
    name = "decoder.block.1.layer.1.EncDecAttention.k.weight"
    arrays = arrays_of(other)
    missing = {key: array for key, array in arrays.items() if key != name}
    with refuses("damaged_model", family="T5", problem=f"{name} missing"):
        read_encoder_decoder(table, missing, size)
    with refuses("damaged_model", problem=f"{name} has shape (3, 48), expected (32, 48)"):
        read_encoder_decoder(table, {**arrays, name: arrays[name][:3]}, size)
    with refuses("damaged_model", array=name):
        read_encoder_decoder(table, {**arrays, name: np.full_like(arrays[name], np.nan)}, size)
    with refuses("damaged_model", problem="decoder.block.3.layer.0.layer_norm.weight unexpected"):
        extra = {"decoder.block.3.layer.0.layer_norm.weight": np.ones(48, np.float32)}
        read_encoder_decoder(table, {**arrays, **extra}, size)
    with refuses("unsupported_architecture", alias="encoder.embed_tokens.weight", name="shared.weight"):
        read_encoder_decoder(table, {**arrays, "encoder.embed_tokens.weight": arrays["shared.weight"] + 1}, size)


@pytest.mark.parametrize("names", [("lm_head.weight",), ("encoder.embed_tokens.weight",), ("shared.weight",)])
def test_the_shared_table_may_have_any_of_its_names(names):
    other = hugging_face(*CONFIGS[0][1:])
    arrays, table = arrays_of(other), ENCODER_DECODERS["t5"]
    tokens = ("shared.weight", "embed_tokens.weight", "lm_head.weight")
    rest = {key: array for key, array in arrays.items() if not key.endswith(tokens)}
    rest |= dict.fromkeys(names, arrays["shared.weight"])
    net = read_encoder_decoder(table, rest, table.architecture(Config(other.config.to_dict())))
    assert difference(ours(net), theirs(other)) <= 1e-5


def test_settings_that_are_not_supported_are_named():
    marian, bart, t5 = (ENCODER_DECODERS[name].architecture for name in ("marian", "bart", "t5"))
    base = {**BART_COMMON, "model_type": "marian"}
    with refuses("unsupported_architecture", name="share_encoder_decoder_embeddings", got=False):
        marian(Config({**base, "share_encoder_decoder_embeddings": False}))
    with refuses("unsupported_architecture", name="normalize_before", got=True):
        bart(Config({**base, "normalize_before": True}))
    with refuses("unsupported_architecture", name="feed_forward_proj", got="gated-tanh"):
        t5(Config({**T5_COMMON, "feed_forward_proj": "gated-tanh"}))
    for name, got in (("dense_act_fn", "gelu"), ("is_gated_act", False)):  # contradict feed_forward_proj
        with refuses("unsupported_architecture", name=name, got=got):
            t5(Config({**T5_COMMON, "feed_forward_proj": "gated-gelu", name: got}))
