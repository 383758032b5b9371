"""README.md does what it says: its commands run one after the other on small files of the names it uses, and its Python
does. Networks are made small; `serve` and `studio`, which do not end, are only read."""

from __future__ import annotations

import csv
import gzip
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from firth.cli.main import cli
from firth.data.world import World, write_analogies

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^firth .*", README, re.MULTILINE)
SMALL = [
    "--layers",
    "1",
    "--dim",
    "16",
    "--heads",
    "2",
    "--context-length",
    "64",
    "--vocabulary-size",
    "400",
    "--epochs",
    "1",
]
QUICKER: dict[tuple[str, ...], list[str]] = {
    ("train", "gpt"): SMALL,
    ("train", "bert"): SMALL,
    ("finetune", "text_classifier"): ["--epochs", "1"],
}
NEVER_END = ("serve", "studio")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """my-text.txt, friends.tsv, listened.csv, tickets.csv; wiki/ and questions-words.txt for the Python."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    world = World(seed=21)
    banks = ["it was the river bank", "it was the central bank"] * 30
    text = "\n".join([*world.sentences(2000), *banks])
    Path("my-text.txt").write_text(text, encoding="utf-8")
    Path("wiki").mkdir()
    Path("wiki/a.txt.gz").write_bytes(gzip.compress(text.encode()))
    write_analogies(Path("questions-words.txt"), world.analogies(most=20))
    Path("friends.tsv").write_text("".join(f"{a}\t{b}\n" for a, b, *_ in world.friendships(people=40).edges))
    people = world.ratings(40, 30, 10)
    heard = [
        ("ann" if user == 0 else f"u{user}", f"i{item}", count) for user, item, count in zip(*people[:3], strict=True)
    ]
    groups = {"account": "cannot log in with my password", "money": "the bill is wrong and too high"}
    tickets = [(f"{groups[group]} {n}", group) for n in range(30) for group in groups]
    for name, rows in (
        ("listened.csv", [("user", "item", "count"), *heard]),
        ("tickets.csv", [("text", "group"), *tickets]),
    ):
        with Path(name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return tmp_path


def test_its_commands_run(folder: Path) -> None:
    assert len(COMMANDS) > 10
    for line in COMMANDS:
        words = shlex.split(line, comments=True)[1:]
        if words[0] in NEVER_END:
            parent = click.Context(cli, **cli.context_settings)
            command = cli.get_command(parent, words[0])
            assert command is not None and command.make_context(words[0], words[1:], parent=parent)
            continue
        words += [
            *QUICKER.get(tuple(words[:2]), []),
            *(["--threads", "1"] if words[0] in ("train", "finetune") else []),
        ]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0 and done.stdout.strip(), f"{line}\n{done.output}"


def test_its_python_runs(folder: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert (folder / "wiki-sg" / "config.json").is_file()


def test_it_lists_the_architectures_that_open():
    from docs.architectures import titles

    (listed,) = re.findall(r"with the architectures (.*?) \(\[list\]", README, re.DOTALL)
    assert re.split(r", | and ", listed.replace("\n  ", " ")) == titles()
