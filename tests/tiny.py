"""A small BERT and GPT with random weights that read the invented world's words: something to fine-tune quickly."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

import firth
from firth.data.world import World
from firth.nets.architecture import Architecture
from firth.nets.attention import MultiHead
from firth.nets.encoder import Encoder
from firth.nets.transformer import Decoder
from firth.transformers.bert_model import BertModel
from firth.transformers.gpt_model import END, GPTModel
from firth.transformers.pooling import Pooling


@cache
def texts(world: int = 21) -> list[str]:
    made = World(seed=world)
    return [
        *made.sentences(1500),
        *(example.text for example in made.sentiment(300)),
        *(f"{asked.question} {asked.passage}" for asked in made.questions(300)),
    ]


def bert_architecture(layers: int, dim: int, heads: int, **more: Any) -> Architecture:
    """The architecture of a BERT."""
    settings = {"family": "bert", "pre_norm": False, "epsilon": 1e-12, "segments": 2, "embedding_norm": True, **more}
    return Architecture(layers, dim, heads, **settings)


def tiny_bert(
    layers: int = 2, dim: int = 32, places: int = 128, vocabulary: int = 600, world: int = 21, lively: bool = False
) -> BertModel:
    """`lively`: learns sooner, as a net would that was trained before."""
    tokenizer = firth.WordPiece(size=vocabulary).train(texts(world))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = Encoder(len(tokenizer), bert_architecture(layers, dim, 2, max_positions=places, dropout=0.0))
    if lively:
        liven(net)
    method = firth.BERT(layers=layers, dim=dim, heads=2, context_length=places, dropout=0.0)
    return BertModel(method, net, tokenizer, Pooling(), {})


@torch.no_grad()
def liven(net: Encoder) -> None:
    """Larger numbers to begin with than large nets have, words that outweigh their places, and keys that are queries,
    so that a word looks where it stands again."""
    net.input.tokens.weight *= 10
    for part in net.modules():
        if isinstance(part, torch.nn.Linear):
            part.weight *= 5
        if isinstance(part, MultiHead):
            dim = part.output.in_features
            part.query_key_value.weight[dim : 2 * dim] = part.query_key_value.weight[:dim]


def tiny_gpt(layers: int = 2, dim: int = 32, places: int = 128) -> GPTModel:
    tokenizer = firth.BPE(size=500, special_tokens=(END,)).train(texts())
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = Decoder(
            len(tokenizer), Architecture(layers, dim, 2, max_positions=places + 1, dropout=0.0, activation="gelu_tanh")
        )
    return GPTModel(firth.GPT(layers=layers, dim=dim, heads=2, context_length=places, dropout=0.0), net, tokenizer, {})
