"""Evaluation of recommenders: recall, NDCG and MAP of the first k items, and errors of predicted ratings.

For a user with relevant items R (the test items without those of the user's history) and a ranking i₁, i₂, … of all
items outside the history:

    recall@k = |{i₁ … i_k} ∩ R| / min(k, |R|)                                  (Liang et al. 2018)
    NDCG@k   = Σ_{n ≤ k, i_n ∈ R} 1 / log₂(n + 1)  /  Σ_{n ≤ min(k, |R|)} 1 / log₂(n + 1)
    MAP@k    = Σ_{n ≤ k, i_n ∈ R} |{i₁ … i_n} ∩ R| / n  /  min(k, |R|)

The result is the mean over users.
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
from firth.core.model import HasHistories, Histories, History, Model, Rates, Recommends
from firth.core.notebook import html_lines, html_table
from firth.core.report import Report, Silence
from firth.core.vectors import Matrix, top_rows
from firth.evaluate.baselines import Scorer, item_knn, popularity
from firth.evaluate.layout import number_or_none, text_table

METRICS = ("recall@20", "ndcg@100", "map@10")
BATCH_BYTES = 64 << 20  # scores of one batch of users
Tests = Mapping[str, History]


@dataclass(frozen=True)
class RecommendationResult:
    """Mean metrics over the evaluated `users`, of the model (the first of `scores`) and the baselines.

    `unknown_users` are unseen in training and have no history. `nothing_new` counts users whose test items are all in
    their history. `unknown_items` is the number of test pairs whose item is unseen in training; they count as missed.
    """

    scores: Mapping[str, Mapping[str, float]]
    users: int
    unknown_users: int
    nothing_new: int
    unknown_items: int

    def __getitem__(self, metric: str) -> float:
        """Return a metric of the model."""
        return next(iter(self.scores.values()))[metric]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        scores = {name: {m: number_or_none(value) for m, value in row.items()} for name, row in self.scores.items()}
        counts = ("users", "unknown_users", "nothing_new", "unknown_items")
        return {"scores": scores, **{name: getattr(self, name) for name in counts}}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        metrics = list(next(iter(self.scores.values())))
        return ["", *metrics], [[name, *(f"{row[m]:.4f}" for m in metrics)] for name, row in self.scores.items()]

    def _counts(self) -> str:
        skipped = f"{self.unknown_users:,} unknown, {self.nothing_new:,} with nothing new"
        return f"{self.users:,} users ({skipped} left out); {self.unknown_items:,} test items unseen in training"

    def __str__(self) -> str:
        if not self.users:
            return f"Nothing could be evaluated, because no user has a new test item: {self._counts()}."
        header, rows = self._table()
        return f"{text_table(header, rows, numbers=range(1, len(header)))}\n{self._counts()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, rows = self._table()
        return html_table(header, rows, numbers=range(1, len(header))) + html_lines(self._counts())


class Case(NamedTuple):
    """A user to evaluate, with history and relevant items as rows of the item table."""

    user: str
    history: list[int]
    relevant: list[int]
    unknown: int  # relevant items unseen in training
    fold_in: History | None  # interactions to fold the user in from; None for a user of the model


Ranker = Callable[[Sequence[Case]], Matrix]  # users -> scores (users, items)


def recommendations(
    model: Recommends,
    test: Any,
    *,
    history: Any = None,
    metrics: Sequence[str] = METRICS,
    baselines: bool = True,
    report: Report = Silence(),
) -> RecommendationResult:
    """Rank all items for the users of `test` and compare with their test items.

    `test` and `history` are `Interactions`, or items by user. Users unseen in training are folded in from their
    `history`. The baselines use the same data: popularity ranks the most used items first, item-kNN those most similar
    (by cosine) to the user's history. `baselines=False` leaves both out. `report` shows the progress of item-kNN, which
    takes the longest.
    """
    check_recommends(model)
    cutoffs = [parse_metric(metric) for metric in metrics]
    cases, left_out = cases_of(model, by_user(test), by_user(history) if history is not None else {})
    size = len(items_of(model))
    name = type(model.method if isinstance(model, Model) else model).__name__
    rankers: dict[str, Ranker] = {name: partial(model_scores, model)}
    if baselines:
        rankers["popularity"] = partial(history_scores, popularity(model.seen, size))
        rankers["item-kNN"] = partial(history_scores, item_knn(model.seen, size, report=report))
    means = {name: mean_metrics(ranker, cases, metrics, cutoffs, size) for name, ranker in rankers.items()}
    unknown = sum(case.unknown for case in cases)
    return RecommendationResult(means, len(cases), left_out["unknown"], left_out["nothing new"], unknown)


def check_recommends(model: object) -> None:
    """Refuse a model that does not recommend."""
    if not isinstance(model, Recommends):
        raise FirthError(
            "unsupported_model",
            "{model!r} does not recommend items. Use a model of ALS, BPR, RatingFactors or Item2Vec.",
            model=model,
        )


def items_of(model: Recommends) -> Mapping[str, int]:
    """Return the row of each item."""
    rows: Mapping[str, int] = model.tables["items"].rows
    return rows


def by_user(data: Any) -> Tests:
    """Return the histories of `Interactions`, or the mapping itself."""
    histories = data.histories() if isinstance(data, HasHistories) else data
    if not isinstance(histories, Mapping):
        raise FirthError(
            "invalid_type",
            "Test data must be Interactions or a mapping of users to items; got {got}.",
            got=type(data).__name__,
        )
    return histories


def parse_metric(metric: str) -> tuple[str, int]:
    """Split a metric such as recall@20 into its name and k."""
    match = re.fullmatch(r"(recall|ndcg|map)@([1-9][0-9]*)", metric)
    if not match:
        raise FirthError("invalid_value", "A metric must be recall@k, ndcg@k or map@k; got {got!r}.", got=metric)
    return match[1], int(match[2])


def cases_of(model: Recommends, test: Tests, history: Tests) -> tuple[list[Case], dict[str, int]]:
    """Return the users to evaluate, and how many were left out and why."""
    users, items, seen = model.tables["users"].rows, items_of(model), model.seen
    if not isinstance(model, Rates):  # for which 0 is a rating
        test, history = without_zeros(test), without_zeros(history)
    cases, left_out = [], {"unknown": 0, "nothing new": 0}
    for user, test_items in test.items():
        in_model = user in users
        if not in_model and user not in history:
            left_out["unknown"] += 1
            continue
        fold_in = None if in_model else history[user]
        if isinstance(fold_in, Mapping):
            fold_in = {item: weight for item, weight in fold_in.items() if item in items}
        elif fold_in is not None:
            fold_in = [item for item in fold_in if item in items]
        history_rows = items_of_user(seen, users[user]) if in_model else []
        history_rows = sorted({*history_rows, *(items[item] for item in history.get(user, ()) if item in items)})
        rows = {items.get(item, -1 - number) for number, item in enumerate(test_items)}
        rows -= set(history_rows)
        if not rows:
            left_out["nothing new"] += 1
            continue
        relevant = sorted(row for row in rows if row >= 0)
        cases.append(Case(user, history_rows, relevant, len(rows) - len(relevant), fold_in))
    return cases, left_out


def without_zeros(data: Tests) -> Tests:
    """Remove items of weight 0, which are no interactions."""
    return {
        user: {item: weight for item, weight in items.items() if weight} if isinstance(items, Mapping) else items
        for user, items in data.items()
    }


def items_of_user(seen: Histories, row: int) -> list[int]:
    """Return the item rows of a training user."""
    items: list[int] = seen.items[seen.starts[row] : seen.starts[row + 1]].tolist()
    return items


def model_scores(model: Recommends, cases: Sequence[Case]) -> Matrix:
    """Return the model's scores, (users, items); users unseen in training are folded in."""
    in_model = np.array([case.fold_in is None for case in cases])
    model_rows = model.user_rows([case.user for case in cases if case.fold_in is None])
    folded_rows = model.fold_in([case.fold_in for case in cases if case.fold_in is not None])
    rows = np.empty((len(cases), folded_rows.shape[1]), dtype=np.float32)
    rows[in_model], rows[~in_model] = model_rows, folded_rows
    scores: Matrix = model.scores(rows)
    return scores


def history_scores(scorer: Scorer, cases: Sequence[Case]) -> Matrix:
    """Return the scores of a baseline, (users, items)."""
    return scorer([case.history for case in cases])


def mean_metrics(
    ranker: Ranker,
    cases: Sequence[Case],
    metrics: Sequence[str],
    cutoffs: Sequence[tuple[str, int]],
    items: int,
) -> dict[str, float]:
    """Return each metric's mean over users; NaN without users."""
    values = case_metrics(ranker, cases, cutoffs, items)
    means = values.mean(axis=0) if len(values) else np.full(len(cutoffs), math.nan)
    return dict(zip(metrics, means.tolist(), strict=True))


def case_metrics(
    ranker: Ranker, cases: Sequence[Case], cutoffs: Sequence[tuple[str, int]], items: int
) -> NDArray[np.float64]:
    """Return the metrics of each user, (users, metrics)."""
    max_k, values = max(k for _, k in cutoffs), []
    batch = max(1, BATCH_BYTES // (4 * max(1, items)))
    for start in range(0, len(cases), batch):
        part = cases[start : start + batch]
        scores = np.array(ranker(part), dtype=np.float32)
        for case, row in zip(part, scores, strict=True):
            row[case.history] = -np.inf
            ranking = top_rows(row, min(max_k, items - len(case.history)))
            values.append(user_metrics(np.isin(ranking, case.relevant), len(case.relevant) + case.unknown, cutoffs))
    return np.array(values).reshape(len(cases), len(cutoffs))


def recommended(model: Recommends, test: Any, metric: str = "ndcg@100") -> dict[str, float]:
    """Return one metric of each evaluated user, for paired comparisons of models."""
    check_recommends(model)
    cases, _ = cases_of(model, by_user(test), {})
    values = case_metrics(partial(model_scores, model), cases, [parse_metric(metric)], len(items_of(model)))
    return {case.user: float(value) for case, value in zip(cases, values[:, 0], strict=True)}


def user_metrics(hits: NDArray[np.bool_], relevant: int, cutoffs: Sequence[tuple[str, int]]) -> list[float]:
    """Return the metrics of a ranking; `hits` says which of its items are relevant, `relevant` how many there are."""
    ranks = np.arange(1, len(hits) + 1)
    gains, precisions = hits / np.log2(ranks + 1), hits * np.cumsum(hits) / ranks
    values = []
    for name, k in cutoffs:
        possible = min(k, relevant)
        if name == "recall":
            values.append(hits[:k].sum() / possible)
        elif name == "ndcg":
            values.append(gains[:k].sum() / (1 / np.log2(np.arange(2, possible + 2))).sum())
        else:
            values.append(precisions[:k].sum() / possible)
    return [float(value) for value in values]


@dataclass(frozen=True)
class RatingResult:
    """Errors over the `pairs` of the test whose user and item were seen in training; the others are `skipped`.

    `mean_rmse` and `mean_mae` are the errors of always predicting the mean of the training ratings.
    """

    rmse: float
    mae: float
    mean_rmse: float
    mean_mae: float
    pairs: int
    skipped: int

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {name: number_or_none(value) for name, value in vars(self).items()}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [["model", self.rmse, self.mae], ["the mean", self.mean_rmse, self.mean_mae]]
        return ["", "RMSE", "MAE"], [[str(name), f"{rmse:.4f}", f"{mae:.4f}"] for name, rmse, mae in rows]

    def _counts(self) -> str:
        return f"{self.pairs:,} ratings ({self.skipped:,} of unknown users or items left out)"

    def __str__(self) -> str:
        return f"{text_table(*self._table(), numbers=(1, 2))}\n{self._counts()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=(1, 2)) + html_lines(self._counts())


def rating_errors(model: Rates, test: Any) -> RatingResult:
    """Return RMSE and MAE of predicted ratings; `test` is `Interactions`, or a mapping user -> item -> rating."""
    if not isinstance(model, Rates):
        raise FirthError(
            "unsupported_model",
            "{model!r} does not predict ratings. Use a model of RatingFactors.",
            model=model,
        )
    tables = model.tables
    rated_items = {user: rated for user, rated in by_user(test).items() if isinstance(rated, Mapping)}
    triples = [(user, item, value) for user, rated in rated_items.items() for item, value in rated.items()]
    usable = [(u, i, r) for u, i, r in triples if u in tables["users"] and i in tables["items"]]
    if not usable:
        raise FirthError(
            "empty_data",
            "None of the {n_pairs:,} rated pairs of the test has a user and an item that were seen in training.",
            n_pairs=len(triples),
        )
    users, items, values = zip(*usable, strict=True)
    errors = model.rate(users, items).astype(np.float64) - np.array(values)
    mean_errors = model.mean - np.array(values)
    return RatingResult(
        rmse=root_mean_square(errors),
        mae=float(np.abs(errors).mean()),
        mean_rmse=root_mean_square(mean_errors),
        mean_mae=float(np.abs(mean_errors).mean()),
        pairs=len(usable),
        skipped=len(triples) - len(usable),
    )


def root_mean_square(values: NDArray[np.float64]) -> float:
    """Return √ mean(x²)."""
    return math.sqrt((values**2).mean())
