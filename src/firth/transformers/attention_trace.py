"""Where a network looks: the weights of all its heads, and the steps to them for one token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from firth.core.errors import FirthError
from firth.core.model import Attention, AttentionSteps
from firth.core.stored import finite_rows
from firth.nets.attention import Kept, MultiHead


class Looked(NamedTuple):
    """The attentions of one text, layer by layer."""

    queries: list[str]
    keys: list[str]
    layers: list[Kept]
    segments: Sequence[int] = ()


class Looking(ABC):
    """`attention` and `attention_steps` of a network whose attentions keep their numbers."""

    @abstractmethod
    def looked(self, text: str, other: str | None = None) -> Looked:
        """Reads a text, or a pair of them."""

    @torch.inference_mode()
    def attention(self, text: str, other: str | None = None) -> Attention:
        found = self.looked(text, other)
        weights = torch.cat([layer.steps.weights for layer in found.layers]).float().cpu().numpy()
        return Attention(found.queries, found.keys, finite_rows(weights, "The attention of layer"), found.segments)

    @torch.inference_mode()
    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
        """softmax(q·k / √d) v for one token of one head; all are counted from 1."""
        found = self.looked(text, other)
        heads = found.layers[0].query.shape[1]
        for name, value, most in (
            ("layer", layer, len(found.layers)),
            ("head", head, heads),
            ("query", query, len(found.queries)),
        ):
            if not 1 <= value <= most:
                raise FirthError(
                    "invalid_value", "{name} must be from 1 to {limit}; got {got}.", name=name, limit=most, got=value
                )
        kept, n, i = found.layers[layer - 1], head - 1, query - 1
        allowed = np.ones(len(found.keys), bool)
        if kept.mask is not None:
            allowed = kept.mask.expand_as(kept.steps.weights)[0, n, i].cpu().numpy()
        steps = kept.steps
        rows = (kept.query[0, n, i], kept.key[0, n], kept.value[0, n])
        numbers = (steps.scores[0, n, i], steps.scaled[0, n, i], steps.weights[0, n, i], steps.output[0, n, i])
        q, k, v, scores, scaled, weights, output = (part.float().cpu().numpy() for part in (*rows, *numbers))
        return AttentionSteps(q, k, v, allowed, scores, scaled, weights, output)


def kept_by(parts: Iterable[MultiHead]) -> list[Kept]:
    """What attentions kept, of those that were used."""
    return [part.kept for part in parts if part.kept is not None]
