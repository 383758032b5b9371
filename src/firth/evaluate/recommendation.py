"""How well a model recommends what users turned to later: recall, NDCG and MAP among the first k, and rating errors.

For a user with relevant items R (of the test, less what the user had before) and the ranking i₁, i₂, … of all items the
user did not have:

    recall@k = |{i₁ … i_k} ∩ R| / min(k, |R|)                                  (Liang et al. 2018)
    NDCG@k   = Σ_{n ≤ k, i_n ∈ R} 1 / log₂(n + 1)  /  Σ_{n ≤ min(k, |R|)} 1 / log₂(n + 1)
    MAP@k    = Σ_{n ≤ k, i_n ∈ R} |{i₁ … i_n} ∩ R| / n  /  min(k, |R|)

and the mean over users.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Histories, History, Rates, Recommends
from firth.core.report import Report, Silence
from firth.core.vectors import Matrix, top_rows
from firth.evaluate.baselines import Scorer, item_knn, popularity
from firth.evaluate.layout import html_table, number_or_none, text_table

METRICS = ("recall@20", "ndcg@100", "map@10")
BATCH_BYTES = 64 << 20  # scores of one batch of users
Tests = Mapping[str, History]


@dataclass(frozen=True)
class RecommendationResult:
    """Means over the `users` that could be judged, for the model (the first of `scores`) and the baselines.

    `unknown_users` are neither in the model nor have a history; `nothing_new` had all their test items before;
    `unknown_items` is how many pairs of the test hold an item that the model lacks: they count as missed.
    """

    scores: Mapping[str, Mapping[str, float]]
    users: int
    unknown_users: int
    nothing_new: int
    unknown_items: int

    def __getitem__(self, metric: str) -> float:
        """The model's."""
        return next(iter(self.scores.values()))[metric]

    def to_json(self) -> dict[str, Any]:
        scores = {name: {m: number_or_none(value) for m, value in row.items()} for name, row in self.scores.items()}
        counts = ("users", "unknown_users", "nothing_new", "unknown_items")
        return {"scores": scores, **{name: getattr(self, name) for name in counts}}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        metrics = list(next(iter(self.scores.values())))
        return ["", *metrics], [[name, *(f"{row[m]:.4f}" for m in metrics)] for name, row in self.scores.items()]

    def _counts(self) -> str:
        skipped = f"{self.unknown_users:,} unknown, {self.nothing_new:,} with nothing new"
        return f"{self.users:,} users ({skipped} left out); {self.unknown_items:,} test items unknown to the model"

    def __str__(self) -> str:
        if not self.users:
            return f"Nothing can be measured, for no user had anything new to find: {self._counts()}."
        header, rows = self._table()
        return f"{text_table(header, rows, numbers=range(1, len(header)))}\n{self._counts()}"

    def _repr_html_(self) -> str:
        header, rows = self._table()
        return html_table(header, rows, numbers=range(1, len(header))) + f"<p>{self._counts()}</p>"


class Case(NamedTuple):
    """A user to be judged: what they had and what they turned to, as rows of the items."""

    user: str
    had: list[int]
    relevant: list[int]
    unknown: int  # relevant items that the model lacks
    told: History | None  # what to fold the user in from; None: as the model knows them


Ranker = Callable[[Sequence[Case]], Matrix]  # users -> users × items


def recommendations(
    model: Recommends,
    test: Any,
    *,
    history: Any = None,
    metrics: Sequence[str] = METRICS,
    baselines: bool = True,
    report: Report = Silence(),
) -> RecommendationResult:
    """Ranks all items for the users of `test` and looks where their test items are.

    `test` and `history` are Ratings, or items by user. Users the model knows are taken as it knows them, others are
    folded in from their `history`. The baselines have the same to go by: popularity, the items most used; item-kNN,
    those most like (by cosine) the items that the user had; `baselines=False` leaves both out. `report` shows the
    progress of item-kNN, which takes the longest.
    """
    if not isinstance(model, Recommends):
        raise FirthError(
            "unsupported_model",
            "{model!r} does not recommend; ALS, BPR, RatingFactors and Item2Vec models do.",
            model=model,
        )
    cut = [parsed(metric) for metric in metrics]
    cases, left_out = cases_of(model, by_user(test), by_user(history) if history is not None else {})
    size = len(items_of(model))
    rankers: dict[str, Ranker] = {type(getattr(model, "method", model)).__name__: partial(model_scores, model)}
    if baselines:
        rankers["popularity"] = partial(history_scores, popularity(model.seen, size))
        rankers["item-kNN"] = partial(history_scores, item_knn(model.seen, size, report=report))
    means = {name: mean_metrics(ranker, cases, metrics, cut, size) for name, ranker in rankers.items()}
    unknown = sum(case.unknown for case in cases)
    return RecommendationResult(means, len(cases), left_out["unknown"], left_out["nothing new"], unknown)


def items_of(model: Any) -> Mapping[str, int]:
    rows: Mapping[str, int] = model.tables["items"].rows
    return rows


def by_user(data: Any) -> Tests:
    found = data.histories() if hasattr(data, "histories") else data
    if not isinstance(found, Mapping):
        raise FirthError("invalid_type", "A test is Ratings or items by user; got {got}.", got=type(data).__name__)
    return found


def parsed(metric: str) -> tuple[str, int]:
    found = re.fullmatch(r"(recall|ndcg|map)@([1-9][0-9]*)", metric)
    if not found:
        raise FirthError("invalid_value", "A metric is recall@k, ndcg@k or map@k; got {got!r}.", got=metric)
    return found[1], int(found[2])


def cases_of(model: Any, test: Tests, history: Tests) -> tuple[list[Case], dict[str, int]]:
    users, items, seen = model.tables["users"].rows, items_of(model), model.seen
    if not isinstance(model, Rates):  # to which 0 is a rating
        test, history = used(test), used(history)
    cases, left_out = [], {"unknown": 0, "nothing new": 0}
    for user, wanted in test.items():
        known = user in users
        if not known and user not in history:
            left_out["unknown"] += 1
            continue
        told = None if known else history[user]
        if isinstance(told, Mapping):
            told = {item: weight for item, weight in told.items() if item in items}
        elif told is not None:
            told = [item for item in told if item in items]
        had = items_of_user(seen, users[user]) if known else []
        had = sorted({*had, *(items[item] for item in history.get(user, ()) if item in items)})
        rows = {items.get(item, -1 - place) for place, item in enumerate(wanted)}
        rows -= set(had)
        if not rows:
            left_out["nothing new"] += 1
            continue
        relevant = sorted(row for row in rows if row >= 0)
        cases.append(Case(user, had, relevant, len(rows) - len(relevant), told))
    return cases, left_out


def used(data: Tests) -> Tests:
    """Without items of weight 0: they were not used."""
    return {
        user: {item: weight for item, weight in items.items() if weight} if isinstance(items, Mapping) else items
        for user, items in data.items()
    }


def items_of_user(seen: Histories, row: int) -> list[int]:
    found: list[int] = seen.items[seen.starts[row] : seen.starts[row + 1]].tolist()
    return found


def model_scores(model: Any, cases: Sequence[Case]) -> Matrix:
    known = np.array([case.told is None for case in cases])
    old = model.user_rows([case.user for case in cases if case.told is None])
    new = model.fold_in([case.told for case in cases if case.told is not None])
    rows = np.empty((len(cases), new.shape[1]), dtype=np.float32)
    rows[known], rows[~known] = old, new
    scores: Matrix = model.scores(rows)
    return scores


def history_scores(scorer: Scorer, cases: Sequence[Case]) -> Matrix:
    return scorer([case.had for case in cases])


def mean_metrics(
    ranker: Ranker,
    cases: Sequence[Case],
    metrics: Sequence[str],
    cut: Sequence[tuple[str, int]],
    items: int,
) -> dict[str, float]:
    found = case_metrics(ranker, cases, cut, items)
    means = found.mean(axis=0) if len(found) else np.full(len(cut), math.nan)
    return dict(zip(metrics, means.tolist(), strict=True))


def case_metrics(
    ranker: Ranker, cases: Sequence[Case], cut: Sequence[tuple[str, int]], items: int
) -> NDArray[np.float64]:
    """users × metrics."""
    most, found = max(k for _, k in cut), []
    batch = max(1, BATCH_BYTES // (4 * max(1, items)))
    for start in range(0, len(cases), batch):
        part = cases[start : start + batch]
        scores = np.array(ranker(part), dtype=np.float32)
        for case, row in zip(part, scores, strict=True):
            row[case.had] = -np.inf
            ranking = top_rows(row, min(most, items - len(case.had)))
            found.append(user_metrics(np.isin(ranking, case.relevant), len(case.relevant) + case.unknown, cut))
    return np.array(found).reshape(len(cases), len(cut))


def recommended(model: Recommends, test: Any, metric: str = "ndcg@100") -> dict[str, float]:
    """One metric of each user who could be judged, for comparing models user by user."""
    if not isinstance(model, Recommends):
        raise FirthError(
            "unsupported_model",
            "{model!r} does not recommend; ALS, BPR, RatingFactors and Item2Vec models do.",
            model=model,
        )
    cases, _ = cases_of(model, by_user(test), {})
    found = case_metrics(partial(model_scores, model), cases, [parsed(metric)], len(items_of(model)))
    return {case.user: float(value) for case, value in zip(cases, found[:, 0], strict=True)}


def user_metrics(hits: NDArray[np.bool_], relevant: int, cut: Sequence[tuple[str, int]]) -> list[float]:
    """Metrics of a ranking that hits where it says so."""
    places = np.arange(1, len(hits) + 1)
    gains, precisions = hits / np.log2(places + 1), hits * np.cumsum(hits) / places
    values = []
    for name, k in cut:
        most = min(k, relevant)
        if name == "recall":
            values.append(hits[:k].sum() / most)
        elif name == "ndcg":
            values.append(gains[:k].sum() / (1 / np.log2(np.arange(2, most + 2))).sum())
        else:
            values.append(precisions[:k].sum() / most)
    return [float(value) for value in values]


@dataclass(frozen=True)
class RatingResult:
    """Errors over the `pairs` of the test whose user and item the model knows; `skipped` are the others. Beside them
    those of always guessing the mean of the training ratings."""

    rmse: float
    mae: float
    mean_rmse: float
    mean_mae: float
    pairs: int
    skipped: int

    def to_json(self) -> dict[str, Any]:
        return {name: number_or_none(value) for name, value in vars(self).items()}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [["model", self.rmse, self.mae], ["the mean", self.mean_rmse, self.mean_mae]]
        return ["", "RMSE", "MAE"], [[str(name), f"{rmse:.4f}", f"{mae:.4f}"] for name, rmse, mae in rows]

    def __str__(self) -> str:
        table = text_table(*self._table(), numbers=(1, 2))
        return f"{table}\n{self.pairs:,} ratings ({self.skipped:,} of unknown users or items left out)"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=(1, 2))


def rating_errors(model: Rates, test: Any) -> RatingResult:
    """Root mean square and mean absolute error of predicted ratings; `test` is Ratings, or ratings by item by user."""
    if not isinstance(model, Rates):
        raise FirthError(
            "unsupported_model", "{model!r} does not predict ratings; RatingFactors models do.", model=model
        )
    tables: Any = model.tables  # type: ignore[attr-defined]  # as all that knows users and items has them
    given = {user: rated for user, rated in by_user(test).items() if isinstance(rated, Mapping)}
    triples = [(user, item, value) for user, rated in given.items() for item, value in rated.items()]
    known = [(u, i, r) for u, i, r in triples if u in tables["users"] and i in tables["items"]]
    if not known:
        raise FirthError(
            "empty_data", "The model knows none of the {n_triples:,} rated pairs of the test.", n_triples=len(triples)
        )
    users, items, values = zip(*known, strict=True)
    off = model.rate(users, items).astype(np.float64) - np.array(values)
    plain = model.mean - np.array(values)
    return RatingResult(
        rmse=root_mean_square(off),
        mae=float(np.abs(off).mean()),
        mean_rmse=root_mean_square(plain),
        mean_mae=float(np.abs(plain).mean()),
        pairs=len(known),
        skipped=len(triples) - len(known),
    )


def root_mean_square(values: NDArray[np.float64]) -> float:
    return math.sqrt((values**2).mean())
