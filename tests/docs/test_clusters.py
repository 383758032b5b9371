"""The worked examples of "Beyond one machine" run, in order, on small files of each kind of data."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from firth.cli.main import cli
from firth.data.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"
EXAMPLES = re.search(r"^## Worked examples$(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
KINDS = re.findall(r"^### (\w+)$(.*?)(?=^### |\Z)", EXAMPLES[1] if EXAMPLES else "", re.MULTILINE | re.DOTALL)


def lines(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page describes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    rng, sentences = random.Random(1), list(World(seed=4).sentences(600))
    for name, part in (("a", sentences[:300]), ("b", sentences[300:])):
        rows = [json.dumps({"id": f"{name}{number}", "text": text}) for number, text in enumerate(part)]
        lines(tmp_path / "texts" / f"{name}.jsonl", rows)
    for number in (1, 2):
        numbers = [",".join(f"{rng.gauss(0, 1):.3f}" for _ in range(5)) for _ in range(100)]
        lines(tmp_path / "rows" / f"part-{number}.csv", ["a,b,c,d,e", *numbers])
    pairs = [(rng.randrange(50), rng.randrange(40)) for _ in range(600)]
    lines(tmp_path / "edges.tsv", [f"n{a}\tn{b}" for a, b in pairs])
    lines(tmp_path / "ratings.tsv", [f"u{a}\ti{b}" for a, b in pairs])
    return tmp_path


def test_there_is_an_example_for_each_kind_of_data() -> None:
    assert [name for name, _ in KINDS] == ["Text", "Tables", "Graphs", "Interactions"]


@pytest.mark.parametrize(("kind", "text"), KINDS, ids=[name for name, _ in KINDS])
def test_the_worked_examples_run(data: Path, kind: str, text: str) -> None:
    commands = re.findall(r"^\$ firth (.+)$", text, re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        result = CliRunner().invoke(cli, shlex.split(command))
        assert result.exit_code == 0, f"{command}\n{result.output}"
    if kind == "Text":
        keys = [
            key
            for path in sorted((data / "vectors").glob("*.parquet"))
            for key in pyarrow.parquet.read_table(path)["key"].to_pylist()
        ]
        assert sorted(keys) == sorted(f"{name}{number}" for name in "ab" for number in range(300))
    if kind == "Tables":
        assert [pyarrow.parquet.read_table(data / f"rows-{part}.parquet").num_rows for part in (1, 2)] == [100, 100]
    if kind in ("Graphs", "Interactions"):
        assert len(re.findall(r"^[ni]\d+ ", result.stdout, re.MULTILINE)) == 3
