"""Every use of a model that its protocols promise, for tests that only ask whether it works or is refused."""

from __future__ import annotations

import itertools
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


def use(model: Any) -> list[str]:
    """What of it gave numbers that are not finite, by name; anything else is as it should be, or an error."""
    given: dict[str, Any] = {}
    kind = type(model.method).kind
    inputs: Any = rows_of(model) if kind == "table" else TEXTS
    repr(model), model.method.options(), dict(model.training)
    if isinstance(model, protocols.HasVectors):
        for name, table in model.tables.items():
            if not len(table):
                continue
            repr(table)
            key = table.keys[0]
            given[f"{name} neighbors"] = [hit.score for hit in table.neighbors(key, 3)]
            given[f"{name} vector"] = table[key]
            given[f"{name} analogy"] = [hit.score for hit in table.analogy(key, table.keys[-1], key, 1)]
    if isinstance(model, protocols.Embeds):
        given["embed"] = model.embed(inputs)
    if isinstance(model, protocols.Predicts):
        given["predict"] = [chance for found in model.predict(inputs, k=3) for _, chance in found]
    if isinstance(model, protocols.Estimates):
        given["estimate"] = model.estimate(inputs)
    if isinstance(model, protocols.TagsWords):
        given["tag"] = [word.probability for found in model.tag(inputs) for word in found]
    if isinstance(model, protocols.Answers):
        given["answer"] = [span.score for span in model.answer(["who sleeps"] * 2, ["the king sleeps", "no"])]
    if isinstance(model, protocols.Contextual):
        given["words"] = np.concatenate([found.vectors for found in model.words(TEXTS, layers=[0, -1])])
    if isinstance(model, protocols.Attends):
        other = "le roi" if isinstance(model, protocols.Translates) else None
        given["attention"] = model.attention("the king", other).weights
    if isinstance(model, protocols.Fills) and "masked" in getattr(model, "heads", ["masked"]):
        given["fill"] = [chance for found in model.fill("the [MASK] sleeps") for _, chance in found]
    if isinstance(model, protocols.Generates):
        list(model.generate("the king", 3))
        given["write"] = [step.token.probability for step in model.write("the king", tokens=2)]
    if isinstance(model, protocols.Translates):
        model.translate(["the king sleeps"], beam=2)
    if isinstance(model, protocols.Inverts):
        rebuilt = model.reconstruct(inputs)
        given["reconstruct"] = [rebuilt.numbers(name) for name in rebuilt.names if rebuilt.type(name) == "number"]
    if isinstance(model, protocols.Samples):
        made = model.sample(2)
        given["sample"] = [made.numbers(name) for name in made.names if made.type(name) == "number"]
    if isinstance(model, protocols.HasMatrix):
        given["matrix"] = model.matrix.data
        [list(itertools.islice(keys, 3)) for keys in model.matrix_keys]
    if isinstance(model, protocols.Recommends):
        user, item = model.tables["users"].keys[0], model.tables["items"].keys[0]
        given["recommend"] = [hit.score for hit in model.recommend(user, 3)]
        given["recommend for"] = [hit.score for hit in model.recommend_for([item], 3)]
        given["scores"] = model.scores(model.user_rows([user]))
    if isinstance(model, protocols.Rates):
        given["rate"] = model.rate([model.tables["users"].keys[0]], [model.tables["items"].keys[0]])
    return [name for name, values in given.items() if not np.isfinite(np.asarray(values, np.float64)).all()]
