"""The defaults of unsupervised methods on small data, compared with a baseline that needs no training.

    python benchmarks/small_data.py DATA [--only words --only documents …] [--sizes 200,1000,5000] [--seeds 1]

Every method is trained with its defaults (`now`) and with its former defaults, which did not depend on the size of the
data (`before`). The rules were selected on docstrings, World(seed=5), Cora, the Wikipedia pages of OpenNE, PPI and a
part of Last.fm's training data (LOG.md); the data reported here are different, except for PPI:

- words: the first documents of 20 newsgroups. For words typical of a newsgroup (by other documents), the share of the
  5 nearest such words that are typical of the same one; words without a vector count as chance.
  Baseline: rows of raw counts.
- documents: a linear probe's accuracy on 1,000 other documents. Baseline: tf-idf; for tf-idf itself the largest class.
- graphs: Macro-F1 of a linear probe, half of the nodes labeled, snowball samples of BlogCatalog, and the protein
  (PPI) and part-of-speech (POS) graphs of node2vec where DATA has them (graphs/ppi.mat, graphs/pos.mat). Baseline: the
  degree.
- people: recall@20 on Last.fm's test1 for some users of data1, and on World(seed=8). Baseline: popularity; of
  RatingFactors (RMSE) the mean.
- tables: unexplained variance of held-out rows with 8 dimensions: scikit-learn's digits and breast cancer.
  Baseline: PCA.
- language: held-out loss of small GPT, BERT and Seq2Seq. Baseline: the frequency of tokens.

DATA holds documents/20news-train.jsonl.xz and 20news-test.jsonl.xz, graphs/blogcatalog, people/lastfm and
translation/multi30k. Results, after each part: benchmarks/results/small_data.json and docs/results/small-data.md; a run
adds to what is there.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.data.tokenizer import tokenizer  # noqa: E402
from firth.data.world import World  # noqa: E402

RESULTS, PAGE = HERE / "results" / "small_data.json", HERE.parent / "docs" / "results" / "small-data.md"
HELD_OUT = 3000  # documents not used for training
NEAR = 5
#: The former defaults, which did not depend on the size of the data.
BEFORE: dict[str, dict[str, Any]] = {
    **{key: {"min_count": 5, "epochs": 5} for key in ("SkipGram", "CBOW", "FastText")},
    "GloVe": {"min_count": 5, "epochs": 15, "weighting": "harmonic"},
    "PMI": {"min_count": 5},
    "Doc2Vec": {"min_count": 5, "epochs": 20},
    **{key: {"negatives": 10, "share_negatives": True} for key in ("DeepWalk", "Node2Vec")},
    "ALS": {"regularization": 10.0},
    "BPR": {"regularization": 0.01},
    "Item2Vec": {"epochs": 20, "subsample": 1e-3},
    **{key: {"batch_tokens": 8192} for key in ("GPT", "BERT", "Seq2Seq")},
}
SMALL_NETS: dict[str, dict[str, Any]] = {  # the default sizes need a GPU
    "GPT": {"layers": 2, "dim": 96, "heads": 2, "context_length": 64, "vocabulary_size": 2000},
    "BERT": {"size": "tiny", "vocabulary_size": 2000},
    "Seq2Seq": {"layers": 1, "dim": 96, "heads": 2, "vocabulary_size": 2000},
}
Row = dict[str, Any]
words_of = tokenizer("words", True)


# ---- texts ----


@cache
def newsgroups(data: Path) -> list[tuple[str, str]]:
    rows = []
    for part in ("train", "test"):
        with lzma.open(data / "documents" / f"20news-{part}.jsonl.xz", "rt", encoding="utf-8") as file:
            rows += [(row["text"], row["label"]) for row in map(json.loads, file)]
    return [rows[index] for index in np.random.default_rng(5).permutation(len(rows))]


def sampled(data: Path, size: int, seed: int) -> list[tuple[str, str]]:
    rest = newsgroups(data)[HELD_OUT:]
    return [rest[index] for index in np.random.default_rng(seed).permutation(len(rest))[:size]]


@cache
def telling_words(data: Path) -> dict[str, str]:
    """Return words by the newsgroup that has at least half of their occurrences in documents not trained on."""
    held_out = newsgroups(data)[:HELD_OUT]
    labels = sorted({label for _, label in held_out})
    column = {label: index for index, label in enumerate(labels)}
    sizes, seen = np.zeros(len(labels)), defaultdict[str, Any](lambda: np.zeros(len(labels)))
    for text, label in held_out:
        sizes[column[label]] += 1
        for word in set(words_of(text)):
            seen[word][column[label]] += 1
    result = {}
    for word, counts in seen.items():
        shares = counts / np.maximum(sizes, 1)
        if counts.sum() >= 15 and word.isalpha() and len(word) > 2 and shares.max() >= 0.5 * shares.sum():
            result[word] = labels[int(shares.argmax())]
    return dict(sorted(result.items(), key=lambda item: -seen[item[0]].sum())[:600])


def purity(data: Path, texts: list[str], keys: Any, matrix: Any) -> float:
    met = {word for text in texts for word in words_of(text)}
    wanted = {word: label for word, label in telling_words(data).items() if word in met}
    rows = {key: row for row, key in enumerate(keys)}
    known = [word for word in wanted if word in rows]
    labels = np.array([wanted[word] for word in known])
    everywhere = np.array(list(wanted.values()))
    chance = float(np.mean([np.mean(everywhere == label) for label in everywhere]))
    if len(known) <= NEAR:
        return chance
    unit = np.asarray(matrix[[rows[word] for word in known]], np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T - 9 * np.eye(len(known))
    same = (labels[np.argsort(-cosines, axis=1)[:, :NEAR]] == labels[:, None]).mean(axis=1)
    return float((same.sum() + chance * (len(wanted) - len(known))) / len(wanted))


def words(data: Path, size: int, seed: int) -> Iterator[Row]:
    texts = [text for text, _ in sampled(data, size, seed)]
    counted = firth.PMI(min_count=1, dim=1).fit(texts)
    ids = {word: row for row, word in enumerate(counted.vocabulary.tokens)}
    known = [word for word in telling_words(data) if word in ids]
    baseline = purity(data, texts, known, counted.counts[[ids[word] for word in known]].toarray())

    def score(method: firth.Method) -> float:
        vectors = method.fit(texts, firth.Run(seed=seed)).vectors
        return purity(data, texts, vectors.keys, vectors.matrix)

    for name in ("SkipGram", "CBOW", "FastText", "GloVe", "PMI"):
        if name != "FastText" or size < 5000:  # minutes
            yield compared(name, "20 newsgroups", size, score, "raw counts", baseline)


def documents(data: Path, size: int, seed: int) -> Iterator[Row]:
    train, test = sampled(data, size, seed), newsgroups(data)[:1000]
    (texts, labels), (others, wanted) = (tuple(zip(*part, strict=True)) for part in (train, test))

    def score(method: firth.Method) -> float:
        model = method.fit(list(texts), firth.Run(seed=seed))
        if isinstance(method, firth.TfIdf):
            return probed(model.weighted(texts).matrix, labels, model.weighted(others).matrix, wanted)
        return probed(model.documents.matrix, labels, model.embed(others), wanted)

    largest = max(set(labels), key=labels.count)
    tfidf = compared(
        "TfIdf", "20 newsgroups", size, score, "largest class", float(np.mean([largest == w for w in wanted]))
    )
    yield tfidf
    for name in ("LSA", "Doc2Vec"):
        yield compared(name, "20 newsgroups", size, score, "tf-idf", tfidf["now"])


def probed(rows: Any, labels: Any, others: Any, wanted: Any) -> float:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.preprocessing import normalize

    return float(RidgeClassifier().fit(normalize(rows), labels).score(normalize(others), wanted))


# ---- graphs ----


@cache
def graph(data: Path, name: str) -> tuple[list[tuple[str, str, float]], dict[str, list[str]]]:
    if name == "BlogCatalog":
        folder = data / "graphs" / "blogcatalog"
        result = firth.Graph(folder / "bc_adjlist.txt.xz", layout="adjacency")
        ends = zip(result.sources().tolist(), result.neighbors.tolist(), strict=True)
        edges = [(result.keys[a], result.keys[b], 1.0) for a, b in ends if a <= b]
        return edges, evaluate.read_labels(folder / "bc_labels.txt")
    import scipy.io
    import scipy.sparse

    file = scipy.io.loadmat(data / "graphs" / f"{name.lower()}.mat")
    links, groups = scipy.sparse.triu(file["network"]).tocoo(), scipy.sparse.csr_matrix(file["group"])
    edges = [(str(a), str(b), float(w)) for a, b, w in zip(links.row, links.col, links.data, strict=True)]
    return edges, {str(node): [str(label) for label in groups[node].indices] for node in range(groups.shape[0])}


def snowball(edges: list[tuple[str, str, float]], size: int, seed: int) -> set[str]:
    """Return a snowball sample from a random node, with at most five neighbors of each node."""
    near = defaultdict[str, list[str]](list)
    for one, other, _ in edges:
        near[one].append(other)
        near[other].append(one)
    random, nodes, result, queue = np.random.default_rng(seed), sorted(near), set[str](), list[str]()
    while len(result) < size:
        node = queue.pop(0) if queue else nodes[random.integers(len(nodes))]
        if node not in result:
            result.add(node)
            fresh = [other for other in near[node] if other not in result]
            queue += [fresh[index] for index in random.permutation(len(fresh))[:5]]
    return result


def graphs(data: Path, size: int, seed: int) -> Iterator[Row]:
    there = [name for name in ("PPI", "POS") if (data / "graphs" / f"{name.lower()}.mat").exists()]
    for name in ("BlogCatalog", *(there if size == 5000 else ())):  # about as many nodes, used completely
        edges, labels = graph(data, name)
        if name == "BlogCatalog":
            nodes = snowball(edges, size, seed)
            edges = [edge for edge in edges if edge[0] in nodes and edge[1] in nodes]
            labels = {node: result for node, result in labels.items() if node in nodes}
        result = firth.Graph(edges)

        def score(method: firth.Method, result: Any = result, labels: Any = labels) -> float:
            return macro(method.fit(result, firth.Run(seed=seed)).vectors, labels)

        degrees = np.log1p(np.diff(result.starts)).astype(np.float32)
        baseline = macro(firth.Vectors(result.keys, np.stack([degrees, np.ones_like(degrees)], axis=1)), labels)
        for method in ("Node2Vec",) if size == 5000 else ("DeepWalk", "Node2Vec"):
            yield compared(method, name, len(result), score, "degree", baseline)


def macro(vectors: firth.Vectors, labels: Any) -> float:
    return evaluate.node_classification(vectors, labels, splits=3).macro_f1


# ---- people ----


def interactions(data: Path, name: str, users: int, seed: int) -> tuple[list[Any], list[Any]]:
    if name == "Last.fm":
        train, test = (
            [line.split() for line in (data / "people" / "lastfm" / file).read_text(encoding="utf-8").splitlines()]
            for file in ("data1.txt", "test1.txt")
        )
        who = sorted({row[0] for row in train})
        some = {who[index] for index in np.random.default_rng(seed).permutation(len(who))[:users]}
        return tuple([(a, b, float(c)) for a, b, c in part if a in some] for part in (train, test))  # type: ignore[return-value]
    met = World(seed=8).ratings(users, 400, 12)
    rows = [(str(a), str(b), float(c)) for a, b, c in zip(met.users, met.items, met.ratings, strict=True)]
    hidden = np.random.default_rng(seed).random(len(rows)) < 0.2
    parts = ([row for row, hide in zip(rows, hidden, strict=True) if hide == part] for part in (False, True))
    return tuple(parts)  # type: ignore[return-value]


def people(data: Path, size: int, seed: int) -> Iterator[Row]:
    for name in ("Last.fm", "World"):
        if name == "Last.fm" and size > 1892:
            continue
        train, test = (firth.Interactions(rows) for rows in interactions(data, name, size, seed))
        beside: dict[str, float] = {}

        def score(method: firth.Method, train: Any = train, test: Any = test, beside: Any = beside) -> float:
            model = method.fit(train, firth.Run(seed=seed))
            if isinstance(method, firth.RatingFactors):
                errors = evaluate.rating_errors(model, test)
                beside["baseline"] = errors.mean_rmse
                return errors.rmse
            result = evaluate.recommendations(model, test, metrics=("recall@20",))
            beside["baseline"] = result.scores["popularity"]["recall@20"]
            return result["recall@20"]

        methods = ["ALS", "BPR", "Item2Vec", *(["MultVAE", "MultDAE"] if size < 1000 else [])]
        for method in [*methods, *(["RatingFactors"] if name == "World" else [])]:
            row = compared(method, name, size, score, "mean (RMSE)" if method == "RatingFactors" else "popularity", 0.0)
            yield row | {"baseline_score": beside["baseline"]}


# ---- tables and language ----


def tables(data: Path, size: int, seed: int) -> Iterator[Row]:
    from sklearn.datasets import load_breast_cancer, load_digits

    for name, source in (("digits", load_digits()), ("breast cancer", load_breast_cancer())):
        rows = source.data[np.random.default_rng(seed).permutation(len(source.data))].astype(np.float64)
        rows = rows[:, rows.std(axis=0) > 0]
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        if len(rows) < size + 100:
            continue
        train, test = rows[:size], rows[-100:]

        def score(method: firth.Method, train: Any = train, test: Any = test) -> float:
            table = method.fit(train, firth.Run(seed=seed)).reconstruct(test)
            rebuilt = np.stack([table.numbers(column) for column in table.names], axis=1)
            return float(((test - rebuilt) ** 2).sum() / ((test - train.mean(axis=0)) ** 2).sum())

        baseline = score(firth.PCA(dim=8))
        for method in ("Autoencoder", "VAE"):
            yield compared(method, name, size, score, "PCA (lost variance)", baseline)


def language(data: Path, size: int, seed: int) -> Iterator[Row]:
    if size > 1000:
        return
    texts = [" ".join(text.split()[:60]) for text, _ in sampled(data, size, seed)]
    files = (data / "translation" / "multi30k" / f"train.lc.norm.tok.{side}.xz" for side in ("en", "de"))
    sides = (lzma.decompress(file.read_bytes()).decode().splitlines()[:size] for file in files)
    pairs = list(zip(*sides, strict=True))
    for name, rows in (("GPT", texts), ("BERT", texts), ("Seq2Seq", pairs)):
        beside: dict[str, float] = {}

        def score(method: firth.Method, rows: Any = rows, beside: Any = beside) -> float:
            measured_metrics = method.fit(rows, firth.Run(seed=seed)).training
            beside["baseline"] = measured_metrics["baseline_loss"]
            return float(measured_metrics["held_out_loss"])

        what = "Multi30k" if name == "Seq2Seq" else "20 newsgroups, first 60 words"
        row = compared(name, what, size, score, "frequency (loss)", 0.0, **SMALL_NETS[name])
        yield row | {"baseline_score": beside["baseline"]}


# ---- the page ----


def compared(
    name: str, data: str, size: int, score: Callable[..., float], baseline: str, against: float, **settings: Any
) -> Row:
    method = getattr(firth, name)
    began = time.process_time()
    now = score(method(**settings))
    seconds = time.process_time() - began
    before = score(method(**settings, **BEFORE[name])) if name in BEFORE else now
    changed = ", ".join(BEFORE.get(name, {}))
    row = {"method": name, "data": data, "size": size, "baseline": baseline, "baseline_score": against}
    row |= {"before": before, "now": now, "seconds": seconds, "changed": changed}
    print(json.dumps(row), file=sys.stderr)
    return row


PARTS = {
    "words": words,
    "documents": documents,
    "graphs": graphs,
    "people": people,
    "tables": tables,
    "language": language,
}


def page(results: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/small_data.py DATA` on {results['machine']}, {results['date']};"
    yield "mean over the seeds. Lower is better for RMSE, lost variance and loss. Before: the defaults of large data."
    yield ""
    yield "| method | data | size | baseline | | before | now | selected by the size of the data | CPU s | seeds |"
    yield "| --- | --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |"
    for part in PARTS:
        groups = defaultdict[tuple[str, str, int], list[Row]](list)
        for row in results["parts"].get(part, {}).values():
            groups[row["method"], row["data"], row["size"]].append(row)
        for (method, data, size), rows in groups.items():
            means = {
                name: np.mean([row[name] for row in rows]) for name in ("baseline_score", "before", "now", "seconds")
            }
            numbers = " | ".join(f"{means[name]:.3f}" for name in ("baseline_score", "before", "now"))
            cells = f"{rows[0]['baseline']} | {numbers} | {rows[0]['changed'] or 'nothing'}"
            yield f"| {method} | {data} | {size:,} | {cells} | {means['seconds']:.1f} | {len(rows)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=tuple(PARTS), action="append")
    parser.add_argument("--sizes", default="200,1000,5000")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", firth.FirthWarning)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"parts": {}}
    results |= {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    for part in arguments.only or PARTS:
        for size in map(int, arguments.sizes.split(",")):
            for seed in range(1, arguments.seeds + 1):
                for row in PARTS[part](arguments.data, size, seed):
                    rows = results["parts"].setdefault(part, {})
                    rows[f"{row['method']}, {row['data']}, {row['size']}, seed {seed}"] = row
                    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
                    PAGE.write_text("\n".join([*page(results), ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
