"""tf-idf and LSA: Firth against scikit-learn on 20 newsgroups, in one interleaved run, with errors.

    python benchmarks/counting_methods.py DATA [--rounds 3] [--dim 300] [--asked 1000]

DATA holds documents/20news-train.jsonl.xz and 20news-test.jsonl.xz. Both get the texts in memory and all cores; the
best round counts. Also: how often the nearest training document is of the same newsgroup, by weighting.
Results: docs/results/counting.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import firth
from firth import kernels
from firth.training.truncated_svd import truncated_svd

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "counting.md"
# Firth's tokenizers as regular expressions.
PATTERNS = {
    "words": r"\w+(?:(?:(?<=[^\W\d_])['’](?=[^\W\d_])|(?<=\d)[.,](?=\d))\w+)*",
    "whitespace": r"\S+",
}


def read(path: Path) -> tuple[list[str], list[str]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [record["text"] for record in records], [str(record["label"]) for record in records]


def timed(peers: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the best time of each, interleaved, and their results."""
    best: dict[str, float] = {}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, work in peers.items():
            begin = time.perf_counter()
            results[name] = work()
            seconds = time.perf_counter() - begin
            best[name] = min(seconds, best.get(name, seconds))
    return best, results


def tfidf(texts: list[str], rounds: int) -> Iterator[str]:
    yield "| tf-idf from raw text | scikit-learn | Firth | | matrix | largest difference |"
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for split, pattern in PATTERNS.items():
        peer = TfidfVectorizer(token_pattern=pattern)
        method = firth.TfIdf(idf="smooth", tokenizer=split)
        peers: dict[str, Callable[[], Any]] = {
            "scikit-learn": lambda peer=peer: peer.fit_transform(texts),
            "Firth": lambda method=method: method.fit(texts),
        }
        best, results = timed(peers, rounds)
        theirs, mine = results["scikit-learn"], results["Firth"]
        order = [mine.vocabulary.ids[word] for word in peer.get_feature_names_out()]
        gap = abs(mine.matrix[:, order] - theirs).max()
        shape = f"{theirs.shape[0]:,} × {theirs.shape[1]:,}, {theirs.nnz:,} nonzero"
        if mine.matrix.nnz != theirs.nnz:
            shape += f" (Firth {mine.matrix.nnz:,})"
        ratio = best["scikit-learn"] / best["Firth"]
        yield (
            f"| {split} | {best['scikit-learn']:.2f} s | {best['Firth']:.2f} s | {ratio:.1f}× | {shape} | {gap:.0e} |"
        )


def lsa(texts: list[str], dim: int, rounds: int) -> Iterator[str]:
    matrix = firth.TfIdf(idf="smooth").fit(texts).matrix
    double = matrix.astype(np.float64)
    total = float((double.data**2).sum())

    def error(components: Any) -> float:
        """‖A − AVVᵀ‖, the rows of `components` orthonormal."""
        return float(np.sqrt(total - ((double @ components.T.astype(np.float64)) ** 2).sum()))

    peers: dict[str, Callable[[], Any]] = {
        "scikit-learn, float64": lambda: TruncatedSVD(dim, algorithm="randomized", random_state=0).fit(double),
        "scikit-learn, float32": lambda: TruncatedSVD(dim, algorithm="randomized", random_state=0).fit(matrix),
        "Firth": lambda: truncated_svd(matrix.T, dim),  # words × documents, as LSA asks for it
    }
    best, results = timed(peers, rounds)
    yield f"| truncated SVD of the tf-idf matrix, k = {dim} | seconds | | reconstruction error |"
    yield "| --- | ---: | ---: | ---: |"
    for name, result in results.items():
        components = result.left.T if name == "Firth" else result.components_
        yield f"| {name} | {best[name]:.2f} | {best[name] / best['Firth']:.1f}× | {error(components):.4f} |"
    yield ""
    mine = results["Firth"]
    yield f"Firth reports the error {mine.error:.4f}, and bounds the operator norm of the residual by"
    yield f"{mine.bound:.3f} (the last singular value is {mine.values[-1]:.3f})."


def nearest(data: Path, asked: int, dim: int) -> Iterator[str]:
    """Return the share of test documents whose nearest training document is of the same group."""
    texts, labels = read(data / "documents" / "20news-train.jsonl.xz")
    test, truth = (part[:: max(1, len(part) // asked)] for part in read(data / "documents" / "20news-test.jsonl.xz"))
    methods = {
        "counts": firth.Counts(),
        "counts, boolean": firth.Counts(tf="boolean"),
        "tf-idf, plain": firth.TfIdf(),
        "tf-idf, smooth": firth.TfIdf(idf="smooth"),
        "tf-idf, sublinear": firth.TfIdf(tf="sublinear"),
        "BM25": firth.TfIdf(tf="bm25", idf="bm25", norm="none"),
        f"LSA, {dim}": firth.LSA(dim=dim),
        f"LSA, {dim}, sublinear": firth.LSA(dim=dim, tf="sublinear"),
    }
    yield f"| nearest training document, {len(test):,} test documents | of the same newsgroup |"
    yield "| --- | ---: |"
    commonest = max(set(labels), key=labels.count)
    yield f"| always the most frequent group | {np.mean([label == commonest for label in truth]):.1%} |"
    for name, method in methods.items():
        model = method.fit(texts)
        hits = [model.neighbors(text, 1)[0].key for text in test]
        right = np.mean([labels[int(key) - 1] == label for key, label in zip(hits, truth, strict=True)])
        yield f"| {name} | {right:.1%} |"


def machine() -> str:
    with Path("/proc/cpuinfo").open() as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{model}, {firth.Run().cores} cores, {kernels.active_isa()}, scikit-learn {sklearn.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--asked", type=int, default=1000)
    arguments = parser.parse_args()
    texts, _ = read(arguments.data / "documents" / "20news-train.jsonl.xz")
    lines = [f"`python benchmarks/counting_methods.py DATA` on {machine()}, {time.strftime('%Y-%m-%d')}. 20 newsgroups"]
    size = f"{len(texts):,} documents, {sum(map(len, texts)) / 1e6:.0f} MB"
    lines += [f"(train): {size}. Interleaved, the best of {arguments.rounds} rounds.", ""]
    lines += [*tfidf(texts, arguments.rounds), "", *lsa(texts, arguments.dim, arguments.rounds), ""]
    lines += [*nearest(arguments.data, arguments.asked, arguments.dim), ""]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
