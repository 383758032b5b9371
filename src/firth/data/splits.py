"""Splits interactions into training and test sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.data.interactions import Interactions

SPLITS = ("random", "last", "time", "user")
HISTORY_SHARE = 0.8  # of the pairs of a held-out user


class Split(NamedTuple):
    """Training and test interactions. With "user", `history` is the known part of the test users' interactions."""

    train: Interactions
    test: Interactions
    history: Interactions | None = None


def split(ratings: Interactions, by: str = "random", share: float = 0.2, seed: int = 1) -> Split:
    """Hold out a part of the (user, item) pairs for testing; all events of a pair are on the same side.

    - "random": a random share of all pairs;
    - "last": each user's last item (leave one out), a random one if there are no times; users with a single item stay
      in the training set;
    - "time": the pairs that first occur in the last `share` of the events; later events of older pairs are dropped, so
      that nothing is learned from the future;
    - "user": a random share of the users is removed from `train`; four fifths of their pairs are their `history`, for
      fold-in, and the rest is the test set (Liang et al. 2018). Users with a single item are not selected.
    """
    check_choice("split.by", by, SPLITS)
    if not 0 < share < 1:
        raise FirthError(
            "invalid_value", "{option} must be between 0 and 1; got {got}.", option="split.share", got=share
        )
    random = np.random.default_rng(seed)
    pair_ids, pair_users, first = pairs_of(ratings)
    if by == "time":
        return split_time(ratings, pair_ids, first, share)
    if by == "user":
        return split_users(ratings, pair_ids, pair_users, share, random)
    if by == "random":
        held_out = random.random(len(pair_users)) < share
    else:
        # Events are in time order. Among equal times (dates, for example), the last one in the source counts.
        held_out = last_of_each(pair_users, random.random(len(pair_users)) if ratings.times is None else first)
    return Split(ratings.take(~held_out[pair_ids]), ratings.take(held_out[pair_ids]))


def pairs_of(ratings: Interactions) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Return the pair number of each event, and the user and the first event of each pair."""
    owners = ratings.user_ids()
    codes = owners * len(ratings.items) + ratings.item_ids
    _, first, pair_ids = np.unique(codes, return_index=True, return_inverse=True)  # the first is the earliest
    return pair_ids.astype(np.int64), owners[first], first


def last_of_each(pair_users: NDArray[np.int64], times: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the last pair of each user with at least two pairs; users must be in ascending order."""
    order = np.lexsort((times, pair_users))
    last = order[np.append(np.diff(pair_users) > 0, True)] if len(pair_users) else order
    held_out = np.zeros(len(pair_users), dtype=bool)
    held_out[last] = np.bincount(pair_users)[pair_users[last]] > 1
    return held_out


def split_time(ratings: Interactions, pair_ids: NDArray[np.int64], first: NDArray[np.intp], share: float) -> Split:
    """Split by time: each user's latest interactions are held out."""
    if ratings.times is None:
        raise FirthError(
            "missing_option",
            "split.by=time needs a {option} column in the data. Add one, or split by random, last or user.",
            option="time",
        )
    times = np.sort(ratings.times)
    cut = times[min(len(times) - 1, len(times) - round(len(times) * share))] if len(times) else 0.0
    is_late = ratings.times >= cut
    is_new_pair = is_late[first][pair_ids]  # pairs that first occur after the cut
    return Split(ratings.take(~is_late), ratings.take(is_new_pair))


def split_users(
    ratings: Interactions,
    pair_ids: NDArray[np.int64],
    pair_users: NDArray[np.int64],
    share: float,
    random: np.random.Generator,
) -> Split:
    """Split by user: held-out users have a history to fold in and items to predict."""
    sizes = np.bincount(pair_users, minlength=len(ratings.users))
    is_test_user = (random.random(len(sizes)) < share) & (sizes > 1)
    rank_in_user = np.empty(len(pair_users), dtype=np.int64)  # rank of each pair in a random order of its user's pairs
    order = np.lexsort((random.random(len(pair_users)), pair_users))
    rank_in_user[order] = np.arange(len(pair_users)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_test = is_test_user[pair_users] & (
        rank_in_user < np.maximum(1, np.rint(sizes[pair_users] * (1 - HISTORY_SHARE)))
    )
    history = is_test_user[pair_users] & ~is_test
    train = ratings.take(~is_test_user[ratings.user_ids()])
    return Split(train, ratings.take(is_test[pair_ids]), ratings.take(history[pair_ids]))
