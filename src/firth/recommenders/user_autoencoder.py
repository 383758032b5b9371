"""How `MultVAE` and `MultDAE` learn, and what comes out: users as codes of what they had."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Model, Parts
from firth.core.run import Run
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.kernels.sparse import Rows
from firth.nets.autoencoder import divergence_loss, sample_code
from firth.nets.user_autoencoder import Baskets, UserNet
from firth.recommenders.recommender_model import (
    KEYS,
    RecommenderModel,
    StoredKeys,
    keys_of,
    stored_histories,
    take_ratings,
)
from firth.tables.autoencoder_model import NET
from firth.tables.autoencoder_training import active_dimensions
from firth.training.gradient_loop import token_shares
from firth.training.network_options import UserOptions, hidden_sizes_of
from firth.training.row_batches import RowTraining
from firth.training.weight_files import with_weights

USERS = 1024  # that go through the network at once
TOLD = 0.8  # of what held-out users had; the rest is to be told from it


def new_net(method: UserOptions, items: int) -> UserNet:
    return UserNet(items, hidden_sizes_of(method), method.dim, variational=hasattr(method, "beta"))


def baskets_of(rows: Rows) -> Baskets:
    """Weights don't count, only what was used (Liang et al. 2018, section 4.1)."""
    items = torch.from_numpy(rows.columns.astype(np.int64))
    return Baskets(torch.from_numpy(rows.starts), items, torch.ones(len(items)))


def some_users(rows: Rows, users: NDArray[np.int64]) -> Rows:
    """The entries of these users."""
    sizes = np.diff(rows.starts)[users]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(rows.starts[users] - starts[:-1], sizes) + np.arange(starts[-1])
    return Rows(starts, rows.columns[places], rows.values[places])


class UserModel(RecommenderModel):
    """Users with the codes of what they had; `tables["items"]` are the last layer's rows, one an item.

    A user's row for `scores` is the code. A new user's is made of the history alone, without any retraining.
    """

    method: UserOptions

    def __init__(
        self,
        method: UserOptions,
        net: UserNet,
        rows: Mapping[str, NDArray[Any]],
        seen: Histories,
        keys: Mapping[str, Sequence[str]],
        training: Mapping[str, Any],
    ) -> None:
        self.net = net.cpu().eval()
        super().__init__(method, {**rows, "items": net.last.weight.detach().numpy()}, seen, keys, training)
        self.users = Vectors(self._names("users"), rows["users"], missing=self._new_user)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {"items": self.items, "users": self.users}

    @torch.inference_mode()
    def coded(self, entries: Rows) -> tuple[Matrix, Matrix]:
        """Means and deviations of users with these items."""
        means, deviations = np.zeros((2, len(entries.starts) - 1, self.method.dim), np.float32)
        for first in range(0, len(means), USERS):
            users = np.arange(first, min(first + USERS, len(means)))
            code = self.net.encode(baskets_of(some_users(entries, users)))
            means[users] = code.mean.numpy()
            deviations[users] = 0.0 if code.logvar is None else torch.exp(0.5 * code.logvar).numpy()
        return means, deviations

    def fold(self, entries: Rows) -> Matrix:
        return self.coded(entries)[0]

    @torch.inference_mode()
    def scores(self, users: Matrix) -> Matrix:
        return finite_rows(self.net.decode(torch.from_numpy(np.array(users, np.float32))).numpy(), "User")

    def parts(self) -> Parts:
        arrays: dict[str, NDArray[Any]] = {
            **{name: array for name, array in self._rows.items() if name != "items"},
            **{NET + name: tensor.numpy() for name, tensor in self.net.state_dict().items()},
            "starts": self.seen.starts,
            "seen": self.seen.items,
        }
        return Parts(arrays, {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> UserModel:
        assert isinstance(method, UserOptions)
        items = len(parts.arrays[NET + "last.weight"])
        net = with_weights(lambda: new_net(method, items), parts.arrays, NET.__add__)
        names = ("users", "deviations") if hasattr(method, "beta") else ("users",)
        check_arrays(parts.arrays, **dict.fromkeys(names, f"float users {method.dim}"), starts="int64 users+1")
        seen = stored_histories(parts, items)
        rows = {name: parts.arrays[name] for name in names}
        return cls(method, net, rows, seen, StoredKeys(parts), training)


class MultVAEModel(UserModel):
    """Users whose codes are distributions: `tables["deviations"]` tells how unsure each number is."""

    @cached_property
    def deviations(self) -> Vectors:
        return Vectors(self._names("users"), self._rows["deviations"], missing=self._new_user)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {**super().tables, "deviations": self.deviations}

    def uncertainty(self, histories: Sequence[History]) -> Matrix:
        """The deviations of users with these histories; who had more is surer."""
        return self.coded(self.entries(histories))[1]

    def __repr__(self) -> str:
        return f"{super().__repr__()}, codes of {self.method.dim}"


class UserTraining(RowTraining):
    """What users had, told again from a part of it."""

    baseline = "that of recommending by popularity alone"

    def __init__(self, method: UserOptions, net: UserNet, rows: Rows, fingerprint: str, run: Run) -> None:
        self.entries = rows
        super().__init__(method, net, len(rows.starts) - 1, fingerprint, run)

    @property
    def user_net(self) -> UserNet:
        assert isinstance(self.net, UserNet)
        return self.net

    def load(self, what: Any) -> Any:
        return list(baskets_of(some_users(self.entries, what)))

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        baskets, net = Baskets(*tensors), self.user_net
        method: Any = self.method
        code = net.encode(baskets, method.dropout)
        if code.logvar is None:
            return net.negative_log_likelihood(net.decode(code.mean), baskets).sum()
        losses = net.negative_log_likelihood(net.decode(sample_code(code, torch.randn_like(code.mean))), baskets)
        loss: Tensor = losses.sum() + method.beta * self.annealed(method.kl_annealing) * divergence_loss(code)
        return loss

    def baseline_loss(self) -> float | None:
        """−log p of the same items where p is the share of users who have an item."""
        _, rest = parted(some_users(self.entries, self.held_out), self.run.seed)
        if not len(rest.columns):
            return None
        shares = token_shares(some_users(self.entries, self.rows).columns, self.user_net.last.out_features)
        return float(-np.log(shares)[rest.columns].mean())

    def evaluate(self, most: int) -> dict[str, float]:
        """−log p of an item that a held-out user had beside those that are told of them."""
        total = items = 0.0
        for users in self.measured_rows(most):
            told, rest = parted(some_users(self.entries, users), self.run.seed)
            code = self.user_net.encode(Baskets(*(part.to(self.device) for part in baskets_of(told))))
            wanted = Baskets(*(part.to(self.device) for part in baskets_of(rest)))
            total += float(self.user_net.negative_log_likelihood(self.user_net.decode(code.mean), wanted).sum())
            items += len(wanted.items)
        return {"held_out_loss": total / items} if items else {}


def parted(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Four fifths of each user's items and the rest; of a user with one item, all is told."""
    sizes = np.diff(rows.starts)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((np.random.default_rng(seed).random(len(owner)), owner))
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner)) - np.repeat(rows.starts[:-1], sizes)
    told = place < np.maximum(1, np.ceil(TOLD * sizes))[owner]
    return tuple(  # type: ignore[return-value]
        Rows(
            np.concatenate([[0], np.cumsum(np.bincount(owner[part], minlength=len(sizes)))]),
            rows.columns[part],
            rows.values[part],
        )
        for part in (told, ~told)
    )


def learn(method: Any, data: Any, run: Run, start: Model | None) -> UserModel:
    """Network and codes."""
    name = type(method).__name__
    if start is not None:
        raise FirthError(
            "unsupported_start",
            "{name} can't go on from a model; its recommend_for and fold_in take new users as they are.",
            name=name,
        )
    began = time.monotonic()
    ratings = take_ratings(method, data)
    rows = ratings.summed()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = new_net(method, len(ratings.items))
    reading = time.monotonic() - began
    figures = UserTraining(method, net, rows, ratings.fingerprint(), run).go() | {
        "users": len(ratings.users),
        "items": len(ratings.items),
        "pairs": len(rows.columns),
        "reading_seconds": reading,
        "seed": run.seed,
    }
    kind: type[UserModel] = type(method).model
    blank = {"users": np.zeros((len(ratings.users), method.dim), np.float32)}
    seen = Histories(rows.starts, rows.columns)
    means, deviations = UserModel(method, net, blank, seen, keys_of(ratings), {}).coded(rows)
    known = {"users": means}
    if hasattr(method, "beta"):
        known["deviations"] = deviations
        figures["active"] = active_dimensions(means, deviations, "users", run)
    return kind(method, net, known, seen, keys_of(ratings), figures)
