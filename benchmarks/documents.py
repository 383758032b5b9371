"""Doc2Vec: Firth against gensim: speed of training and inference, and the accuracy of a linear probe.

    python benchmarks/documents.py DATA [--rounds 3] [--seeds 2] [--epochs 20] [--modes dbow] [--only speed|quality]

DATA holds documents/20news-train.jsonl.xz and 20news-test.jsonl.xz ({label, id, text} per line) and
text/wiki17m.txt.xz, which is cut into documents of 230 words, the mean of IMDB's reviews. Both libraries get the same
words, split at spaces, one document per line; 100 dimensions, window 5, 5 negative samples, min_count 5, 2 threads.

Speed: raw words per second of training, one epoch (ten for 20 newsgroups alone, because one would take Firth less than
half a second), without the vocabulary pass; runs are interleaved and the best round counts.
Quality: trained on 20news-train; a logistic regression on the trained documents' vectors predicts the groups of
20news-test, whose vectors are inferred with as many epochs. Inference: the first 10,000 texts of test and train; gensim
one by one, its only mode, Firth in one call on 2 threads, including tokenization. Firth starts inference at half the
learning rate; gensim is reported with its default and with that.
Results: benchmarks/results/documents.json and docs/results/documents.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import ask  # noqa: E402
from benchmarks.words import machine, plain_text  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import firth  # noqa: E402
from firth.data.tokenizer import tokenizer  # noqa: E402

THREADS, DIM, INFERRED = 2, 100, 10_000
DOCUMENT = 230  # words
NEWS_EPOCHS = 10  # epochs of the speed test on the newsgroups: a single one is too short to time
MODES = {"dbow": {}, "dbow with words": {"train_words": True}, "dm": {"mode": "dm"}}
NAMED = ("Firth", "gensim", "gensim, half the learning rate")
NEWS, LARGE = "20 newsgroups", "20 newsgroups and Wikipedia"


class Texts:
    """Files with one document per line, words separated by spaces."""

    def __init__(self, data: Path, work: Path) -> None:
        self.work = work
        self.labels: dict[str, list[str]] = {}
        self.files = {part: self.news(data, part) for part in ("train", "test")}
        self.files["large"] = self.large(data)
        lines = [line for part in ("test", "train") for line in self.lines(part)]
        self.files["inferred"] = work / f"inferred-{INFERRED}.txt"
        self.files["inferred"].write_text("\n".join(lines[:INFERRED]) + "\n", encoding="utf-8")

    def news(self, data: Path, part: str) -> Path:
        split = tokenizer("words", True)
        with lzma.open(data / "documents" / f"20news-{part}.jsonl.xz", "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        self.labels[part] = [record["label"] for record in records]
        path = self.work / f"20news-{part}.txt"
        path.write_text("".join(" ".join(split(record["text"])) + "\n" for record in records), encoding="utf-8")
        return path

    def large(self, data: Path) -> Path:
        """The groups, then Wikipedia."""
        path = self.work / "20news-wiki.txt"
        words = plain_text(data, self.work).read_text(encoding="utf-8").split()
        documents = (" ".join(words[start : start + DOCUMENT]) for start in range(0, len(words), DOCUMENT))
        path.write_text("\n".join([*self.lines("train"), *documents]) + "\n", encoding="utf-8")
        return path

    def lines(self, part: str) -> list[str]:
        return self.files[part].read_text(encoding="utf-8").split("\n")[:-1]


def method(mode: str, epochs: int) -> firth.Doc2Vec:
    return firth.Doc2Vec(dim=DIM, epochs=epochs, tokenizer="whitespace", lowercase=False, **MODES[mode])


def gensim(mode: str, epochs: int, corpus: Path, seed: int = 1, **job: Any) -> dict[str, Any]:
    job |= {"mode": mode, "dim": DIM, "epochs": epochs, "threads": THREADS, "seed": seed, "corpus": str(corpus)}
    return ask("gensim", job, "documents.py")


# ---- speed ----


def firth_speed(mode: str, epochs: int) -> Callable[[Path], float]:
    run = firth.Run(threads=THREADS)

    def speed(path: Path) -> float:
        return float(method(mode, epochs).fit(firth.Corpus(path), run).training["words_per_second"])

    # Short runs are timed twice, because they are more sensitive to other load.
    return lambda path: max(speed(path) for _ in range(2))


def gensim_speed(mode: str, epochs: int) -> Callable[[Path], float]:
    return lambda path: float(gensim(mode, epochs, path)["words_per_second"])


def measure_speed(texts: Texts, rounds: int, modes: list[str]) -> list[dict[str, Any]]:
    rows = [(LARGE, "large", "dbow"), *((NEWS, "train", mode) for mode in modes)]
    best: dict[tuple[str, str, str], float] = {}
    for turn in range(rounds):
        for data, part, mode in rows:
            epochs = 1 if data == LARGE else NEWS_EPOCHS
            for name, measure in (("Firth", firth_speed(mode, epochs)), ("gensim", gensim_speed(mode, epochs))):
                result = measure(texts.files[part])
                best[data, mode, name] = max(result, best.get((data, mode, name), 0.0))
                print(
                    f"round {turn + 1}  {data:<28} {mode:<16} {name:<7} {result / 1e6:6.2f}M words/s", file=sys.stderr
                )
    return [
        {"data": data, "mode": mode, **{name: best[data, mode, name] for name in ("Firth", "gensim")}}
        for data, _, mode in rows
    ]


# ---- quality and inference ----


def probe(documents: Any, labels: list[str], others: Any, other_labels: list[str]) -> float:
    scaled = StandardScaler().fit(documents)
    model = LogisticRegression(C=0.1, max_iter=300).fit(scaled.transform(documents), labels)
    return float(model.score(scaled.transform(others), other_labels))


def measure_quality(texts: Texts, seeds: int, epochs: int, modes: list[str]) -> list[dict[str, Any]]:
    """Return the accuracy of each seed and the seconds of each inference."""
    truth = texts.labels["train"], texts.labels["test"]
    rows: list[dict[str, Any]] = []
    for mode in modes:
        row: dict[str, Any] = {"mode": mode, **{name: [] for name in (*NAMED, "Firth infers", "gensim infers")}}
        for seed in range(1, seeds + 1):
            documents, inferred, seconds = firth_vectors(texts, mode, seed, epochs)
            row["Firth"].append(probe(documents, truth[0], inferred[: len(truth[1])], truth[1]))
            row["Firth infers"].append(seconds)
            documents, inferred, halved, seconds = gensim_vectors(texts, mode, seed, epochs)
            row["gensim"].append(probe(documents, truth[0], inferred[: len(truth[1])], truth[1]))
            row["gensim, half the learning rate"].append(probe(documents, truth[0], halved, truth[1]))
            row["gensim infers"].append(seconds)
            print(f"seed {seed}: {json.dumps(row)}", file=sys.stderr)
        rows.append(row)
    return rows


def firth_vectors(texts: Texts, mode: str, seed: int, epochs: int) -> tuple[Any, Any, float]:
    run = firth.Run(threads=THREADS, seed=seed)
    model = method(mode, epochs).fit(firth.Corpus(texts.files["train"]), run)
    began = time.perf_counter()
    inferred = model.embed_with_counts(texts.lines("inferred"), threads=THREADS).matrix
    return model.documents.matrix, inferred, time.perf_counter() - began


def gensim_vectors(texts: Texts, mode: str, seed: int, epochs: int) -> tuple[Any, Any, Any, float]:
    output, texts_file = str(texts.work / "gensim-documents"), str(texts.files["inferred"])
    job = {"infer": texts_file, "output": output, "halved": len(texts.labels["test"])}
    result = gensim(mode, epochs, texts.files["train"], seed, **job)
    vectors = [np.load(f"{output}.{name}.npy") for name in ("documents", "inferred", "halved")]
    return vectors[0], vectors[1], vectors[2], result["infer_seconds"]


# ---- results page ----


def page(results: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/documents.py DATA` on {results['machine']}, {results['date']}."
    yield f"{DIM} dimensions, {THREADS} threads; Wikipedia is cut into documents of 230 words."
    if "speed" in results:
        rounds = f"rounds, of which the best counts: {results['rounds']}"
        yield f"Speed: one epoch, {NEWS_EPOCHS} for the newsgroups alone; {rounds}."
        yield from (
            "",
            "| training | Firth, words/s | gensim, words/s | Firth is faster by |",
            "| --- | ---: | ---: | ---: |",
        )
        for row in results["speed"]:
            ours, theirs = row["Firth"], row["gensim"]
            yield f"| {row['data']}: {row['mode']} | {ours / 1e6:.2f}M | {theirs / 1e6:.2f}M | {ours / theirs:.1f}× |"
    if "quality" in results:
        seeds = len(results["quality"][0]["Firth"])
        yield from (
            "",
            f"20 newsgroups, {results['epochs']} epochs of training and of inference; seeds: {seeds}. Share of the",
        )
        yield "test texts whose group is predicted correctly by a logistic regression on the training texts' vectors:"
        yield from ("", f"| | {' | '.join(NAMED)} |", "| --- | ---: | ---: | ---: |")
        for row in results["quality"]:
            yield f"| {row['mode']} | {' | '.join(f'{statistics.mean(row[name]):.1%}' for name in NAMED)} |"
        yield from (
            "",
            f"| {INFERRED:,} texts inferred | Firth | gensim | Firth is faster by |",
            "| --- | ---: | ---: | ---: |",
        )
        for row in results["quality"]:
            ours, theirs = (min(row[f"{name} infers"]) for name in ("Firth", "gensim"))
            yield f"| {row['mode']} | {ours:.1f} s | {theirs:.1f} s | {theirs / ours:.1f}× |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    parser.add_argument("--only", choices=("speed", "quality"))
    parser.add_argument("--modes", default=",".join(MODES), help="with commas between them")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    arguments.work.mkdir(parents=True, exist_ok=True)
    texts = Texts(arguments.data, arguments.work)
    stored, target = HERE / "results" / "documents.json", HERE.parent / "docs" / "results" / "documents.md"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    results |= {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    if arguments.only != "quality":
        results |= {"rounds": arguments.rounds, "speed": measure_speed(texts, arguments.rounds, modes)}
    if arguments.only != "speed":
        result = measure_quality(texts, arguments.seeds, arguments.epochs, modes)
        results |= {"epochs": arguments.epochs, "quality": result}
    stored.parent.mkdir(exist_ok=True)
    stored.write_text(json.dumps(results, indent=1) + "\n")
    target.write_text("\n".join(page(results)), encoding="utf-8")
    print("\n".join(page(results)))


if __name__ == "__main__":
    main()
