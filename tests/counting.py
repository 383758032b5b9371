"""A small language model that learns to count: what tests of the training loop train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from firth.core.run import Run
from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.training.network_options import GradientOptions
from firth.transformers.language_modeling import LanguageTraining


@dataclass(frozen=True, kw_only=True)
class Options(GradientOptions):
    def fit(self, data, run=Run(), start=None):
        raise NotImplementedError

    @classmethod
    def method_name(cls):
        return "options"


def counting(length: int = 4000) -> np.ndarray:
    """0 1 2 … 9 0 1 2 …: each token determines the next."""
    return (np.arange(length) % 10).astype(np.int32)


def training(run: Run, ids: np.ndarray | None = None, held_out: float = 0.1, **options) -> LanguageTraining:
    torch.manual_seed(0)
    size = Architecture(layers=1, dim=32, heads=2, max_positions=16, dropout=options.pop("dropout", 0.0))
    settings = {"epochs": 3, "batch_tokens": 128, "learning_rate": 1e-2} | options
    return LanguageTraining(
        Options(**settings), Decoder(10, size), counting() if ids is None else ids, 16, held_out, "data", run
    )


def weights(task: LanguageTraining) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in task.net.state_dict().values())


def answers(task: LanguageTraining) -> np.ndarray:
    """The logits for some tokens. Weights without any effect, such as the biases of keys, may differ."""
    net = task.net
    assert isinstance(net, Decoder)
    with torch.no_grad():
        return np.asarray(net.logits(net(torch.arange(10)[None])).numpy())
