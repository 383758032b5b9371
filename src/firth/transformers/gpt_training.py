"""Training of `GPT` on a corpus."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

import torch

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subword_tokens import encode_corpus
from firth.data.subwords import BPE, Characters
from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.transformers.gpt import GPT
from firth.transformers.gpt_files import net_of, size_of
from firth.transformers.gpt_model import END, GPTModel
from firth.transformers.language_modeling import LanguageTraining

MULTIPLE = 64  # of embedding rows: aligned matrix products are faster


def size_differences(start: Architecture, size: Architecture) -> list[str]:
    """Return the options of `start` that differ; dropout has no weights and may differ."""
    existing, requested = (
        asdict(replace(each, dropout=0.0, feedforward_dim=each.feedforward_dim or 4 * each.dim))
        for each in (start, size)
    )
    for part in (existing, requested):
        part["context_length"] = part.pop("max_positions") - 1
    return [f"{name}={value}" for name, value in existing.items() if value != requested[name]]


def train_gpt(method: GPT, data: Any, run: Run, start: Model | None) -> GPTModel:
    """Train a tokenizer and a GPT on a corpus, or continue from `start`."""
    size = size_of(method)
    if start is not None and not isinstance(start, GPTModel):
        raise FirthError("incompatible_start", "start must be a GPT model; got {got!r}.", got=start)
    if start is not None and (different := size_differences(start.size, size)):
        raise FirthError(
            "incompatible_start",
            "start must be a GPT model of the same size; it has {existing}.",
            existing=", ".join(different),
        )
    began = time.monotonic()
    corpus = data if isinstance(data, Corpus) else Corpus(data)
    tokenizer = start.tokenizer if start else train_tokenizer(method, corpus, run)
    tokens = encode_corpus(tokenizer, corpus, run, end=END)
    reading = time.monotonic() - began
    if start is not None:
        net = net_of(start.net.state_dict(), size)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            net = Decoder(-(-len(tokenizer) // MULTIPLE) * MULTIPLE, size)
    method = method.sized(len(tokens.ids))
    training = LanguageTraining(method, net, tokens.ids, size.max_positions, method.held_out, tokens.fingerprint, run)
    metrics = training.go() | {
        "tokens": len(tokens.ids),
        "vocabulary": len(tokenizer),
        "documents": len(tokens),
        "reading_seconds": reading,
        "data": tokens.fingerprint,
        "seed": run.seed,
    }
    return GPTModel(method, net.cpu(), tokenizer, metrics)


def train_tokenizer(method: GPT, corpus: Corpus, run: Run) -> SubwordTokenizer:
    """Train the tokenizer that the options choose."""
    if method.tokenizer == "characters":
        return Characters(special_tokens=("<unk>", END)).train(corpus, run)
    return BPE(size=method.vocabulary_size, special_tokens=(END,)).train(corpus, run)
