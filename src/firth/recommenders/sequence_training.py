"""Training of `SequenceRecommender`: next items (SASRec), or hidden items (BERT4Rec)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.model import Histories, Model
from firth.core.run import Run
from firth.data.interactions import Interactions
from firth.nets.transformer import Decoder, token_losses
from firth.recommenders.recommender_model import as_interactions, check_start, keys_of, merge_interactions, rows_of
from firth.recommenders.sequence_model import SPECIAL, SequenceModel, encoded, hidden_states, new_net, padded
from firth.recommenders.sequence_recommender import SequenceRecommender
from firth.training.gradient_loop import Batch, token_shares
from firth.training.row_batches import RowTraining

LAST_ONLY = 0.5  # share of the stretches of which only the last item is hidden, as when the next item is predicted
NO_TARGET = -1


class Stretches(NamedTuple):
    """Parts of histories: stretch r has `items[first[r]:last[r]]`."""

    items: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def stretches_of(starts: NDArray[np.int64], items: NDArray[np.int32], length: int, overlap: int) -> Stretches:
    """Divide histories into stretches of at most `length` items, from their ends, which overlap by `overlap` items.

    Histories of one item have nothing to predict and are left out.
    """
    first, last = list[int](), list[int]()
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        while end - begin > 1:
            first.append(max(begin, end - length))
            last.append(end)
            if first[-1] == begin:
                break
            end = first[-1] + overlap
    return Stretches(items, np.array(first, np.int64), np.array(last, np.int64))


class SequenceTraining(RowTraining):
    """Predict items of stretches of user histories."""

    baseline: ClassVar[str] = "the loss of recommending by popularity"
    method: SequenceRecommender

    def __init__(
        self, method: SequenceRecommender, net: Decoder, stretches: Stretches, fingerprint: str, run: Run
    ) -> None:
        self.stretches, self.padding = stretches, len(net.embedding.tokens.weight) - SPECIAL
        super().__init__(method, net, len(stretches.first), fingerprint, run)

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the shuffled batches of an epoch; what is hidden depends on the epoch."""
        return [batch._replace(what=(epoch, batch.what)) for batch in super().plan(epoch)]

    def load(self, what: Any) -> Any:
        """Return the inputs and the targets of these stretches."""
        epoch, rows = what
        return self.inputs(rows, epoch)

    def draws(self, rows: NDArray[np.int64], epoch: int, positions: int) -> NDArray[np.float64]:
        """Return numbers in [0, 1), which depend on the stretch and the epoch but not on the batch."""
        return np.array([np.random.default_rng([self.run.seed, epoch, row]).random(1 + positions) for row in rows])

    def inputs(self, rows: NDArray[np.int64], epoch: int | None) -> list[Tensor]:
        """Return token ids and targets (rows, positions); without an epoch, only the last item is hidden."""
        first, last = self.stretches.first[rows], self.stretches.last[rows]
        sequences = [self.stretches.items[begin:end] for begin, end in zip(first, last, strict=True)]
        if self.method.objective == "causal":
            ids = padded([sequence[:-1] for sequence in sequences], self.padding)
            targets = padded([sequence[1:] for sequence in sequences], NO_TARGET)
            return [torch.from_numpy(ids), torch.from_numpy(targets)]
        ids = padded(sequences, self.padding)
        hidden = np.zeros(ids.shape, bool)
        only_last = np.ones(len(ids), bool)
        if epoch is not None:
            draws = self.draws(rows, epoch, ids.shape[1])
            hidden = (draws[:, 1:] < self.method.mask_rate) & (ids != self.padding)
            only_last = draws[:, 0] < LAST_ONLY
            hidden[only_last] = False
            only_last |= ~hidden.any(axis=1)
        hidden[only_last, (last - first - 1)[only_last]] = True
        targets = np.where(hidden, ids, NO_TARGET)
        return [torch.from_numpy(np.where(hidden, self.padding + 1, ids)), torch.from_numpy(targets)]

    def row_losses(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of the predicted items of each stretch."""
        net = self.net
        assert isinstance(net, Decoder)
        row, position = torch.nonzero(targets != NO_TARGET, as_tuple=True)
        hidden = hidden_states(net, ids, self.padding)[row, position]
        losses = token_losses(hidden, net.output_vectors[: self.padding], targets[row, position])
        counts = torch.bincount(row, minlength=len(ids))
        return torch.zeros(len(ids), device=losses.device).index_add(0, row, losses) / counts

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of the stretches of a batch."""
        return self.row_losses(*tensors).sum()

    def evaluate(self, most: int) -> dict[str, float]:
        """Return the mean −log p of the predicted items of held-out stretches; of the last items if masked."""
        total = count = 0.0
        for rows in self.measured_rows(most):
            for part in np.array_split(rows, -(-len(rows) // 256)):
                losses = self.row_losses(*(tensor.to(self.device) for tensor in self.inputs(part, None)))
                total += float(losses.sum())
                count += len(part)
        return {"held_out_loss": total / count} if count else {}

    def baseline_loss(self) -> float | None:
        """Return −log p of the same items, where p is the smoothed frequency of an item."""
        if not len(self.held_out):
            return None
        shares = token_shares(self.stretches.items, self.padding)
        losses = []
        for row in self.held_out:
            begin, end = self.stretches.first[row], self.stretches.last[row]
            predicted = self.stretches.items[begin + 1 if self.method.objective == "causal" else end - 1 : end]
            losses.append(-np.log(shares)[predicted].mean())
        return float(np.mean(losses))

    def operations(self) -> float:
        """Return the operations per stretch: those per item times the longest stretch."""
        return super().operations() * self.method.context_length


def net_from(start: SequenceModel, method: SequenceRecommender, items: Sequence[str]) -> Decoder:
    """Return the network of `start` with rows for the new items, which begin at the mean of all items."""
    net = new_net(method, len(items))
    weights, tokens = start.net.state_dict(), net.embedding.tokens.weight.detach()
    old = weights["embedding.tokens.weight"]
    tokens[: len(items)] += old[:-SPECIAL].mean(dim=0)
    tokens[rows_of(start.items.keys, items)] = old[:-SPECIAL]
    tokens[len(items) :] = old[-SPECIAL:]
    net.load_state_dict({**weights, "embedding.tokens.weight": tokens})
    return net


def check_sizes(start: SequenceModel, method: SequenceRecommender) -> None:
    """Refuse a start of another shape or objective."""
    names = ("objective", "dim", "layers", "heads", "context_length")
    existing = start.method.options()
    different = [f"{name}={existing[name]}" for name in names if existing[name] != method.options()[name]]
    if different:
        raise FirthError(
            "incompatible_start",
            "start must be a SequenceRecommender model of the same size; it has {existing}.",
            existing=", ".join(different),
        )


def distinct_in_order(interactions: Interactions) -> Histories:
    """Return each user's distinct items in the order of their last events; events of weight 0 are left out."""
    rows = interactions.summed()
    return Histories(rows.starts, rows.columns[interactions.by_last_event(rows)])


def train_sequences(method: SequenceRecommender, data: Any, run: Run, start: Model | None) -> SequenceModel:
    """Train the transformer and encode all users."""
    began = time.monotonic()
    start_model = check_start(start, SequenceModel, method)
    assert start_model is None or isinstance(start_model, SequenceModel)
    if start_model is not None:
        check_sizes(start_model, method)
    interactions = merge_interactions(start_model, as_interactions(method, data))
    seen = distinct_in_order(interactions)  # refuses negative weights
    used = interactions.weights > 0
    starts = np.concatenate([[0], np.cumsum(used)])[interactions.starts].astype(np.int64)
    items = interactions.item_ids[used]
    causal = method.objective == "causal"
    stretches = stretches_of(starts, items, method.context_length + causal, overlap=int(causal))
    if not len(stretches.first):
        raise FirthError(
            "too_few",
            "{method} needs a user with at least {minimum} interactions; got {got}.",
            method=type(method).__name__,
            minimum=2,
            got=1,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = (
            new_net(method, len(interactions.items))
            if start_model is None
            else net_from(start_model, method, interactions.items)
        )
    reading = time.monotonic() - began
    metrics = SequenceTraining(method, net, stretches, interactions.fingerprint(), run).go() | {
        "users": len(interactions.users),
        "items": len(interactions.items),
        "events": len(items),
        "reading_seconds": reading,
        "seed": run.seed,
    }
    users = encoded(net.cpu().eval(), method, starts, items)
    return SequenceModel(method, net, users, seen, keys_of(interactions), metrics)
