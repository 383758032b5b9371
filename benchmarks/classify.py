"""Classifiers: Firth's FastTextClassifier against fastText's supervised mode, in one interleaved run.

    python benchmarks/classify.py DATA [--threads 2] [--rounds 3] [--only NAME] [--work FOLDER]

DATA holds documents/20news-train.jsonl.xz and -test (label, text) and sentences/sst2/train.tsv.xz and dev.tsv. Both are
trained on the same file in fastText's format (lower case, words and punctuation separated by spaces), with the same
settings, threads and tokenization. Reports seconds from file to model, seconds of the epochs only, and test accuracy;
times are the best of the rounds, accuracies their mean. Results: benchmarks/results/classify.json and
docs/results/classify.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import ask  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth.evaluate import classification  # noqa: E402

PAGE, RESULTS = HERE.parent / "docs" / "results" / "classify.md", HERE / "results" / "classify.json"
#: Data, title, settings under fastText's names.
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sst2": ("sst2", "SST-2, words", {"lr": 0.1, "epoch": 5}),
    "sst2-pairs": ("sst2", "SST-2, words and pairs", {"lr": 0.1, "epoch": 5, "wordNgrams": 2}),
    "sst2-characters": ("sst2", "SST-2, words and 3–6 characters", {"lr": 0.1, "epoch": 5, "minn": 3, "maxn": 6}),
    "news": ("news", "20 newsgroups, words", {"lr": 1.0, "epoch": 10}),
    "news-pairs": ("news", "20 newsgroups, words and pairs", {"lr": 1.0, "epoch": 10, "wordNgrams": 2}),
    "news-tree": ("news", "20 newsgroups, words, hierarchical", {"lr": 1.0, "epoch": 10, "loss": "hs"}),
}
NAMES = {"lr": "learning_rate", "epoch": "epochs", "wordNgrams": "word_ngrams"}
LOSSES = {"hs": "hierarchical", "ova": "one_vs_all", "softmax": "softmax"}


def prepared(data: Path, work: Path, name: str) -> dict[str, str]:
    """Return the training and test files in fastText's format."""
    files = {part: work / f"{name}-{part}.txt" for part in ("train", "test")}
    for part, path in files.items():
        if not path.exists():
            pairs = newsgroups(data, part) if name == "news" else reviews(data, part)
            lines = (f"__label__{label} {' '.join(split(text))}\n" for text, label in pairs)
            path.write_text("".join(lines), encoding="utf-8")
    return {part: str(path) for part, path in files.items()}


def split(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def newsgroups(data: Path, part: str) -> Iterator[tuple[str, str]]:
    with lzma.open(data / "documents" / f"20news-{part}.jsonl.xz", "rt", encoding="utf-8") as file:
        for record in map(json.loads, file):
            yield record["text"], record["label"]


def reviews(data: Path, part: str) -> Iterator[tuple[str, str]]:
    folder = data / "sentences" / "sst2"
    path = folder / ("train.tsv.xz" if part == "train" else "dev.tsv")
    raw = path.read_bytes()
    lines = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8").splitlines()
    for line in lines[1:]:
        text, label = line.split("\t")
        yield text, label


def firths(files: dict[str, str], settings: dict[str, Any], threads: int, seed: int) -> dict[str, float]:
    options = {NAMES.get(name, name): value for name, value in settings.items()}
    options["loss"] = LOSSES[options.get("loss", "softmax")]
    method = firth.FastTextClassifier(**options, tokenizer="fasttext", lowercase=False)
    began = time.perf_counter()
    model = method.fit(firth.LabeledTexts(files["train"]), firth.Run(threads=threads, seed=seed))
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    accuracy = classification(model, firth.LabeledTexts(files["test"])).accuracy
    predicting = time.perf_counter() - began
    train = model.training["seconds"]
    return {"seconds": seconds, "train_seconds": train, "predict_seconds": predicting, "accuracy": accuracy}


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    data, title, settings = ROWS[name]
    files = prepared(arguments.data, arguments.work, data)
    results: dict[str, list[dict[str, float]]] = {"firth": [], "fasttext": []}
    for number in range(arguments.rounds):
        results["firth"].append(firths(files, settings, arguments.threads, number + 1))
        job = {**files, "settings": {**settings, "thread": arguments.threads}}
        results["fasttext"].append(ask("fasttext", job, "classify.py"))
    row: dict[str, Any] = {"title": title, "settings": settings}
    for who, rounds in results.items():
        row[who] = {key: min(one[key] for one in rounds) for key in ("seconds", "train_seconds", "predict_seconds")}
        row[who]["accuracy"] = statistics.mean(one["accuracy"] for one in rounds)
    return row


def page(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> Iterator[str]:
    yield f"`python benchmarks/classify.py DATA` on {machine()}, {time.strftime('%Y-%m-%d')}: 100 dimensions,"
    yield f"{arguments.threads} threads, the best time and the mean accuracy of {arguments.rounds} interleaved rounds."
    yield ""
    yield "| | Firth s | fastText s | from file to model | epochs only | accuracy Firth | fastText |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        mine, other = row["firth"], row["fasttext"]
        settings = ", ".join(f"{name} {value}" for name, value in row["settings"].items())
        ratios = [f"{other[key] / max(mine[key], 1e-9):.1f}×" for key in ("seconds", "train_seconds")]
        yield (
            f"| {row['title']} ({settings}) | {mine['seconds']:.2f} | {other['seconds']:.2f} | {ratios[0]} | "
            f"{ratios[1]} | {mine['accuracy']:.1%} | {other['accuracy']:.1%} |"
        )
    yield ""
    yield "Seconds are from the file to the model. fastText splits the file in each epoch, Firth once."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=ROWS, action="append")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.only or ROWS:
        rows.append(measured(name, arguments))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    lines = [*page(rows, arguments), ""]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
