"""From one-hot to GloVe on one corpus: what each step adds, measured.

    python benchmarks/road.py DATA [--words 4000000] [--vocabulary 10000] [--work FOLDER]

DATA is laid out as for benchmarks/words.py. The text is split into documents of 1,000 words, so words have
documents as well as neighbors as contexts. Every step uses the same vocabulary, and its word vectors are evaluated on
WS-353 (word similarity, Spearman) and Google's analogies. Writes docs/results/road.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import first_words, machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.core.sparse import SparseVectors  # noqa: E402

DOCUMENT = 1000  # words


class Step(NamedTuple):
    name: str
    says: str  # what is new in it
    vectors: Callable[[firth.Corpus], firth.Vectors]


def steps(base: dict[str, Any]) -> list[Step]:
    """Return the steps. `base` holds the options that all text methods share."""
    counted: dict[str, Any] = {}

    def one_hot(corpus: firth.Corpus) -> firth.Vectors:
        return firth.OneHot().fit(firth.Counts(**base).fit(corpus).vocabulary).vectors

    def pairs(variant: str) -> Callable[[firth.Corpus], firth.Vectors]:
        def rows(corpus: firth.Corpus) -> firth.Vectors:
            model = firth.PMI(**base, dim=2, variant=variant, smoothing=1.0).fit(corpus)
            counted["model"] = model
            return SparseVectors(model.vectors.keys, model.matrix.tocsr())

        return rows

    def raw_pairs(corpus: firth.Corpus) -> firth.Vectors:
        pairs("pmi")(corpus)
        return SparseVectors(counted["model"].vectors.keys, counted["model"].counts.tocsr().astype("float32"))

    def words_of(method: Any) -> Callable[[firth.Corpus], firth.Vectors]:
        return lambda corpus: method.fit(corpus).words

    def vectors_of(method: Any) -> Callable[[firth.Corpus], firth.Vectors]:
        return lambda corpus: method.fit(corpus).vectors

    documents = "documents as contexts"
    return [
        Step("one-hot", "a word is only itself: all words are equally far apart", one_hot),
        Step("counts", f"{documents}: how often a word stands in each", words_of(firth.Counts(**base))),
        Step("tf-idf", "common words count less", words_of(firth.TfIdf(**base))),
        Step("LSA, 300", "short, dense vectors by SVD", words_of(firth.LSA(**base, dim=300))),
        Step("pair counts", "neighbors as contexts (window 5)", raw_pairs),
        Step("PMI", "more than chance would have it, in bits", pairs("pmi")),
        Step("PPMI", "negative values, which are unreliable, become 0", pairs("ppmi")),
        Step("NPMI", "rare pairs are held back", pairs("npmi")),
        Step("PPMI + SVD, 300", "short, dense vectors", vectors_of(firth.PMI(**base, dim=300))),
        Step(
            "GloVe, 100",
            "the logarithm of the counts factorised, frequent pairs weighing more",
            vectors_of(firth.GloVe(**base, dim=100)),
        ),
        Step(
            "skip-gram, 100",
            "no counts: each word predicts its neighbors",
            vectors_of(firth.SkipGram(**base, dim=100)),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = first_words(plain_text(arguments.data, arguments.work), arguments.words, arguments.work)
    words = text.read_text(encoding="utf-8").split()
    corpus = firth.Corpus([" ".join(words[at : at + DOCUMENT]) for at in range(0, len(words), DOCUMENT)])
    base = {"tokenizer": "whitespace", "min_count": 5, "max_vocabulary": arguments.vocabulary}
    questions = evaluate.read_questions(arguments.data / "words" / "questions-words.txt")
    pairs = evaluate.read_pairs(arguments.data / "words" / "EN-WS-353-ALL.txt")
    lines = [
        f"`python benchmarks/road.py DATA` on {machine()}, {time.strftime('%Y-%m-%d')}: {len(words):,} words in "
        f"documents of {DOCUMENT:,}, the {arguments.vocabulary:,} most frequent.",
        "",
        "| | what is new | numbers a word | WS-353 | analogies | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for step in steps(base):
        began = time.perf_counter()
        vectors = step.vectors(corpus)
        seconds = time.perf_counter() - began
        alike = evaluate.word_similarity(vectors, pairs)
        right = evaluate.analogies(vectors, questions, restrict=arguments.vocabulary).total
        size = (
            f"{vectors.sparse.nnz / len(vectors):,.0f} nonzero" if isinstance(vectors, SparseVectors) else vectors.dim
        )
        rho = "–" if alike.spearman != alike.spearman else f"{alike.spearman:.3f}"
        lines.append(f"| {step.name} | {step.says} | {size} | {rho} | {right.accuracy:.1%} | {seconds:.1f} |")
        print(lines[-1], file=sys.stderr)
    lines += ["", f"{alike.answered} pairs and {right.answered:,} questions lie within the vocabulary.", ""]
    page = HERE.parent / "docs" / "results" / "road.md"
    page.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
