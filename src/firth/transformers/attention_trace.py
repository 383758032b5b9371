"""Attention traces: the weights of all heads, and the four steps of attention for one token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from firth.core.errors import FirthError
from firth.core.model import Attention, AttentionSteps
from firth.core.stored import finite_rows
from firth.nets.attention import AttentionRecord, MultiHead


class AttentionTrace(NamedTuple):
    """The attention of one text, layer by layer."""

    queries: list[str]
    keys: list[str]
    layers: list[AttentionRecord]
    segments: Sequence[int] = ()


class TracesAttention(ABC):
    """Mixin with `attention` and `attention_steps` for models that can trace their attention layers."""

    @abstractmethod
    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Run the network on a text, or a pair of texts, and record its attention."""

    @torch.inference_mode()
    def attention(self, text: str, other: str | None = None) -> Attention:
        """Return the attention weights of all layers and heads for a text, or a pair of texts."""
        trace = self.attention_trace(text, other)
        weights = torch.cat([layer.steps.weights for layer in trace.layers]).float().cpu().numpy()
        return Attention(trace.queries, trace.keys, finite_rows(weights, "The attention of layer"), trace.segments)

    @torch.inference_mode()
    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
        """Return the steps of softmax(q·k / √d) v for one query token of one head.

        Layers, heads and queries are counted from 1.
        """
        trace = self.attention_trace(text, other)
        heads = trace.layers[0].query.shape[1]
        for name, value, limit in (
            ("layer", layer, len(trace.layers)),
            ("head", head, heads),
            ("query", query, len(trace.queries)),
        ):
            if not 1 <= value <= limit:
                raise FirthError(
                    "invalid_value", "{name} must be from 1 to {limit}; got {got}.", name=name, limit=limit, got=value
                )
        record, h, q_index = trace.layers[layer - 1], head - 1, query - 1
        allowed = np.ones(len(trace.keys), bool)
        if record.mask is not None:
            allowed = record.mask.expand_as(record.steps.weights)[0, h, q_index].cpu().numpy()
        steps = record.steps
        rows = (record.query[0, h, q_index], record.key[0, h], record.value[0, h])
        values_of_query = (
            steps.scores[0, h, q_index],
            steps.scaled[0, h, q_index],
            steps.weights[0, h, q_index],
            steps.output[0, h, q_index],
        )
        q, k, v, scores, scaled, weights, output = (part.float().cpu().numpy() for part in (*rows, *values_of_query))
        return AttentionSteps(q, k, v, allowed, scores, scaled, weights, output)


def attention_records(parts: Iterable[MultiHead]) -> list[AttentionRecord]:
    """Return the records of the attention layers that were called."""
    return [part.record for part in parts if part.record is not None]
