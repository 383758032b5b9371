"""Small files of every kind of data, from the invented world, and options that make any method quick on them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tiny import tiny_bert

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
#: The file of each kind of data.
FILES = {"text": "text.txt", "tagged": "text.txt", "labelled": "topics.txt", "ratings": "ratings.tsv"}
FILES |= {"graph": "edges.tsv", "table": "table.csv", "pairs": "pairs.tsv", "alike": "text.txt"}
FILES |= {"questions": "questions.csv", "tagged words": "tags.conll", "examples": "examples.csv"}


def write_samples(made: Path) -> Path:
    """The files of `FILES`, and a small BERT in the folder base."""
    world = World(seed=21)
    sentences = list(dict.fromkeys(world.sentences(400)))
    (made / "text.txt").write_text("\n".join(sentences))
    topics = [f"__label__{each.label} {each.text}" for each in world.topics(60)]
    (made / "topics.txt").write_text("\n".join(topics))
    people = world.ratings(60, 40, 12)
    write(made / "ratings.tsv", [(f"u{u}", f"i{i}", r) for u, i, r in zip(*people[:3], strict=True)])
    write(made / "edges.tsv", [(f"p{a}", f"p{b}") for a, b, *_ in world.friendships(people=60).edges])
    write(made / "table.csv", [[f"column {n}" for n in range(9)], *([n % 7, *range(n, n + 8)] for n in range(60))])
    write(made / "pairs.tsv", [("source", "target"), *world.translations(100)])
    asked = [(row.question, row.passage, row.answer) for row in world.questions(40)]
    write(made / "questions.csv", [("question", "passage", "answer"), *asked])
    tagged = ["\n".join(f"{word} {word[0]}" for word in text.split()) for text in sentences[:60]]
    (made / "tags.conll").write_text("\n\n".join(tagged))
    rows = zip(sentences[:60], sentences[60:120], [0, 1] * 30, strict=True)
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
