"""The demo, on the docstrings of one package."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from firth.data import docstrings


def search_results(query: str, output: str) -> set[str]:
    """The words of the five results for a query."""
    hits = re.search(rf"“{query}”\n((?: +\d\.\d+ .*\n){{5}})", output)
    assert hits, output
    return set(hits.group(1).split())


def test_the_demo_finds_the_right_functions_and_resumes(call, tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "python_docstrings", partial(docstrings.python_docstrings, ["numpy", "shutil"]))
    first = call("demo", "-o", tmp_path / "demo")
    assert first.exit_code == 0, first.output
    assert {"numpy.median", "numpy.nanmedian"} & search_results("median of an array", first.stdout)
    score = re.search(r"text → name, MRR +(\d\.\d+) ±\d\.\d+ .* BM25 \d\.\d+ +(\d+)", first.stdout)
    assert score and float(score[1]) > 5 / int(score[2])  # by chance about ln(items) / items
    assert re.search(r"\nUse (skipgram|cbow)", first.stdout)
    held_out, trained = (
        (tmp_path / "demo" / name).read_text().splitlines() for name in ("held-out.jsonl", "python.jsonl")
    )
    assert not set(held_out) & set(trained) and len(trained) == pytest.approx(19 * len(held_out), abs=19)
    assert "shutil.rmtree" in first.stdout and "firth train skipgram TEXT -o MODEL" in first.stdout
    demo = tmp_path / "demo"
    models = f"{demo / 'skipgram'} {demo / 'cbow'}"
    assert first.stdout.endswith(f"studio {models} --root {demo}\n")
    monkeypatch.setattr(docstrings, "python_docstrings", None)  # the second run computes nothing again
    again = call("demo", "-o", tmp_path / "demo", "inverse of a matrix", "qwertyuiop")
    assert again.exit_code == 0, again.output
    inverses = {"numpy.matrix.I", *(f"numpy.linalg.{name}" for name in ("inv", "pinv", "tensorinv"))}
    assert inverses & search_results("inverse of a matrix", again.stdout)
    assert "none of its words is in the vocabulary" in again.stdout
    result = call("demo", "-o", tmp_path / "demo", "inverse of a matrix", "qwertyuiop", "--json")
    results = json.loads(result.stdout)
    assert inverses & {hit["key"] for hit in results["search"]["inverse of a matrix"]}
    assert results["search"]["qwertyuiop"] == [] and results["documents"] == len(held_out) + len(trained)
    assert set(results["neighbors"]["matrix"]) == set(results["models"]) == {"skipgram", "cbow"}
