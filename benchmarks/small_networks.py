"""The defaults of networks on 200, 1,000 and 5,000 rows, beside baselines.

    python benchmarks/small_networks.py DATA WEIGHTS [--choose] [--only tags …] [--seeds 3] [--processes 8]

WEIGHTS is a folder of an encoder, such as all-MiniLM-L6-v2. With `--choose`, settings are compared on the data that the
defaults are selected on; without, the defaults are measured on other data:

- tags: TokenClassifier. Selection: parts of speech of the treebank EWT (accuracy). Report: named entities of
  WNUT 17 (F1 of spans) and parts of speech of GUM. Baseline: each word's most frequent tag.
- answers: QuestionAnswerer, F1. Selection: SQuAD's training articles; the last 8 are the test. Report: its dev
  articles, likewise. Baseline: the sentence with most words of the question.
- pairs: SentenceEncoder on pairs, the share of 1,000 other texts whose partner is the nearest of 1,000. Selection:
  docstrings, their first line and the rest. Report: 20 newsgroups, subject and text, and SQuAD's dev questions with
  their passages. Baseline: WEIGHTS without training.
- static: Distil, linear probe. Selection: docstrings by package. Report: 20 newsgroups. Baseline: Distil without texts.
- language: GPT, BERT and Seq2Seq of their default sizes, held-out loss. Selection: docstrings, and pairs of
  Multi30k after the first 10,000. Report: 20 newsgroups, and Multi30k's first pairs. Baseline: the frequency of tokens.

DATA holds documents/, qa/, translation/multi30k/ and tags/: en_ewt-ud-dev.conllu, en_ewt-ud-test.conllu,
en_gum-ud-dev.conllu, en_gum-ud-test.conllu (dev, about 2,000 sentences, is the training data), wnut17train.conll and
emerging.test.conll. Results: benchmarks/results/small_networks*.json and docs/results/small_networks.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import random
import re
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.supervised_defaults import docstrings, newsgroups, text_of  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.core.report import Nothing  # noqa: E402
from firth.core.scores import answer_f1  # noqa: E402
from firth.data.questions import Questions  # noqa: E402
from firth.training.baselines import answer_guesses, tag_guesses  # noqa: E402

SIZES = (200, 1000, 5000)
TEST = 1000
Row = dict[str, Any]

# ---- data ----


def tagged(data: Path, name: str) -> tuple[list[Any], list[Any]]:
    """Sentences of words with tags, for training and for the test."""
    if name == "WNUT 17":
        files = (data / "tags" / "wnut17train.conll", data / "tags" / "emerging.test.conll")
        return (list(firth.TaggedSentences(files[0])), list(firth.TaggedSentences(files[1])))
    stem = {"EWT": "en_ewt-ud", "GUM": "en_gum-ud"}[name]
    rows = [treebank(data / "tags" / f"{stem}-{part}.conllu") for part in ("dev", "test")]
    random.Random(1).shuffle(rows[0])
    return rows[0], rows[1]


def treebank(path: Path) -> list[tuple[list[str], list[str]]]:
    """Words and universal parts of speech of a CoNLL-U file."""
    outcome = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.split("\t") for line in block.splitlines() if line and line[0].isdigit()]
        words = [(line[1].replace(" ", ""), line[3]) for line in lines if line[0].isdecimal()]
        if words:
            outcome.append(([word for word, _ in words], [tag for _, tag in words]))
    return outcome


def questions(data: Path, name: str) -> tuple[list[Any], list[Any]]:
    articles = json.loads(text_of(data / "qa" / f"{name}.json"))["data"]
    parts = []
    for part in (articles[:-8], articles[-8:]):
        rows = [
            {"question": row["question"], "passage": each["context"], "answer": row["answers"][0]["text"]}
            for article in part
            for each in article["paragraphs"]
            for row in each["qas"]
        ]
        random.Random(1).shuffle(rows)
        parts.append(rows)
    return parts[0], parts[1]


def pairs(data: Path, name: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    if name == "docstrings":
        parted = [text.strip().partition("\n\n") for text, _ in all_docstrings(data)]
        rows = [(first, rest[:1000]) for first, _, rest in parted if len(first.split()) > 3 and len(rest.split()) > 10]
    elif name == "SQuAD":
        train, test = questions(data, "squad-dev-v1.1")
        rows = list({row["passage"]: (row["question"], row["passage"]) for row in [*train, *test]}.values())
    else:
        found = [(re.search(r"^Subject: (?:Re: )*(.+)$", text, re.M | re.I), text) for text, _ in newsgroups(data)[0]]
        bodies = [(line[1], text.partition("\n\n")[2][:1000]) for line, text in found if line]
        rows = list({subject.lower(): (subject, body) for subject, body in bodies if len(body.split()) > 10}.values())
    random.Random(1).shuffle(rows)
    return rows[TEST:], rows[:TEST]


@cache
def all_docstrings(data: Path) -> list[tuple[str, str]]:
    train, test = docstrings(data)
    return [*train, *test]


def labeled(data: Path, name: str) -> tuple[list[Any], list[Any]]:
    if name == "docstrings":
        rows = all_docstrings(data)
        random.Random(1).shuffle(rows)
        return rows[TEST:], rows[:TEST]
    train, test = newsgroups(data)
    random.Random(1).shuffle(test)
    return [(text[:2000], label) for text, label in train], [(text[:2000], label) for text, label in test[:TEST]]


def translations(data: Path, name: str) -> list[tuple[str, str]]:
    files = (data / "translation" / "multi30k" / f"train.lc.norm.tok.{side}.xz" for side in ("en", "de"))
    english, german = (lzma.decompress(file.read_bytes()).decode().splitlines() for file in files)
    rows = list(zip(english, german, strict=True))
    return rows[10_000:] if name == "Multi30k, later pairs" else rows[:10_000]


# ---- one training ----


def run_of(seed: int) -> firth.Run:
    return firth.Run(seed=seed, report=Nothing())


def tags(data: Path, job: Row, base: Any) -> Row:
    from firth.data.tagged_sentences import entity_spans

    train, test = tagged(data, job["data"])
    train, test = train[: job["rows"]], test[:TEST]
    entities = job["data"] == "WNUT 17"
    method = firth.TokenClassifier(metric="f1" if entities else "accuracy", **job["options"])
    model = method.fit(train, run_of(job["seed"]), base)
    names = sorted({tag for _, sentence in train for tag in sentence})
    ids = [(words, [names.index(tag) for tag in sentence]) for words, sentence in train]
    guesses = {
        name: [[names[tag] for tag in each] for each in guess]
        for name, guess in tag_guesses(ids, [words for words, _ in test]).items()
    }
    guesses["model"] = [[word.tag for word in each] for each in model.tag([words for words, _ in test])]
    right = [list(sentence) for _, sentence in test]

    def score(predicted: list[list[str]]) -> float:
        if not entities:
            return float(np.mean([a == b for a, b in zip(chain(*predicted), chain(*right), strict=True)]))
        spans = [[entity_spans(sentence) for sentence in side] for side in (predicted, right)]
        both = sum(len(a & b) for a, b in zip(*spans, strict=True))
        return 2 * both / sum(len(each) for side in spans for each in side)

    scores = {name: score(guess) for name, guess in guesses.items()}
    return {"metric": "span F1" if entities else "accuracy", "score": scores.pop("model"), "baselines": scores}


def answers(data: Path, job: Row, base: Any) -> Row:
    train, test = (rows_to_columns(part) for part in questions(data, job["data"]))
    some = Questions({name: values[: job["rows"]] for name, values in train.items()})
    held_out = list(Questions({name: values[:TEST] for name, values in test.items()}))
    model = firth.QuestionAnswerer(**job["options"]).fit(some, run_of(job["seed"]), base)
    baselines = {
        name: float(np.mean([answer_f1(text, row.answers) for text, row in zip(texts, held_out, strict=True)]))
        for name, texts in answer_guesses(list(some), held_out).items()
    }
    return {"metric": "F1", "score": evaluate.answers(model, held_out).f1, "baselines": baselines}


def rows_to_columns(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def nearest_partner(model: Any, test: list[tuple[str, str]]) -> float:
    firsts, seconds = (model.embed([row[side] for row in test], normalize=True, report=Nothing()) for side in (0, 1))
    return float(((firsts @ seconds.T).argmax(axis=1) == np.arange(len(test))).mean())


def similar(data: Path, job: Row, base: Any) -> Row:
    train, test = pairs(data, job["data"])
    some = train[: job["rows"]]
    before = nearest_partner(base, test)
    columns = {"text": [first for first, _ in some], "other": [second for _, second in some]}
    source = firth.SimilarPairs(columns, text="text", other="other")
    model = firth.SentenceEncoder(**job["options"]).fit(source, run_of(job["seed"]), base)
    return {"metric": "nearest is the partner", "score": nearest_partner(model, test), "baselines": {"base": before}}


def static(data: Path, job: Row, base: Any) -> Row:
    train, test = labeled(data, job["data"])
    some = train[: job["rows"]]

    def probe(model: Any) -> float:
        from sklearn.linear_model import LogisticRegression

        vectors = [model.embed([text for text, _ in part], report=Nothing()) for part in (train[:2000], test)]
        labels = [[label for _, label in part] for part in (train[:2000], test)]
        return float(LogisticRegression(C=10, max_iter=300).fit(vectors[0], labels[0]).score(vectors[1], labels[1]))

    bare = probe(firth.Distil().fit(None, run_of(job["seed"]), base))
    model = firth.Distil(**job["options"]).fit([text for text, _ in some], run_of(job["seed"]), base)
    return {"metric": "accuracy of a probe", "score": probe(model), "baselines": {"without texts": bare}}


def language(data: Path, job: Row, base: Any) -> Row:
    method = getattr(firth, job["method"])(**job["options"])
    if job["method"] == "Seq2Seq":
        rows: Any = translations(data, job["data"])[: job["rows"]]
    else:
        rows = [text for text, _ in labeled(data, job["data"])[0][: job["rows"]]]
    metrics = method.fit(rows, run_of(job["seed"])).training
    baselines = {"token frequencies": metrics["baseline_loss"]}
    return {"metric": "held-out loss", "score": metrics["held_out_loss"], "baselines": baselines}


#: Of each part: the function, the methods, the data for selection, the data of the report, the settings to choose from.
PARTS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[Row, ...]]] = {
    "tags": (
        tags,
        ("TokenClassifier",),
        ("EWT",),
        ("WNUT 17", "GUM"),
        ({}, {"learning_rate": 3e-4}, {"learning_rate": 6e-4}),
    ),
    "answers": (
        answers,
        ("QuestionAnswerer",),
        ("squad-train-part",),
        ("squad-dev-v1.1",),
        ({}, {"learning_rate": 3e-4}, {"learning_rate": 6e-4}),
    ),
    "pairs": (
        similar,
        ("SentenceEncoder",),
        ("docstrings",),
        ("20 newsgroups", "SQuAD"),
        ({}, {"epochs": 5}, {"epochs": 5, "learning_rate": 1e-4}, {"epochs": 10, "learning_rate": 1e-4}),
    ),
    "static": (
        static,
        ("Distil",),
        ("docstrings",),
        ("20 newsgroups",),
        ({}, {"pull": 1.0}, {"pull": 20.0}),
    ),
    "language": (
        language,
        ("GPT", "BERT", "Seq2Seq"),
        ("docstrings", "Multi30k, later pairs"),
        ("20 newsgroups", "Multi30k"),
        ({}, {"epochs": 30}, {"epochs": 30, "dropout": 0.3}),
    ),
}


def jobs(arguments: argparse.Namespace) -> Iterator[Row]:
    for part in arguments.only or PARTS:
        _, methods, choose, report, settings = PARTS[part]
        for method in methods:
            for data in choose if arguments.choose else report:
                if part == "language" and (method == "Seq2Seq") != data.startswith("Multi30k"):
                    continue
                for rows in SIZES:
                    for options in settings if arguments.choose else ({},):
                        if part == "language" and options and rows > 1000:
                            continue
                        for seed in range(1, arguments.seeds + 1):
                            yield {
                                "part": part,
                                "method": method,
                                "data": data,
                                "rows": rows,
                                "options": options,
                                "seed": seed,
                            }


@cache
def opened(weights: Path) -> Any:
    return firth.load(weights)


def trained(job: Row, data: Path, weights: Path, threads: int) -> Row:
    """Run one training in its own process."""
    import torch

    torch.set_num_threads(threads)
    warnings.simplefilter("ignore", firth.FirthWarning)
    began = time.perf_counter()
    base = None if job["part"] == "language" else opened(weights)
    outcome = PARTS[job["part"]][0](data, job, base)
    return {**job, **outcome, "seconds": time.perf_counter() - began}


def page(results: list[Row]) -> Iterator[str]:
    yield "`python benchmarks/small_networks.py DATA WEIGHTS` with all-MiniLM-L6-v2,"
    yield f"{time.strftime('%Y-%m-%d')}: defaults on data that no setting was selected on; mean and standard deviation"
    yield "over the seeds. Lower is better for the loss."
    yield ""
    yield "| method | data | rows | metric | score | baselines | seeds |"
    yield "| --- | --- | ---: | --- | ---: | --- | ---: |"
    for key in dict.fromkeys((row["part"], row["method"], row["data"], row["rows"]) for row in results):
        same = [row for row in results if (row["part"], row["method"], row["data"], row["rows"]) == key]
        scores = [row["score"] for row in same]
        spread = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
        names = same[0]["baselines"]
        baselines = ", ".join(f"{name} {statistics.mean(row['baselines'][name] for row in same):.3f}" for name in names)
        _, method, data, rows = key
        score = f"{statistics.mean(scores):.3f}{spread}"
        yield f"| {method} | {data} | {rows:,} | {same[0]['metric']} | {score} | {baselines} | {len(same)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--only", choices=tuple(PARTS), action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    record = arguments.out / f"small_networks{'_choice' if arguments.choose else ''}.json"
    results = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, context) as pool:
        waiting = [
            pool.submit(trained, job, arguments.data, arguments.weights, arguments.threads) for job in jobs(arguments)
        ]
        for done in as_completed(waiting):
            results.append(done.result())
            print(json.dumps(results[-1]), flush=True)
            record.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if not arguments.choose:
        key = ("part", "method", "data", "rows", "seed")
        order = [tuple(job[name] for name in key) for job in jobs(arguments)]
        results.sort(key=lambda row: order.index(tuple(row[name] for name in key)))
        (HERE.parent / "docs" / "results" / "small_networks.md").write_text(
            "\n".join([*page(results), ""]), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
