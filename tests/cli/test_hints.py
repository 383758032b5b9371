"""What `firth train` proposes next is a command that works, for every method."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_bert

from firth.core import registry
from firth.core.options import options_of
from firth.data.world import World

METHODS = sorted(registry.method_modules())
#: Small values of options that methods share, to be quick.
SMALL = {"dim": 8, "epochs": 1, "min_count": 2, "vocabulary": 300, "layers": 1, "heads": 2, "context": 64, "threads": 1}
#: The file of each kind of data, and what stands for the hint's capitals.
FILES = {"text": "text.txt", "tagged": "text.txt", "labelled": "topics.txt", "ratings": "ratings.tsv"}
FILES |= {"graph": "edges.tsv", "table": "table.csv", "pairs": "pairs.tsv", "alike": "text.txt"}
FILES |= {"questions": "questions.csv", "tagged words": "tags.conll", "examples": "examples.csv"}
GIVEN = {"WORD": "the", "KEY": "1", "NODE": "p1", "USER": "u1", "FILE": "text.txt", "TABLE": "table.csv"}
GIVEN |= {"PROMPT": "the king", "TEXT": "the king"}
CAPITALS = re.compile(r"(?<!\[)\b[A-Z]{3,}\b")  # [MASK] stays


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, world = tmp_path_factory.mktemp("hints"), World(seed=21)
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


def proposed(told: str) -> list[str]:
    """The lines behind "Next:"."""
    return [line.strip() for line in told.partition("\nNext:")[2].splitlines() if line.strip()]


def small(name: str) -> list[str]:
    known = [option.name for option in options_of(registry.method(name))]
    return [f"--{option.replace('_', '-')}={value}" for option, value in SMALL.items() if option in [*known, "threads"]]


@pytest.mark.parametrize("name", METHODS)
def test_the_next_command_works(call, folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(folder)
    method = registry.method(name)
    start = ["--start", "base"] if method.needs_start else []
    told = call("train", name, FILES[method.kind], "-o", tmp_path / "model", *start, *small(name))
    assert told.exit_code == 0, told.output
    lines = proposed(told.stdout)
    assert lines
    for line in lines:
        words = [CAPITALS.sub(lambda found: GIVEN[found[0]], word) for word in shlex.split(line)[1:]]
        done = call(*(tmp_path / word if word == "codes.npy" else word for word in words))
        assert done.exit_code == 0, f"{line}\n{done.output}"


def test_pairs_and_tables_of_tokens_have_hints_of_their_own(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    quick = ("--epochs", 1, "--threads", 1, "--dropout", 0)
    told = call("finetune", "pairs", "base", "examples.csv", "--other", "other", "-o", tmp_path / "same", *quick)
    assert proposed(told.stdout) == [f"firth predict {tmp_path / 'same'} FILE --column NAME --other NAME"]
    done = call("predict", tmp_path / "same", "examples.csv", "--column", "text", "--other", "other")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 60
    told = call("distil", "base", "-o", tmp_path / "small", "--text", "text.txt", "--dim", 8)
    assert proposed(told.stdout) == [f"firth embed {tmp_path / 'small'} FILE"]
    assert call("embed", tmp_path / "small", "text.txt").exit_code == 0


def test_a_bert_fills_blanks_and_embeds(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    told = call("train", "bert", "text.txt", "-o", "my bert", *small("bert"))
    assert proposed(told.stdout) == ["firth fill 'my bert' \"TEXT with a [MASK]\"", "firth embed 'my bert' FILE"]
