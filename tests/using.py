"""Every use of a model that its protocols promise, for tests that only ask whether it works or is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import firth
from firth.core import model as protocols

TEXTS = ["the king sleeps", "", "zzyzx"]


def rows_of(model: Any) -> firth.Table:
    """Rows such as a model of a table takes."""
    columns = getattr(model, "columns", None) or getattr(getattr(model, "layout", None), "columns", None)
    names = [str(getattr(column, "name", column)) for column in columns or getattr(model, "names", [])]
    return firth.Table({name: [0.5, 1.0, -2.0] for name in names})


def numbers_of(table: firth.Table) -> list[Any]:
    return [table.numbers(name) for name in table.names if table.type(name) == "number"]


def ignored(*values: Any) -> None:
    """Texts, which need not be looked at."""


def uses(model: Any) -> dict[str, Callable[[], Any]]:
    """What it can be asked for, by name: functions that give numbers, or nothing."""
    found: dict[str, Callable[[], Any]] = {"repr": lambda: ignored(model, model.method.options(), dict(model.training))}
    inputs: Any = (lambda: rows_of(model)) if type(model.method).data is firth.Table else (lambda: TEXTS)
    if isinstance(model, protocols.HasVectors):
        found["neighbors"] = lambda: [
            hit.score for table in model.tables.values() if len(table) for hit in table.neighbors(table.keys[0], 3)
        ]
        found["vector"] = lambda: [table[table.keys[-1]] for table in [model.vectors] if len(table)]
        if len(model.vectors) > 3:
            a, b, c = model.vectors.keys[:3]
            found["analogy"] = lambda: [hit.score for hit in model.vectors.analogy(a, b, c)]
    if isinstance(model, protocols.Embeds):
        found["embed"] = lambda: model.embed(inputs())
    if isinstance(model, protocols.Predicts):
        found["predict"] = lambda: [chance for labels in model.predict(inputs(), k=3) for _, chance in labels]
    if isinstance(model, protocols.Estimates):
        found["estimate"] = lambda: model.estimate(inputs())
    if isinstance(model, protocols.TagsWords):
        found["tag"] = lambda: [word.probability for words in model.tag(inputs()) for word in words]
    if isinstance(model, protocols.Answers):
        found["answer"] = lambda: [span.score for span in model.answer(["who sleeps"] * 2, ["the king sleeps", "no"])]
    if isinstance(model, protocols.Contextual):
        found["words"] = lambda: np.concatenate([text.vectors for text in model.word_vectors(TEXTS, layers=[0, -1])])
    if isinstance(model, protocols.Attends):
        other = "le roi" if isinstance(model, protocols.Translates) else None
        found["attention"] = lambda: model.attention("the king", other).weights
    if isinstance(model, protocols.Fills) and "masked" in getattr(model, "heads", ["masked"]):
        found["fill"] = lambda: [chance for words in model.fill("the [MASK] sleeps") for _, chance in words]
    if isinstance(model, protocols.Generates):
        found["generate"] = lambda: ignored(*model.generate("the king", 3))
        found["generate_tokens"] = lambda: [
            step.token.probability for step in model.generate_tokens("the king", tokens=2)
        ]
    if isinstance(model, protocols.Translates):
        found["translate"] = lambda: ignored(*model.translate(["the king sleeps"], beam=2))
    if isinstance(model, protocols.Inverts):
        found["reconstruct"] = lambda: numbers_of(model.reconstruct(inputs()))
    if isinstance(model, protocols.Samples):
        found["sample"] = lambda: numbers_of(model.sample(2))
    if isinstance(model, protocols.HasMatrix):
        found["matrix"] = lambda: model.matrix.data
        found["matrix keys"] = lambda: ignored([list(itertools.islice(keys, 3)) for keys in model.matrix_keys])
    if isinstance(model, protocols.Recommends):
        users, items = (lambda: model.tables["users"].keys[:1]), (lambda: model.tables["items"].keys[:1])
        found["recommend"] = lambda: [hit.score for hit in model.recommend(users()[0], 3)]
        found["recommend for"] = lambda: [hit.score for hit in model.recommend_for({items()[0]: 4.0}, 3)]
        found["scores"] = lambda: model.scores(model.user_rows(users()))
        if isinstance(model, protocols.Rates):
            found["rate"] = lambda: model.rate(users(), items())
    return found


def use(model: Any) -> list[firth.FirthError]:
    """Uses a model in every way; the errors that users are meant to see. Others are raised, as is FloatingPointError
    for numbers that are not finite."""
    refused: list[firth.FirthError] = []
    try:
        known = uses(model)  # which asks for its tables
    except firth.FirthError as error:
        return [error]
    for name, work in known.items():
        try:
            given = work()
            if given is not None and not np.isfinite(np.asarray(given, np.float64)).all():
                raise FloatingPointError(name)
        except firth.FirthError as error:  # noqa: PERF203
            refused.append(error)
    return refused
