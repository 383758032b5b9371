"""Ratings in two parts, one to learn from and one to be judged by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.data.interactions import Interactions

WAYS = ("random", "last", "time", "user")


class Split(NamedTuple):
    """`history` is what is told about the users of `test` who are not in `train` (by user), else None."""

    train: Interactions
    test: Interactions
    history: Interactions | None = None


def split(ratings: Interactions, by: str = "random", share: float = 0.2, seed: int = 1) -> Split:
    """Keeps a part of the pairs (user, item) to test on; all events of a pair fall on one side.

    - "random": this share of all pairs, drawn;
    - "last": of each user the item met last (leave one out), drawn where times are unknown; users with one item only
      stay whole;
    - "time": the pairs that are first met in the last `share` of the events; what happens to older pairs then is
      forgotten, for nothing may be learned from the future;
    - "user": this share of the users, drawn, is left out of `train`; four fifths of their pairs are told (`history`),
      to fold them in, and the rest is the test (Liang et al. 2018). Users with one item only are not drawn.
    """
    if by not in WAYS:
        raise FirthError("invalid_value", "split is by one of {choices}; got {got!r}.", choices=", ".join(WAYS), got=by)
    if not 0 < share < 1:
        raise FirthError(
            "invalid_value", "{option} must lie between 0 and 1; got {got}.", option="split.share", got=share
        )
    random = np.random.default_rng(seed)
    pair, owner, first = pairs_of(ratings)
    if by == "time":
        return split_time(ratings, pair, first, share)
    if by == "user":
        return split_users(ratings, pair, owner, share, random)
    if by == "random":
        held = random.random(len(owner)) < share
    else:
        # Events stand in the order of time; of equal times (a day's, say) the last in the source is the last.
        held = last_of_each(owner, random.random(len(owner)) if ratings.times is None else first)
    return Split(ratings.take(~held[pair]), ratings.take(held[pair]))


def pairs_of(ratings: Interactions) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """The pair of each event; the user of each pair, and the event that it is first met in."""
    owners = ratings.user_ids()
    codes = owners * len(ratings.items) + ratings.item_ids
    _, first, pair = np.unique(codes, return_index=True, return_inverse=True)  # the first is the earliest
    return pair.astype(np.int64), owners[first], first


def last_of_each(owner: NDArray[np.int64], when: NDArray[Any]) -> NDArray[np.bool_]:
    """Each user's pair that is latest, of users with at least two; owners ascend."""
    order = np.lexsort((when, owner))
    last = order[np.append(np.diff(owner) > 0, True)] if len(owner) else order
    held = np.zeros(len(owner), dtype=bool)
    held[last] = np.bincount(owner)[owner[last]] > 1
    return held


def split_time(ratings: Interactions, pair: NDArray[np.int64], first: NDArray[np.intp], share: float) -> Split:
    if ratings.times is None:
        raise FirthError(
            "missing_option",
            "A split by time needs times; give the data a time column, or split by random, last or user.",
        )
    when = np.sort(ratings.times)
    cut = when[min(len(when) - 1, len(when) - round(len(when) * share))] if len(when) else 0.0
    late = ratings.times >= cut
    new = late[first][pair]  # pairs first met after the cut
    return Split(ratings.take(~late), ratings.take(new))


def split_users(
    ratings: Interactions, pair: NDArray[np.int64], owner: NDArray[np.int64], share: float, random: np.random.Generator
) -> Split:
    told = 0.8
    sizes = np.bincount(owner, minlength=len(ratings.users))
    drawn = (random.random(len(sizes)) < share) & (sizes > 1)
    place = np.empty(len(owner), dtype=np.int64)  # of each pair in a random order of its user's
    order = np.lexsort((random.random(len(owner)), owner))
    place[order] = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    tested = drawn[owner] & (place < np.maximum(1, np.rint(sizes[owner] * (1 - told))))
    history = drawn[owner] & ~tested
    train = ratings.take(~drawn[ratings.user_ids()])
    return Split(train, ratings.take(tested[pair]), ratings.take(history[pair]))
