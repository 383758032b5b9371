"""Small samples of every type of data, from the synthetic corpus, and options that make any method quick on them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tiny import tiny_bert

import firth
from firth.core import registry
from firth.core.options import options_of
from firth.data.world import World

#: Small values of options that methods share, to be quick.
SMALL = {
    "dim": 8,
    "epochs": 1,
    "min_count": 2,
    "vocabulary_size": 300,
    "layers": 1,
    "heads": 2,
    "context_length": 64,
    "threads": 1,
}


@cache
def sentences() -> list[str]:
    return list(World(seed=21).sentences(1500))


def texts() -> list[str]:
    return ["the king sleeps", "", "zzyzx"]


def numbers(seed: int) -> firth.Table:
    return firth.Table(np.random.default_rng(seed).normal(size=(40, 14)))


def questions(count: int) -> dict[str, list[str]]:
    rows = list(World(seed=21).questions(count))
    return {name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer")}


class Sample(NamedTuple):
    """Small data of one type."""

    file: str  # among those of `write_samples`
    data: Callable[[], Any]
    nothing: Callable[[], Any]  # data that a method cannot learn from
    more: Callable[[], Any] | None = None  # shares some keys with `data` and has some of its own
    inputs: Callable[[], Any] = texts  # what models of methods that read this data embed or predict


#: The samples of each type of data: a new type adds one entry.
SAMPLES: dict[type[firth.Data], Sample] = {
    firth.Corpus: Sample(
        "text.txt",
        lambda: firth.Corpus(sentences()),
        lambda: firth.Corpus([""]),
        lambda: [*sentences()[:200], *["zork gnusto the king"] * 5],
    ),
    firth.TaggedCorpus: Sample(
        "text.txt",
        lambda: firth.Corpus([(str(i), text, ["a", "b"][i % 3 :]) for i, text in enumerate(sentences())]),
        lambda: firth.Corpus([""]),
        lambda: firth.Corpus([*((str(i), text) for i, text in enumerate(sentences()[:50])), ("new", "the king")]),
    ),
    firth.LabeledTexts: Sample(
        "topics.txt",
        lambda: firth.LabeledTexts(list(World(seed=21).topics(300))),
        lambda: firth.LabeledTexts([("", "a"), ("", "b")]),
        lambda: [("the king sleeps", "old"), ("zork gnusto", "new")] * 20,
    ),
    firth.Graph: Sample(
        "edges.tsv",
        lambda: firth.Graph(World(seed=21).friendships(people=60).edges),
        lambda: firth.Graph([]),
        lambda: firth.Graph([("0", "new"), ("new", "newer"), ("newer", "0")]),
    ),
    firth.Interactions: Sample(
        "ratings.tsv",
        lambda: firth.Interactions(zip(*World(seed=21).ratings(60, 40, 12)[:3], strict=True)),
        lambda: firth.Interactions([]),
        lambda: firth.Interactions([("0", "0"), ("0", "new"), ("new", "0"), ("new", "1")]),
    ),
    firth.Table: Sample(
        "table.csv",
        lambda: numbers(21),
        lambda: firth.Table({}),
        lambda: numbers(22),
        lambda: numbers(21).slice(0, 3),
    ),
    firth.TranslationPairs: Sample(
        "pairs.tsv",
        lambda: firth.TranslationPairs(World(seed=21).translations(150)),
        lambda: firth.TranslationPairs([("", "a")]),
        lambda: firth.TranslationPairs(World(seed=21).translations(50)),
    ),
    firth.Questions: Sample(
        "questions.csv",
        lambda: firth.Questions(questions(60)),
        lambda: firth.Questions({"question": ["a"], "passage": ["b"], "answer": ["c"]}),
    ),
    firth.TaggedSentences: Sample(
        "tags.conll",
        lambda: firth.TaggedSentences(
            [(text.split(), [word[0] for word in text.split()]) for text in sentences()[:60]]
        ),
        lambda: firth.TaggedSentences([(["a", "b"], ["x", "x"])]),
    ),
    firth.Examples: Sample(
        "examples.csv",
        lambda: firth.Examples({"text": sentences()[:60], "label": [0, 1, 2] * 20}),
        lambda: firth.Examples({"text": ["a", "b"], "label": [None, None]}),
    ),
    firth.SimilarPairs: Sample(
        "text.txt",
        lambda: firth.SimilarPairs(list(dict.fromkeys(sentences()[:60]))),
        lambda: firth.SimilarPairs(["only one"]),
    ),
}


def sample_of(method: type[firth.Method]) -> Sample:
    """The samples of the data that a method reads."""
    return SAMPLES[method.data]


def write_samples(made: Path) -> Path:
    """The files of `SAMPLES`, and a small BERT in the folder base."""
    world = World(seed=21)
    distinct = list(dict.fromkeys(world.sentences(400)))
    (made / "text.txt").write_text("\n".join(distinct))
    topics = [f"__label__{each.label} {each.text}" for each in world.topics(60)]
    (made / "topics.txt").write_text("\n".join(topics))
    people = world.ratings(60, 40, 12)
    write(made / "ratings.tsv", [(f"u{u}", f"i{i}", r) for u, i, r in zip(*people[:3], strict=True)])
    write(made / "edges.tsv", [(f"p{a}", f"p{b}") for a, b, *_ in world.friendships(people=60).edges])
    write(made / "table.csv", [[f"column {n}" for n in range(9)], *([n % 7, *range(n, n + 8)] for n in range(60))])
    write(made / "pairs.tsv", [("source", "target"), *world.translations(100)])
    asked = [(row.question, row.passage, row.answer) for row in world.questions(40)]
    write(made / "questions.csv", [("question", "passage", "answer"), *asked])
    tagged = ["\n".join(f"{word} {word[0]}" for word in text.split()) for text in distinct[:60]]
    (made / "tags.conll").write_text("\n\n".join(tagged))
    rows = zip(distinct[:60], distinct[60:120], [0, 1] * 30, strict=True)
    write(made / "examples.csv", [("text", "other", "label"), *rows])
    tiny_bert().save(made / "base")
    return made


def write(path: Path, rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t").writerows(rows)


def training_command(name: str, data: Any, base: Any) -> list[Any]:
    """The command that trains a method on data: `train METHOD DATA`, or with a base model `finetune TASK BASE DATA`."""
    verb = "finetune" if registry.family_of(name) == "finetuning" else "train"
    return [verb, name, *([base] if registry.method(name).needs_start else []), data]


def small(name: str) -> list[str]:
    known = [option.name for option in options_of(registry.method(name))]
    return [f"--{option.replace('_', '-')}={value}" for option, value in SMALL.items() if option in [*known, "threads"]]
