"""Vectors of words that a model lacks, from their contexts or from their letters.

    python benchmarks/unknown_words.py DATA [--words 4000000] [--seeds 2] [--held-out 100] [--no-fasttext]

DATA holds text/wiki17m.txt.xz. Words that occur 60 to 400 times are held out at random: models are trained on the text
without them, and their vectors are computed from 1, 4, 16 and 64 of their windows (the tokens around an occurrence in
the full text), or by FastText from their n-grams. A vector is judged by its ten nearest neighbors among the 20,000 most
frequent words: how many of them are among the ten that the word has in a model trained on the full text. The ceiling is
the overlap of two such models with different seeds. The last part asks for the neighbors of tezgüino after four
sentences. Result: docs/results/unknown-words.md.
"""

from __future__ import annotations

import argparse
import lzma
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import firth
from firth.core.report import LogLines
from firth.core.vectors import Vectors
from firth.evaluate.layout import markdown_table, percent
from firth.words.context_transform import window_rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "unknown-words.md"
CONTEXTS = (1, 4, 16, 64)
FREQUENT, NEIGHBORS, WINDOW = 20_000, 10, 5
TEZGUINO = (
    "A bottle of tezgüino is on the table.",
    "Everybody likes tezgüino.",
    "Tezgüino makes you drunk.",
    "We make tezgüino out of corn.",
)


def windows_of(tokens: Sequence[str], words: Sequence[str], seed: int) -> dict[str, list[list[str]]]:
    """Return the tokens around some occurrences of each word, as texts."""
    places: dict[str, list[int]] = {word: [] for word in words}
    for position, token in enumerate(tokens):
        if token in places:
            places[token].append(position)
    random = np.random.default_rng(seed)
    return {
        word: [list(tokens[max(0, at - 2 * WINDOW) : at + 2 * WINDOW + 1]) for at in random.permutation(found)]
        for word, found in places.items()
    }


def mean_vector(model: firth.Model, word: str, texts: list[list[str]], smoothing: float) -> NDArray[np.float32]:
    """Return the mean of the word vectors around a word, without a transform."""
    rows, _ = window_rows(texts, word, model.vectors.rows, WINDOW)
    counts = model.vocabulary.counts
    weights = smoothing / (smoothing + counts[rows] / counts.sum()) if smoothing else np.ones(len(rows))
    return np.average(model.vectors.matrix[rows], axis=0, weights=weights).astype(np.float32)


def nearest(vectors: Vectors, query: str | NDArray[np.float32], without: str) -> set[str]:
    hits = vectors.neighbors(query, k=NEIGHBORS + 1, restrict=FREQUENT)
    return {hit.key for hit in [hit for hit in hits if hit.key != without][:NEIGHBORS]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--no-fasttext", action="store_true")
    given = parser.parse_args()
    with lzma.open(given.data / "text/wiki17m.txt.xz", "rt", encoding="utf-8") as file:
        tokens = file.read(8 * given.words).split()[: given.words]
    rows: dict[str, list[list[float]]] = {}
    tezguino = list[str]()
    for seed in range(1, given.seeds + 1):
        run = firth.Run(seed=seed, report=LogLines(progress=False))
        method = firth.SkipGram(dim=100, tokenizer="whitespace", min_count=5)
        full, other = method.fit([tokens], run), method.fit([tokens], firth.Run(seed=seed + 100, report=run.report))
        counts = full.vocabulary.counts
        rare = np.flatnonzero((counts >= 60) & (counts <= 400))
        chosen = np.random.default_rng(seed).choice(rare, given.held_out, replace=False)
        held = [full.vocabulary.tokens[row] for row in chosen]
        out = set(held)
        rest = [token for token in tokens if token not in out]
        model = method.fit([rest], run).with_context_transform([rest], run)
        uses = windows_of(tokens, held, seed)
        truth = {word: nearest(full.vectors, word, word) - out for word in held}

        def overlap(vectors: Vectors, query: Callable[[str], str | NDArray[np.float32]]) -> float:
            shares = [len(nearest(vectors, query(word), word) & truth[word]) / NEIGHBORS for word in held]  # noqa: B023
            return statistics.mean(shares)

        def by_contexts(vector: Callable[[str, list[list[str]]], NDArray[np.float32]]) -> list[float]:
            return [overlap(model.vectors, lambda w, n=n: vector(w, uses[w][:n])) for n in CONTEXTS]  # noqa: B023

        found = {
            "mean of word vectors": by_contexts(lambda w, texts: mean_vector(model, w, texts, 0)),  # noqa: B023
            "the same, smoothing 1e-3": by_contexts(lambda w, texts: mean_vector(model, w, texts, 1e-3)),  # noqa: B023
            "learned transform": by_contexts(model.vector_from_contexts),
            "full text, another seed": [overlap(other.vectors, str)] * len(CONTEXTS),
        }
        if not given.no_fasttext:
            subwords = firth.FastText(dim=100, tokenizer="whitespace", min_count=5).fit([rest], run)
            found["FastText, from n-grams"] = [overlap(subwords.vectors, lambda w: subwords.vectors[w])] * len(CONTEXTS)  # noqa: B023
        for name, shares in found.items():
            rows.setdefault(name, []).append(shares)
        hits = model.vectors.neighbors(
            model.vector_from_contexts("tezgüino", [text.lower().replace(".", "").split() for text in TEZGUINO]),
            k=NEIGHBORS,
            restrict=FREQUENT,
        )
        tezguino.append(", ".join(hit.key for hit in hits))
        print(seed, found, tezguino[-1], file=sys.stderr, flush=True)
    cells = [
        [name, *(percent(statistics.mean(each[n] for each in shares)) for n in range(len(CONTEXTS)))]
        for name, shares in rows.items()
    ]
    header = ["vector", *(f"{n} contexts" if n > 1 else "1 context" for n in CONTEXTS)]
    page = [
        f"`python benchmarks/unknown_words.py DATA --words {given.words}`: {given.held_out} held-out words, "
        f"overlap of ten neighbors, mean of {given.seeds} seeds.",
        "",
        markdown_table(header, cells, numbers=range(1, len(header))),
        "",
        "Neighbors of *tezgüino* after the four sentences, by seed: "
        + "; ".join(f"*{each}*" for each in tezguino)
        + ".",
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
