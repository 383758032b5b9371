"""Defaults of supervised training by the amount of data: how they were selected, and their results.

    python benchmarks/supervised_defaults.py words DATA [--choose]
    python benchmarks/supervised_defaults.py networks DATA WEIGHTS [--choose]

`words` is FastTextClassifier, `networks` fine-tuning of WEIGHTS (a folder of Hugging Face's, such as all-MiniLM-L6-v2).
With `--choose`, a grid of settings on the data sets that the defaults were selected on; without, the defaults, the
former ones and the tf-idf baseline, on data sets not used for the selection. DATA holds sentences/, documents/ and qa/.
Each data set gives 200, 1,000 and 5,000 rows, and all of them; test rows are separate.
Results: benchmarks/results/supervised_*.json and docs/results/supervised_*.md.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import io
import itertools
import json
import lzma
import multiprocessing
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

import firth  # noqa: E402
from firth.core.report import Nothing  # noqa: E402
from firth.core.scores import correlation, ranks  # noqa: E402
from firth.evaluate import classification  # noqa: E402

Row = tuple[str, str]
SIZES = (200, 1000, 5000, 0)  # 0: all
PACKAGES = ("numpy", "scipy", "pandas", "sklearn", "networkx", "matplotlib", "docutils", "click", "pyarrow", "jinja2")
MOST_DOCSTRINGS = 10_000
TEST = 2000  # rows held out if a data set has no test set
EPOCHS, RATES = (5, 10, 25, 50, 100), (0.1, 0.25, 0.5, 1.0)


# ---- data sets: (train, test) ----


def text_of(path: Path) -> str:
    path = path if path.exists() else path.with_name(path.name + ".xz")
    raw = path.read_bytes()
    return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8-sig")


def tsv(path: Path, text: int, label: int, header: bool = True) -> list[Row]:
    lines = csv.reader(io.StringIO(text_of(path)), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [(line[text].strip(), line[label]) for line in itertools.islice(lines, int(header), None)]


def frequent(rows: list[Row], labels: int) -> list[Row]:
    """The rows of the most frequent labels."""
    frequent_labels = {label for label, _ in Counter(label for _, label in rows).most_common(labels)}
    return [row for row in rows if row[1] in frequent_labels]


def parted(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    rows = list(dict.fromkeys(rows))
    random.Random(1).shuffle(rows)
    cut = min(TEST, len(rows) // 4)
    return rows[cut:], rows[:cut]


def sst2(data: Path) -> tuple[list[Row], list[Row]]:
    """Phrases of film reviews: 2 labels."""
    return parted(tsv(data / "sentences/sst2/train.tsv", 0, 1))


def questions(data: Path) -> tuple[list[Row], list[Row]]:
    """SQuAD's questions by article: 44 labels."""
    articles = json.loads(text_of(data / "qa/squad-train-part.json"))["data"]
    return parted(
        [
            (question["question"], article["title"])
            for article in articles
            for part in article["paragraphs"]
            for question in part["qas"]
        ]
    )


def docstrings(data: Path) -> tuple[list[Row], list[Row]]:
    """Docstrings of Python packages, by package."""
    from firth.data.docstrings import python_docstrings

    folders = [Path(np.__file__).parents[1]]
    outcome = [
        (text, name.partition(".")[0]) for name, text in python_docstrings(PACKAGES, folders=folders, report=Nothing())
    ]
    train, test = parted(outcome)
    return train[:MOST_DOCSTRINGS], test


def newsgroups(data: Path) -> tuple[list[Row], list[Row]]:
    """20 newsgroups by date."""

    def part(name: str) -> list[Row]:
        records = map(json.loads, text_of(data / f"documents/20news-{name}.jsonl").splitlines())
        return [(record["text"], record["label"]) for record in records]

    train = part("train")
    random.Random(1).shuffle(train)
    return train, part("test")


def cola(data: Path) -> tuple[list[Row], list[Row]]:
    """Sentences that are grammatical or not: 2 labels, hardly predictable from single words."""
    train, test = (tsv(data / f"sentences/cola/{name}.tsv", 3, 1, header=False) for name in ("train", "dev"))
    random.Random(1).shuffle(train)
    return train, test


def speakers(data: Path) -> tuple[list[Row], list[Row]]:
    """Shakespeare's speeches by speaker: the 40 most frequent ones."""
    speeches = re.findall(r"^([A-Z][\w ]+):\n(.+?)\n\n", text_of(data / "text/tinyshakespeare.txt"), re.M | re.S)
    return parted(frequent([(text.replace("\n", " "), name) for name, text in speeches], 40))


def topics(data: Path) -> tuple[list[Row], list[Row]]:
    """The synthetic corpus: 8 topics."""
    from firth.data.world import World

    return parted([(row.text, row.label) for row in World(seed=71).topics(12_000)])


CHOOSE = {"sst2": sst2, "questions": questions, "docstrings": docstrings}
REPORT = {"newsgroups": newsgroups, "cola": cola, "speakers": speakers, "topics": topics}


# ---- FastTextClassifier ----


def classified(train: list[Row], test: list[Row], seed: int, **options: Any) -> dict[str, Any]:
    method = firth.FastTextClassifier(**options)
    model = method.fit(train, firth.Run(seed=seed, threads=1, report=Nothing()))
    metrics = {name: model.training.get(name) for name in ("automatic", "seconds", "scoring_seconds")}
    return {"accuracy": classification(model, test).accuracy, **metrics}


def words_report(data: Path) -> Iterator[dict[str, Any]]:
    """The former defaults (fastText's), the current ones, and tf-idf with a logistic regression."""
    for name, rows in REPORT.items():
        train, test = rows(data)
        for size in SIZES:
            part = train[:size] if size else train
            if size > len(train):
                continue
            outcome = {
                "former": classified(part, test, 1, epochs=5, learning_rate=0.1, held_out=0.0),
                "now": classified(part, test, 1),
                "now, all rows": classified(part, test, 1, held_out=0.0),
            }
            yield {"data": name, "rows": len(part), **outcome, **baselines(part, test)}


def baselines(train: list[Any], test: list[Any]) -> dict[str, float]:
    from firth.training.baselines import Raw, compare_texts

    names = sorted({label for _, label in train})
    ids = [np.array([names.index(label) if label in names else -1 for _, label in part]) for part in (train, test)]
    raw = [
        Raw([text for text, _ in part], own, np.zeros((len(part), 0)))
        for part, own in zip((train, test), ids, strict=True)
    ]
    return dict(compare_texts(*raw, ids[1], len(names), "accuracy", 1).baselines)


def words_page(results: list[dict[str, Any]]) -> Iterator[str]:
    yield f"`python benchmarks/supervised_defaults.py words DATA`, {time.strftime('%Y-%m-%d')}: accuracy on test"
    yield "data that no setting was selected on. *Former* are fastText's defaults (5 epochs, a rate of 0.1). *Now*"
    yield "a tenth of the rows is held out for the score; in the next column no row is held out (`held_out=0`)."
    yield ""
    yield "| data | rows | former | now | now, all rows | majority label | tf-idf + logistic regression | epochs |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in results:
        accuracies = [row[name]["accuracy"] for name in ("former", "now", "now, all rows")]
        accuracies += [row["majority label"], row["tf-idf + logistic regression"]]
        cells = " | ".join(f"{100 * value:.1f}" for value in accuracies)
        yield f"| {row['data']} | {row['rows']:,} | {cells} | {row['now']['automatic']['epochs']} |"


def words_grid(data: Path) -> Iterator[dict[str, Any]]:
    for name, rows in CHOOSE.items():
        train, test = rows(data)
        length = statistics.mean(len(text.split()) for text, _ in train)
        for size in SIZES:
            part = train[:size] if size else train
            for epochs, rate in itertools.product(EPOCHS if size else EPOCHS[:4], RATES):
                some = test[:1000] if len(train) > 20_000 else test
                outcome = classified(part, some, 1, epochs=epochs, learning_rate=rate, held_out=0.0)
                yield {"data": name, "rows": len(part), "words": length, "epochs": epochs, "rate": rate, **outcome}


# ---- fine-tuning ----


class Rows(firth.Examples):
    """Examples from lists; needs no pyarrow, which a machine with a GPU may not have."""

    file_options = ()

    def __init__(self, rows: list[Any], pairs: bool = False) -> None:
        self.rows, self.columns, self.dev, self.label = rows, (), None, "label"
        self.other = "other" if pairs else None

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> list[Any]:
        return [text for text, _ in self.rows]

    def labels(self) -> list[str | None]:
        return [str(label) for _, label in self.rows]

    def numbers(self) -> Any:
        return np.array([float(label) for _, label in self.rows])

    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()


def subjects(data: Path) -> tuple[list[Row], list[Row]]:
    """20 newsgroups by the subject lines alone: 20 labels."""

    def lines(rows: list[Row]) -> list[Row]:
        outcome = [(re.search(r"^Subject: (?:Re: )*(.+)$", text, re.M | re.I), label) for text, label in rows]
        return [(line[1], label) for line, label in outcome if line]

    train, test = newsgroups(data)
    random.Random(1).shuffle(test)
    return lines(train), lines(test)


def stsb(data: Path) -> tuple[list[Any], list[Any]]:
    """Pairs of sentences with a similarity from 0 to 5."""
    outcome = []
    for name in ("train", "test"):
        lines = csv.reader(io.StringIO(text_of(data / f"sentences/stsb-en-{name}.csv")))
        outcome.append([((line[0], line[1]), float(line[2])) for line in lines])
    random.Random(1).shuffle(outcome[0])
    return outcome[0], outcome[1]


TUNED_CHOOSE = {"sst2": sst2, "questions": questions}
TUNED_REPORT = {"subjects": subjects, "cola": cola, "stsb": stsb}
BASELINES = ("majority label", "tf-idf + logistic regression")
TUNED_SIZES = (200, 1000, 5000)
TUNED_TEST = 1000


def tuned(data: str, base: Any, train: list[Any], test: list[Any], seed: int, **options: Any) -> dict[str, float]:
    method: Any = (firth.TextRegressor if data == "stsb" else firth.TextClassifier)(max_length=128, **options)
    began = time.perf_counter()
    run = firth.Run(seed=seed, threads=1, report=Nothing())
    model = method.fit(Rows(train, isinstance(train[0][0], tuple)), run, base)
    seconds = time.perf_counter() - began
    if next(base.net.parameters()).device.type == "cpu" and torch.cuda.is_available():
        model.net.cuda()
    texts, right = [text for text, _ in test], [label for _, label in test]
    if data == "stsb":
        outcome = model.estimate(texts)
        return {"spearman": correlation(ranks(np.array(right)), ranks(outcome.astype(float))), "seconds": seconds}
    outcome = [best[0][0] for best in model.predict(texts, report=Nothing())]
    accuracy = statistics.mean(a == b for a, b in zip(outcome, right, strict=True))
    return {"accuracy": accuracy, "seconds": seconds, **baselines(train, test)}


def tuned_grid(seeds: int) -> Iterator[dict[str, Any]]:
    """Learning rates, and the epochs of the default or twice as many, for two data sets of short texts."""
    jobs = itertools.product(TUNED_CHOOSE, TUNED_SIZES, (1, 2), (5e-5, 1e-4, 2e-4, 4e-4), range(1, seeds + 1))
    for data, rows, factor, rate, seed in jobs:
        epochs = factor * (firth.TextClassifier().for_rows(rows, 384).epochs or 1)
        yield {"data": data, "rows": rows, "seed": seed, "pooling": "mean", "learning_rate": rate, "epochs": epochs}


def tuned_report(seeds: int) -> Iterator[dict[str, Any]]:
    """Evaluate the former and the current defaults on data sets not used for the selection."""
    former = {"pooling": "cls", "learning_rate": 5e-5, "epochs": 3}
    settings = (("former", former), ("now", {}))
    jobs = itertools.product(TUNED_REPORT, TUNED_SIZES, settings, range(1, seeds + 1))
    for data, rows, (name, options), seed in jobs:
        yield {"data": data, "rows": rows, "seed": seed, "settings": name, **options}


def tuned_one(job: dict[str, Any], data: Path, weights: Path) -> dict[str, Any]:
    """Run one fine-tuning in its own process."""
    torch.set_num_threads(1)
    sets = {**TUNED_CHOOSE, **TUNED_REPORT}
    train, test = loaded(sets[job["data"]], data)
    options = {name: value for name, value in job.items() if name not in ("data", "rows", "seed", "settings")}
    size = job["rows"] or len(train)
    outcome = tuned(job["data"], opened(weights), train[:size], test[:TUNED_TEST], job["seed"], **options)
    return {**job, **outcome}


@functools.cache
def loaded(rows: Any, data: Path) -> Any:
    return rows(data)


@functools.cache
def opened(weights: Path) -> Any:
    return firth.load(weights)


def networks_page(results: list[dict[str, Any]]) -> Iterator[str]:
    seeds = len({row["seed"] for row in results})
    yield "`python benchmarks/supervised_defaults.py networks DATA WEIGHTS` with all-MiniLM-L6-v2,"
    yield f"{time.strftime('%Y-%m-%d')}: {TUNED_TEST:,} test texts, {seeds} seed{'s' * (seeds > 1)};"
    yield "data that no setting was selected on. *Former*: 3 epochs, a learning rate of 5e-5, [CLS]."
    yield ""
    yield "| data | metric | rows | former | now | majority label | tf-idf + logistic regression |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for data, rows in dict.fromkeys((row["data"], row["rows"]) for row in results):
        metric = "spearman" if data == "stsb" else "accuracy"
        same = [row for row in results if (row["data"], row["rows"]) == (data, rows)]
        values = {name: [row[metric] for row in same if row["settings"] == name] for name in ("former", "now")} | {
            name: [row[name] for row in same if name in row] for name in BASELINES
        }
        cells = " | ".join(f"{100 * statistics.mean(each):.1f}" if each else "" for each in values.values())
        yield f"| {data} | {metric} | {rows:,} | {cells} |"


def networks(jobs: list[dict[str, Any]], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, context) as pool:
        waiting = [pool.submit(tuned_one, job, arguments.data, arguments.weights) for job in jobs]
        for done in as_completed(waiting):
            yield done.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("words", "networks"))
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--processes", type=int, default=1, help="networks: settings tried at once")
    parser.add_argument("--seeds", type=int, default=1, help="networks: runs of each setting")
    arguments = parser.parse_args()
    record = arguments.out / f"supervised_{arguments.what}{'_choice' if arguments.choose else ''}.json"
    results = []
    if arguments.what == "words":
        tried = (words_grid if arguments.choose else words_report)(arguments.data)
    else:
        tried = networks(list((tuned_grid if arguments.choose else tuned_report)(arguments.seeds)), arguments)
    for outcome in tried:
        results.append(outcome)
        print(json.dumps(outcome), flush=True)
        record.write_text(json.dumps(results, indent=1) + "\n")
    if not arguments.choose:
        page = words_page if arguments.what == "words" else networks_page
        lines = "\n".join([*page(results), ""])
        (HERE.parent / "docs" / "results" / f"supervised_{arguments.what}.md").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
