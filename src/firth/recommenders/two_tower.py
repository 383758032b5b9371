"""TwoTower: vectors of users from history and features, of items from identity and features (Covington et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import EXPOSURE, UserOptions, networks

if TYPE_CHECKING:
    from firth.recommenders.two_tower_model import TwoTowerModel


@dataclass(frozen=True, kw_only=True)
class TwoTower(UserOptions):
    """Maximize Σ log p(item | user) with p = softmax(u · v).

    The tower of items computes v from a vector of the item and its features; the tower of users computes u from the
    vectors v of the history and the features of the user. In training some items have no vector of their own, and some
    users no history, so that features suffice for new ones (Volkovs et al. 2017).
    """

    limits: ClassVar[tuple[str, ...]] = (
        "New users and items are only as well described as their features; without any, they are all alike.",
        "A softmax over all items: training time is proportional to their number.",
        EXPOSURE,
    )
    summary: ClassVar[str] = "user and item vectors from histories and features: cold start of new users and items"

    epochs: int = option(100, "passes over the users", low=1)
    dim: int = option(64, "length of the vectors", low=1, high=65536)
    hidden_sizes: str = option("", "sizes of the hidden layers of both towers, such as 128; empty = none")
    cold_start: float = option(
        0.2, "share of the items and users with features that are treated as new in training", low=0, high=1
    )
    half_life: float = option(
        0.0, "time decay: the weight of an event halves every so many seconds before the latest one; 0 = off", low=0
    )

    @classmethod
    def model_class(cls) -> type[TwoTowerModel]:
        with networks():
            from firth.recommenders.two_tower_model import TwoTowerModel
        return TwoTowerModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> TwoTowerModel:
        """Train on `Interactions`, or on anything they accept, with their `user_features` and `item_features`.

        Users and items that have features but no events are part of the model.
        """
        with networks():
            from firth.recommenders.two_tower_training import train_two_towers
        return train_two_towers(self, data, run, start)
