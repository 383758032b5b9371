"""Training and model of `MultVAE` and `MultDAE`: autoencoders of user histories."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Model, Parts
from firth.core.run import Run
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Hits, Matrix, Vectors, top_rows
from firth.data.table import Table
from firth.kernels.sparse import CSRMatrix
from firth.nets.autoencoder import divergence_loss, sample_code
from firth.nets.user_autoencoder import Baskets, UserNet, negative_log_likelihood
from firth.recommenders.recommender_model import (
    KEYS,
    RecommenderModel,
    StoredKeys,
    as_interactions,
    keys_of,
    stored_histories,
)
from firth.tables.autoencoder_model import NET
from firth.tables.autoencoder_training import active_dimensions
from firth.training.gradient_loop import token_shares
from firth.training.network_options import UserOptions, Variational, hidden_sizes_of
from firth.training.row_batches import RowTraining
from firth.training.weight_files import with_weights

USERS_PER_BATCH = 1024  # of inference
INPUT_SHARE = 0.8  # of a held-out user's items; the rest is to be predicted

Coder = TypeVar("Coder", bound="UserModel")


def new_net(method: UserOptions, items: int) -> UserNet:
    """Return an untrained network."""
    return UserNet(items, hidden_sizes_of(method), method.dim, variational=isinstance(method, Variational))


def baskets_of(rows: CSRMatrix) -> Baskets:
    """Return binarized histories: weights are ignored (Liang et al. 2018, section 4.1)."""
    items = torch.from_numpy(rows.columns.astype(np.int64))
    return Baskets(torch.from_numpy(rows.starts), items, torch.ones(len(items)))


def select_users(rows: CSRMatrix, users: NDArray[np.int64]) -> CSRMatrix:
    """Return the entries of these users."""
    sizes = np.diff(rows.starts)[users]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.repeat(rows.starts[users] - starts[:-1], sizes) + np.arange(starts[-1])
    return CSRMatrix(starts, rows.columns[positions], rows.values[positions])


class UserModel(RecommenderModel):
    """Users with the codes of their histories; `tables["items"]` has the last layer's weights, one row per item.

    The user rows of `scores` are codes. The encoder gives the code of a new user without training.
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
        """The item vectors and the user codes."""
        return {"items": self.items, "users": self.users}

    @torch.inference_mode()
    def coded(self, entries: CSRMatrix) -> tuple[Matrix, Matrix]:
        """Return the means and standard deviations of the codes of users with these items."""
        means, deviations = np.zeros((2, len(entries.starts) - 1, self.method.dim), np.float32)
        for first in range(0, len(means), USERS_PER_BATCH):
            users = np.arange(first, min(first + USERS_PER_BATCH, len(means)))
            code = self.net.encode(baskets_of(select_users(entries, users)))
            means[users] = code.mean.numpy()
            deviations[users] = 0.0 if code.logvar is None else torch.exp(0.5 * code.logvar).numpy()
        return means, deviations

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the codes of users with these items."""
        return self.coded(entries)[0]

    @torch.inference_mode()
    def scores(self, users: Matrix) -> Matrix:
        """Return the logits of all items, one row per code."""
        return finite_rows(self.net.decode(torch.from_numpy(np.array(users, np.float32))).numpy(), "User")

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        arrays: dict[str, NDArray[Any]] = {
            **{name: array for name, array in self._rows.items() if name != "items"},
            **{NET + name: tensor.numpy() for name, tensor in self.net.state_dict().items()},
            "starts": self.seen.starts,
            "seen": self.seen.items,
        }
        return Parts(arrays, {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> UserModel:
        """Return the saved model, checked."""
        assert isinstance(method, UserOptions)
        items = len(parts.arrays[NET + "last.weight"])
        net = with_weights(lambda: new_net(method, items), parts.arrays, NET.__add__)
        names = ("users", "deviations") if isinstance(method, Variational) else ("users",)
        check_arrays(parts.arrays, **dict.fromkeys(names, f"float users {method.dim}"), starts="int64 users+1")
        seen = stored_histories(parts, items)
        rows = {name: parts.arrays[name] for name in names}
        return cls(method, net, rows, seen, StoredKeys(parts), training)


class MultVAEModel(UserModel):
    """Users whose codes are distributions; `tables["deviations"]` has their standard deviations."""

    @cached_property
    def deviations(self) -> Vectors:
        """The standard deviations of the user codes."""
        return Vectors(self._names("users"), self._rows["deviations"], missing=self._new_user)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The item vectors, the user codes and their standard deviations."""
        return {**super().tables, "deviations": self.deviations}

    def uncertainty(self, histories: Sequence[History]) -> Matrix:
        """Return the standard deviations of the codes of these histories; longer histories have smaller ones."""
        return self.coded(self.entries(histories))[1]

    def recommend(self, user: str, k: int = 10, *, seen: bool = False, explore: float = 0.0, seed: int = 1) -> Hits:
        """Return the `k` best items for a user of the training data; with `seen`, including items of the history.

        With `explore`, the code is drawn from the user's distribution, with its standard deviations times `explore`:
        the less is known of a user, the more the items differ from seed to seed (Thompson sampling).
        """
        row = self.users.row(user)
        history = self.seen.items[self.seen.starts[row] : self.seen.starts[row + 1]].tolist()
        code = explored(self._rows["users"][[row]], self._rows["deviations"][[row]], explore, [seed, *history])
        return self._best(code, [] if seen else history, k)

    def recommend_for(
        self, history: History, k: int = 10, *, seen: bool = False, explore: float = 0.0, seed: int = 1
    ) -> Hits:
        """Return the `k` best items for a user with this history, who need not be in the training data.

        `explore` is that of `recommend`.
        """
        history = history if isinstance(history, Mapping) else list(history)
        entries = self.entries([history])
        code = explored(*self.coded(entries), explore, [seed, *entries.columns.tolist()])
        return self._best(code, [] if seen else [self.items.rows[item] for item in history if item in self.items], k)

    @torch.inference_mode()
    def sample(self, n: int = 1, *, seed: int = 1, noise: bool = True, prior: bool = False) -> Table:
        """Return the interactions of `n` synthetic users, as a table with the columns user and item.

        A user has a code, the number of items of a random user of the training data, and so many different items,
        drawn with the probabilities that the decoder gives for the code. Without `noise` they are the most probable
        ones. Codes are drawn from the mixture of the training users' distributions, or with `prior` from N(0, 1).
        """
        if n < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="n", got=n)
        random = np.random.default_rng(seed)
        codes = random.standard_normal((n, self.method.dim)).astype(np.float32)
        like = random.integers(len(self.users), size=n)
        if not prior:
            codes = self._rows["users"][like] + self._rows["deviations"][like] * codes
        names, items, keys = list[str](), list[str](), self.items.keys
        for first in range(0, n, USERS_PER_BATCH):
            scores = self.scores(codes[first : first + USERS_PER_BATCH])
            if noise:  # the highest sums with Gumbel noise are a sample without replacement (Kool et al. 2019)
                scores = scores + random.gumbel(size=scores.shape).astype(np.float32)
            for number, row in enumerate(scores, first):
                size = int(self.seen.starts[like[number] + 1] - self.seen.starts[like[number]])
                names += [f"synthetic {number + 1}"] * size
                items += [keys[item] for item in top_rows(row, size)]
        return Table({"user": names, "item": items})

    def __repr__(self) -> str:
        return f"{super().__repr__()}, codes of {self.method.dim}"


def explored(means: Matrix, deviations: Matrix, explore: float, seed: Sequence[int]) -> Matrix:
    """Return codes drawn from normal distributions with their deviations times `explore`; 0 gives the means.

    The seed includes the history, or a seed would move all users in the same direction.
    """
    if not 0 <= explore < np.inf:
        raise FirthError(
            "invalid_value", "{option} must be at least {minimum}; got {got}.", option="explore", minimum=0, got=explore
        )
    noise = np.random.default_rng(seed).standard_normal(means.shape).astype(np.float32)
    return means + np.float32(explore) * deviations * noise


class UserTraining(RowTraining):
    """Reconstruct user histories from a part of them."""

    baseline = "the loss of recommending by popularity"

    def __init__(self, method: UserOptions, net: nn.Module, rows: CSRMatrix, fingerprint: str, run: Run) -> None:
        self.entries = rows
        super().__init__(method, net, len(rows.starts) - 1, fingerprint, run)

    @property
    def user_net(self) -> UserNet:
        """The network."""
        assert isinstance(self.net, UserNet)
        return self.net

    def load(self, users: Any) -> Any:
        """Return the histories of these users as tensors."""
        return list(baskets_of(select_users(self.entries, users)))

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of the users of a batch."""
        baskets, net = Baskets(*tensors), self.user_net
        method = self.method
        code = net.encode(baskets, method.dropout)
        if not isinstance(method, Variational):
            return negative_log_likelihood(net.decode(code.mean), baskets).sum()
        losses = negative_log_likelihood(net.decode(sample_code(code, torch.randn_like(code.mean))), baskets)
        loss: Tensor = losses.sum() + method.beta * self.annealed(method.kl_annealing) * divergence_loss(code)
        return loss

    def baseline_loss(self) -> float | None:
        """Return −log p of the held-out items, where p is the smoothed frequency of an item."""
        _, held_out_items = split_histories(select_users(self.entries, self.held_out), self.run.seed)
        if not len(held_out_items.columns):
            return None
        items = 1 + int(self.entries.columns.max())
        shares = token_shares(select_users(self.entries, self.rows).columns, items)
        return float(-np.log(shares)[held_out_items.columns].mean())

    def logits(self, users: NDArray[np.int64], inputs: CSRMatrix) -> Tensor:
        """Return the logits of held-out users with these items."""
        code = self.user_net.encode(Baskets(*(tensor.to(self.device) for tensor in baskets_of(inputs))))
        return self.user_net.decode(code.mean)

    def evaluate(self, most: int) -> dict[str, float]:
        """Return the mean −log p of the hidden items of held-out users, given the rest of their history."""
        total = items = 0.0
        for users in self.measured_rows(most):
            inputs, held_out_items = split_histories(select_users(self.entries, users), self.run.seed)
            targets = Baskets(*(tensor.to(self.device) for tensor in baskets_of(held_out_items)))
            total += float(negative_log_likelihood(self.logits(users, inputs), targets).sum())
            items += len(targets.items)
        return {"held_out_loss": total / items} if items else {}


def split_histories(rows: CSRMatrix, seed: int) -> tuple[CSRMatrix, CSRMatrix]:
    """Split each history at random into input items (`INPUT_SHARE`, at least one) and the rest."""
    sizes = np.diff(rows.starts)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((np.random.default_rng(seed).random(len(owners)), owners))
    ranks = np.empty(len(owners), np.int64)
    ranks[order] = np.arange(len(owners)) - np.repeat(rows.starts[:-1], sizes)
    is_input = ranks < np.maximum(1, np.ceil(INPUT_SHARE * sizes))[owners]
    return tuple(  # type: ignore[return-value]
        CSRMatrix(
            np.concatenate([[0], np.cumsum(np.bincount(owners[selected], minlength=len(sizes)))]),
            rows.columns[selected],
            rows.values[selected],
        )
        for selected in (is_input, ~is_input)
    )


def train_user_autoencoder(
    model_class: type[Coder], method: UserOptions, data: Any, run: Run, start: Model | None
) -> Coder:
    """Train the network and encode all users."""
    name = type(method).__name__
    if start is not None:
        raise FirthError(
            "unsupported_start",
            "{method} cannot continue from a model. Its fold_in and recommend_for handle new users without training.",
            method=name,
        )
    began = time.monotonic()
    interactions = as_interactions(method, data)
    rows = interactions.summed()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = new_net(method, len(interactions.items))
    reading = time.monotonic() - began
    metrics = UserTraining(method, net, rows, interactions.fingerprint(), run).go() | {
        "users": len(interactions.users),
        "items": len(interactions.items),
        "pairs": len(rows.columns),
        "reading_seconds": reading,
        "seed": run.seed,
    }
    blank = {"users": np.zeros((len(interactions.users), method.dim), np.float32)}
    seen = Histories(rows.starts, rows.columns)
    means, deviations = UserModel(method, net, blank, seen, keys_of(interactions), {}).coded(rows)
    arrays = {"users": means}
    if isinstance(method, Variational):
        arrays["deviations"] = deviations
        metrics["active"] = active_dimensions(means, deviations, "users", run)
    return model_class(method, net, arrays, seen, keys_of(interactions), metrics)
