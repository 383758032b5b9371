"""PPMI + SVD: the effect of each hyperparameter of Levy, Goldberg & Dagan 2015, compared with skip-gram on one text.

    python benchmarks/association.py DATA [--dim 500] [--work FOLDER]

DATA holds text/wiki17m.txt.xz and words/questions-words.txt, EN-WS-353-ALL.txt, EN-SIMLEX-999.txt. Each row keeps the
settings of the row above and changes what it names. Analogies use the 30,000 most frequent words; all models answer the
same questions. Results: docs/results/association.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.data.tokens import read_tokens  # noqa: E402

PAGE = HERE.parent / "docs" / "results" / "association.md"


def ladder(dim: int) -> dict[str, dict[str, Any]]:
    """Return the settings of each row; each adds one change to the row before."""
    steps: dict[str, dict[str, Any]] = {
        "PMI as it is, windows of 5, U Σ": {"variant": "pmi", "smoothing": 1.0, "power": 1.0, "dim": dim},
        "its positive part (PPMI)": {"variant": "ppmi"},
        "near words count more (dynamic)": {"weighting": "dynamic"},
        "frequent words thinned out (subsample 1e-4)": {"subsample": 1e-4},
        "contexts smoothed (0.75)": {"smoothing": 0.75},
        "U Σ^0.5": {"power": 0.5},
    }
    rows: dict[str, dict[str, Any]] = {}
    settings: dict[str, Any] = {}
    for name, change in steps.items():
        settings = settings | change
        rows[("" if not rows else "+ ") + name] = settings
    # Alternatives to the last row, one change each.
    rows["… U instead (Σ^0)"] = settings | {"power": 0.0}
    rows["… word + context"] = settings | {"add_contexts": True}
    rows["… shifted by log₂ 5"] = settings | {"variant": "shifted", "shift": 5.0}
    rows["… NPMI instead"] = settings | {"variant": "npmi"}
    rows["… 100 dimensions"] = settings | {"dim": 100}
    return rows


def methods(dim: int) -> dict[str, firth.Method]:
    outcome: dict[str, firth.Method] = {name: firth.PMI(**settings) for name, settings in ladder(dim).items()}
    outcome["skip-gram, 100 dimensions"] = firth.SkipGram()
    outcome[f"skip-gram, {dim} dimensions"] = firth.SkipGram(dim=dim)
    return outcome


def measure(data: Path, text: Path, dim: int) -> list[dict[str, Any]]:
    tokens = read_tokens(text, tokenizer="whitespace")
    questions = evaluate.read_questions(data / "words" / "questions-words.txt")
    pairs = {name: evaluate.read_pairs(data / "words" / f"EN-{name}.txt") for name in ("WS-353-ALL", "SIMLEX-999")}
    rows = []
    for name, method in methods(dim).items():
        began = time.perf_counter()
        vectors = method.fit(tokens).vectors
        seconds = time.perf_counter() - began
        outcome = evaluate.analogies(vectors, questions)
        similar = {task: evaluate.word_similarity(vectors, pairs[task]).spearman for task in pairs}
        rows.append({"name": name, "seconds": seconds, "analogies": outcome, "similar": similar})
        print(f"{name}: {seconds:.0f} s, {outcome.total.accuracy:.1%}", file=sys.stderr)
    return rows


def page(rows: list[dict[str, Any]], dim: int) -> Iterator[str]:
    answered = rows[0]["analogies"].total.answered
    yield f"`python benchmarks/association.py DATA` on {machine()}, {time.strftime('%Y-%m-%d')}. 16.7M words of"
    yield f"Wikipedia, 67,879 distinct ones, {dim} dimensions unless stated otherwise; {answered:,} analogies."
    yield ""
    yield "| | seconds | analogies | semantic | syntactic | WS-353 | SimLex-999 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        outcome, similar = row["analogies"], row["similar"]
        shares = " | ".join(f"{part.accuracy:.1%}" for part in (outcome.total, outcome.semantic, outcome.syntactic))
        rhos = " | ".join(f"{rho:.3f}" for rho in similar.values())
        yield f"| {row['name']} | {row['seconds']:.0f} | {shares} | {rhos} |"
    best = max(row["analogies"].total.accuracy for row in rows[:-2])
    peer = {row["name"]: row["analogies"].total.accuracy for row in rows[-2:]}
    ratios = ", ".join(f"{best / accuracy:.0%} of that of {name}" for name, accuracy in peer.items())
    yield ""
    yield f"The best analogy accuracy by counting is {ratios}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dim", type=int, default=500)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows = measure(arguments.data, plain_text(arguments.data, arguments.work), arguments.dim)
    lines = [*page(rows, arguments.dim), ""]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
