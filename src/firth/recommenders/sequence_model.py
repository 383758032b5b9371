"""Model of `SequenceRecommender`: a user is the transformer's output after the last item of the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.method import Method
from firth.core.model import Histories, History, Parts
from firth.core.stored import check_arrays
from firth.core.vectors import Matrix
from firth.kernels.sparse import CSRMatrix
from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.recommenders.recommender_model import KEYS, RecommenderModel, StoredKeys, stored_histories
from firth.training.weight_files import with_weights

if TYPE_CHECKING:
    from firth.recommenders.sequence_recommender import SequenceRecommender

NET = "net."  # prefix of the network's arrays
SPECIAL = 2  # rows of the token table after those of the items: padding, and the mask
USERS_PER_BATCH = 256  # of inference


def architecture_of(method: SequenceRecommender) -> Architecture:
    """Return the transformer's settings."""
    return Architecture(
        layers=method.layers,
        dim=method.dim,
        heads=method.heads,
        max_positions=method.context_length,
        dropout=method.dropout,
        bidirectional=method.objective == "masked",
    )


def new_net(method: SequenceRecommender, items: int) -> Decoder:
    """Return an untrained network, whose tokens are the items, the padding and the mask."""
    return Decoder(items + SPECIAL, architecture_of(method))


def padded(sequences: Sequence[NDArray[np.integer[Any]]], padding: int) -> NDArray[np.int64]:
    """Return sequences as rows of one length, filled with padding on the right."""
    rows = np.full((len(sequences), max(map(len, sequences))), padding, np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


def hidden_states(net: Decoder, ids: Tensor, padding: int) -> Tensor:
    """Return the transformer's output (rows, positions, dim).

    A causal network needs no mask of the padding, which is on the right.
    """
    mask = (ids != padding)[:, None, None, :] if net.size.bidirectional else None
    hidden: Tensor = net.stack(*net.embedding.at(ids), mask)
    return hidden


class SequenceModel(RecommenderModel):
    """Users and items with their vectors; the score of an item is the dot product, log p(item is next) + constant.

    The order of a history counts: the list of `recommend_for` begins with the oldest item.
    """

    method: SequenceRecommender

    def __init__(
        self,
        method: Method,
        net: Decoder,
        users: Matrix,
        seen: Histories,
        keys: Mapping[str, Sequence[str]],
        training: Mapping[str, Any],
    ) -> None:
        self.net = net.cpu().eval()
        items = net.embedding.tokens.weight.detach().numpy()[:-SPECIAL]
        super().__init__(method, {"users": users, "items": items}, seen, keys, training)

    def _rows_and_weights(self, history: History) -> tuple[list[int], list[float]]:
        """Return the rows of known items in the order of the history, repeated ones as often as they occur."""
        known = [row for row, weight in self._known(history) if weight > 0]
        return known, [1.0] * len(known)

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the transformer's output after these items; zeros without items."""
        return encoded(self.net, self.method, entries.starts, entries.columns)

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        arrays: dict[str, NDArray[Any]] = {
            "users": self._rows["users"],
            **{NET + name: tensor.numpy() for name, tensor in self.net.state_dict().items()},
            "starts": self.seen.starts,
            "seen": self.seen.items,
        }
        return Parts(arrays, {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> SequenceModel:
        """Return the saved model, checked."""
        sizes = check_arrays(
            parts.arrays, **{"users": "float users width", NET + "embedding.tokens.weight": "float t d"}
        )
        items = max(0, sizes["t"] - SPECIAL)
        check_arrays(parts.arrays, users=f"float users {method.options()['dim']}", starts="int64 users+1")
        net = with_weights(lambda: new_net(method, items), parts.arrays, NET.__add__)  # type: ignore[arg-type]
        seen = stored_histories(parts, items)
        return cls(method, net, parts.arrays["users"], seen, StoredKeys(parts), training)


@torch.inference_mode()
def encoded(net: Decoder, method: SequenceRecommender, starts: NDArray[np.int64], items: NDArray[np.int32]) -> Matrix:
    """Return the output after the last item of each history, of which the last `context_length` items are read.

    Histories of equal length form batches, so that a row does not depend on the other histories.
    """
    padding, masked = len(net.embedding.tokens.weight) - SPECIAL, method.objective == "masked"
    most = method.context_length - masked  # the mask takes a position
    lengths = np.minimum(np.diff(starts), most)
    rows = np.zeros((len(lengths), method.dim), np.float32)
    for length in np.unique(lengths[lengths > 0]).tolist():
        group = np.flatnonzero(lengths == length)
        for first in range(0, len(group), USERS_PER_BATCH):
            users = group[first : first + USERS_PER_BATCH]
            ids = items[starts[users + 1][:, None] + np.arange(-length, 0)].astype(np.int64)
            if masked:
                ids = np.hstack([ids, np.full((len(users), 1), padding + 1)])
            rows[users] = hidden_states(net, torch.from_numpy(ids), padding)[:, -1].numpy()
    return rows
