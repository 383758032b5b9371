"""Subwords for German compounds: the quality of FastText's vectors for words that are rare or absent in training.

    python benchmarks/compounds.py DATA [--words 300] [--seed 1]

DATA holds text/german.txt.xz, speeches of a parliament. Words of at least 12 letters that occur 20 to 400 times and end
in another frequent word (their head, as Krankenhausinfektionen ends in Infektionen) are sampled, and all but the first
0, 2 or 8 of their occurrences are removed from the text. FastText and skip-gram are trained on the rest. The reference
is skip-gram without subwords trained on the full text: the score is the share of the compound's ten nearest words there
that are among the ten nearest here, out of all words that occur 20 times, without the sampled compounds. Baseline:
skip-gram's vector of the head instead of the compound.
Results: benchmarks/results/compounds.json and docs/results/compounds.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import THREADS, machine  # noqa: E402

import firth  # noqa: E402
from firth.data.tokenizer import tokenizer  # noqa: E402

LEFT = (0, 2, 8)  # occurrences that models are trained on
NEAREST = 10
LEAST = 20  # occurrences of heads and of candidate neighbors
SETTINGS: dict[str, Any] = {"dim": 100, "epochs": 10, "min_count": 1, "subsample": 1e-4, "tokenizer": "whitespace"}


def sentences(data: Path) -> list[list[str]]:
    split = tokenizer("words", True)
    with lzma.open(data / "text" / "german.txt.xz", "rt", encoding="utf-8") as file:
        return [split(line) for line in file]


def compounds(counts: Counter[str], most: int, seed: int) -> dict[str, str]:
    """Return compounds with their heads: the longest frequent word that each ends in."""
    head_of = {}
    for word in sorted(word for word, count in counts.items() if LEAST <= count <= 400 and len(word) >= 12):
        ends = [word[start:] for start in range(4, len(word) - 4)]
        head = next((end for end in ends if counts[end] >= LEAST), None)
        if head:
            head_of[word] = head
    selected = np.random.default_rng(seed).permutation(list(head_of))[:most]
    return {word: head_of[word] for word in selected.tolist()}


def thinned(lines: list[list[str]], words: set[str], left: int) -> list[str]:
    """The text with the first `left` occurrences of each of `words` only."""
    met: Counter[str] = Counter()
    remaining = []
    for line in lines:
        here = []
        for word in line:
            met[word] += word in words
            if word not in words or met[word] <= left:
                here.append(word)
        remaining.append(" ".join(here))
    return remaining


def nearest(vectors: firth.Vectors, words: list[str], candidates: list[str]) -> list[set[str]]:
    scores = vectors.unit_of(words) @ vectors.unit_of(candidates).T
    return [{candidates[index] for index in np.argpartition(-row, NEAREST)[:NEAREST]} for row in scores]


def measure(data: Path, most: int, seed: int) -> dict[str, Any]:
    lines = sentences(data)
    counts = Counter(word for line in lines for word in line)
    heads = compounds(counts, most, seed)
    words = list(heads)
    candidates = [word for word, count in counts.items() if count >= LEAST and word not in heads]

    def fit(method: type[firth.Method], text: list[str], seed: int) -> firth.Vectors:
        return method(**SETTINGS).fit(text, firth.Run(seed=seed, threads=THREADS)).vectors

    def agreement(head_of: list[set[str]]) -> float:
        return float(np.mean([len(here & there) / NEAREST for here, there in zip(head_of, truth, strict=True)]))

    whole = [" ".join(line) for line in lines]
    judge, again = (fit(firth.SkipGram, whole, number) for number in (seed, seed + 1))
    truth = nearest(judge, words, candidates)
    results: dict[str, Any] = {
        "compounds": len(words),
        "examples": dict(list(heads.items())[:5]),
        "words": sum(counts.values()),
        "candidates": len(candidates),
        "again": agreement(nearest(again, words, candidates)),  # agreement with a second run of the reference
        "rows": [],
    }
    for left in LEFT:
        text = thinned(lines, set(words), left)
        row: dict[str, Any] = {
            "left": left,
            "FastText": agreement(nearest(fit(firth.FastText, text, seed), words, candidates)),
        }
        plain = fit(firth.SkipGram, text, seed)
        row["skip-gram"] = agreement(nearest(plain, words, candidates)) if left else None
        row["head"] = agreement(nearest(plain, list(heads.values()), candidates))
        print(row, file=sys.stderr)
        results["rows"].append(row)
    return results


def page(results: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/compounds.py DATA` on {results['machine']}, {results['date']}:"
    yield f"{results['words']:,} words of German speeches, {results['compounds']} compounds, one seed. Share of the ten"
    yield "words nearest to a compound, by skip-gram on the whole text, that are also among"
    yield f"{results['candidates']:,} words (that model with another seed: {results['again']:.0%}):"
    yield from (
        "",
        "| occurrences | FastText | skip-gram | vector of its head instead |",
        "| --- | ---: | ---: | ---: |",
    )
    for row in results["rows"]:
        plain = "no vector" if row["skip-gram"] is None else f"{row['skip-gram']:.1%}"
        times = {0: "never", 1: "once"}.get(row["left"], f"{row['left']} times")
        yield f"| {times} | {row['FastText']:.1%} | {plain} | {row['head']:.1%} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=300, help="how many compounds")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    results = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    results |= measure(arguments.data, arguments.words, arguments.seed)
    (HERE / "results" / "compounds.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = "\n".join(page(results))
    (HERE.parent / "docs" / "results" / "compounds.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
