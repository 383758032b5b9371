"""The demo, on the docstrings of one package."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from firth.data import docstrings


def found(query: str, told: str) -> set[str]:
    """What the demo's search says."""
    hits = re.search(rf"“{query}”\n((?: +\d\.\d+ .*\n){{5}})", told)
    assert hits, told
    return set(hits.group(1).split())


def test_the_demo_finds_the_right_functions_and_goes_on(call, tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "python_docstrings", partial(docstrings.python_docstrings, ["numpy", "shutil"]))
    first = call("demo", "--folder", tmp_path / "demo")
    assert first.exit_code == 0, first.output
    assert {"numpy.median", "numpy.nanmedian"} & found("median of an array", first.stdout)
    score = re.search(r"text → name, MRR +(\d\.\d+) ±\d\.\d+ .* BM25 \d\.\d+ +(\d+)", first.stdout)
    assert score and float(score[1]) > 5 / int(score[2])  # by chance about ln(items) / items
    assert re.search(r"\nUse (skipgram|cbow)", first.stdout)
    held, learned = ((tmp_path / "demo" / name).read_text().splitlines() for name in ("held-out.jsonl", "python.jsonl"))
    assert not set(held) & set(learned) and len(learned) == pytest.approx(19 * len(held), abs=19)
    assert "shutil.rmtree" in first.stdout and "firth train skipgram TEXT -o MODEL" in first.stdout
    place = tmp_path / "demo"
    models = f"{place / 'skipgram'} {place / 'cbow'}"
    assert first.stdout.endswith(f"studio {models} --root {place}\n")
    monkeypatch.setattr(docstrings, "python_docstrings", None)  # the second time nothing is made again
    again = call("demo", "--folder", tmp_path / "demo", "inverse of a matrix", "qwertyuiop")
    assert again.exit_code == 0, again.output
    inverses = {f"numpy.linalg.{name}" for name in ("inv", "pinv", "tensorinv")}
    assert inverses & found("inverse of a matrix", again.stdout)
    assert "no word of it is known" in again.stdout
    told = call("demo", "--folder", tmp_path / "demo", "inverse of a matrix", "qwertyuiop", "--json")
    facts = json.loads(told.stdout)
    assert inverses & {hit["key"] for hit in facts["search"]["inverse of a matrix"]}
    assert facts["search"]["qwertyuiop"] == [] and facts["documents"] == len(held) + len(learned)
    assert set(facts["neighbors"]["matrix"]) == set(facts["models"]) == {"skipgram", "cbow"}
