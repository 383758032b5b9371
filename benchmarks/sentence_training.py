"""Sentence training: STS-B before and after, from texts alone and from scored pairs.

    python benchmarks/sentence_training.py DATA WEIGHTS [--sentences N] [--pretrain SECONDS] [--base FOLDER] [--rows N]
                                           [--out FOLDER]

DATA holds text/wiki-raw.txt.xz and sentences/stsb-en-train.csv.xz, -dev.csv, -test.csv; WEIGHTS is a folder of Hugging
Face's, such as all-MiniLM-L6-v2, which was tuned for sentences already. The untuned start is a BERT that Firth trains
on wiki-raw for some SECONDS, or the one in --base. "Before" is the mean of the last layer of the same weights.

    alone   contrastive training on N sentences of wiki-raw (SimCSE); rate and temperature are selected on a part of
            them by STS-B dev, which also selects the epoch; the best ones are trained on all
    next    the same with each sentence beside the one that follows it in its paragraph, from the untuned start
    scored  the training pairs of STS-B (CoSENT), selected by dev, from WEIGHTS
    nested  the same with shorter vectors (Matryoshka): STS-B by the first dimensions, with and without it

Metrics are Spearman's ρ × 100 on the test set, which is used once per row. `--rows N` uses N pairs of each part of
STS-B, for a quick test. Results, after each row: results/sentence_training.json beside this file and
docs/results/sentence_training.md (with --out, in that folder instead). Needs a GPU.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.core.scores import correlation, ranks  # noqa: E402
from firth.data.sentences import split_sentences  # noqa: E402

LENGTHS = (128, 64, 32)
ALONE = {"batch_size": 128, "epochs": 1, "max_length": 64}
RATES = (3e-5, 1e-4, 3e-4)
TUNED_RATES = (5e-6, 2e-5)  # for weights already tuned for sentences
TEMPERATURES = (0.05, 0.1)
TRIED = 4  # share of the sentences per trial
SCORED = {"learning_rate": 5e-5, "batch_size": 32, "epochs": 4}


def stsb(data: Path, part: str, rows: int) -> dict[str, list[Any]]:
    path = data / f"sentences/stsb-en-{part}.csv"
    raw = path.read_bytes() if path.exists() else lzma.decompress(path.with_name(path.name + ".xz").read_bytes())
    result = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")))[: rows or None]
    return {
        "text": [row[0] for row in result],
        "other": [row[1] for row in result],
        "score": [float(row[2]) for row in result],
    }


def scored(table: dict[str, list[Any]], dev: firth.SimilarPairs | None = None) -> firth.SimilarPairs:
    return firth.SimilarPairs(table, other="other", score="score", dev=dev)


def paragraphs(data: Path) -> Iterator[list[str]]:
    """Return the sentences of sampled paragraphs, without very short or long ones."""
    with lzma.open(data / "text/wiki-raw.txt.xz", "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("=")]
    for line in np.random.default_rng(1).permutation(len(lines)):
        yield [text for text in split_sentences(lines[line]) if 20 <= len(text) <= 400]


def sentences(data: Path, most: int) -> list[str]:
    result: dict[str, None] = {}
    for parts in paragraphs(data):
        result |= dict.fromkeys(parts)
        if len(result) >= most:
            break
    return list(result)[:most]


def neighbours(data: Path, most: int) -> dict[str, list[str]]:
    """Return pairs of consecutive sentences of a paragraph, each sentence in one pair only."""
    result: dict[str, list[str]] = {"text": [], "other": []}
    for parts in paragraphs(data):
        for first, second in zip(parts[::2], parts[1::2], strict=False):
            result["text"].append(first)
            result["other"].append(second)
        if len(result["text"]) >= most:
            break
    return {side: texts[:most] for side, texts in result.items()}


def part_of(texts: list[str] | dict[str, list[str]], most: int, dev: firth.SimilarPairs) -> firth.SimilarPairs:
    """Return the first texts or pairs."""
    if isinstance(texts, list):
        return firth.SimilarPairs(texts[:most], dev=dev)
    return firth.SimilarPairs({side: each[:most] for side, each in texts.items()}, other="other", dev=dev)


def spearman(model: Any, table: dict[str, list[Any]], width: int | None = None) -> float:
    """Of the first `width` numbers: also of models that were not trained for it, which `shortened` refuses."""
    first, second = (model.embed(table[side])[:, :width].astype(np.float64) for side in ("text", "other"))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return 100 * correlation(ranks(cosines), ranks(np.array(table["score"])))


def pretrained(data: Path, seconds: float, run: firth.Run) -> Any:
    """Return an untuned start: pre-trained on masked words only."""
    method = firth.BERT(size="small", context_length=128, epochs=1000, next_sentence=False, batch_tokens=65_536)
    with lzma.open(data / "text/wiki-raw.txt.xz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    settings = {"seed": run.seed, "budget": seconds, "report": run.report}
    return method.fit(firth.Corpus(lines), firth.Run(**settings), None)


def best_method(some: firth.SimilarPairs, base: Any, rates: Sequence[float], run: firth.Run) -> firth.SentenceEncoder:
    """Return the method with the best rate and temperature by dev on these sentences."""
    result = list[tuple[float, firth.SentenceEncoder]]()
    for rate in rates:
        for temperature in TEMPERATURES:
            method = firth.SentenceEncoder(**ALONE, learning_rate=rate, temperature=temperature)
            metrics = method.fit(some, run, base).training
            result.append((metrics["spearman"], method))
            print({"rate": rate, "temperature": temperature, "dev": 100 * metrics["spearman"]}, flush=True)
    return max(result, key=lambda one: one[0])[1]


def row(
    name: str, method: Any, data: firth.SimilarPairs, base: Any, run: firth.Run, test: dict[str, Any]
) -> dict[str, Any]:
    began = time.perf_counter()
    model = method.fit(data, run, base)
    metrics = model.training
    result = {
        "name": name,
        "before": spearman(base, test),
        "after": spearman(model, test),
        "dev_before": 100 * metrics["spearman_before"],
        "dev_after": 100 * metrics["spearman"],
        "texts": metrics["texts"],
        "test_pairs": len(test["score"]),
        "seconds": time.perf_counter() - began,
        "texts_per_second": metrics["texts_per_second"],
        "device": metrics.get("device", "CPU"),
        "options": method.options(),
    }
    print({key: value for key, value in result.items() if key != "options"}, flush=True)
    return {**result, "model": model}


def page(rows: list[dict[str, Any]], nested: dict[str, dict[str, float]]) -> str:
    lines = [
        "| start, and training data | texts | test before | test after | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in rows:
        cells = [result["name"], f"{result['texts']:,}", f"{result['before']:.1f}", f"{result['after']:.1f}"]
        lines.append(f"| {' | '.join([*cells, format(result['seconds'], ',.0f')])} |")
    widths = list(next(iter(nested.values()), ()))
    if nested:
        lines += ["", f"| first numbers | {' | '.join(widths)} |", "| --- |" + " --- |" * len(widths)]
    lines += [
        f"| {name} | {' | '.join(f'{value:.1f}' for value in given.values())} |" for name, given in nested.items()
    ]
    one = rows[0]
    about = f"STS-B ({one['test_pairs']:,} test pairs), Spearman's ρ × 100; {one['device']}"
    lines += ["", f"{about}; `benchmarks/sentence_training.py`.", ""]
    return "\n".join(lines)


def keep(out: Path | None, rows: list[dict[str, Any]], nested: dict[str, dict[str, float]]) -> None:
    saved_rows = [{key: value for key, value in result.items() if key != "model"} for result in rows]
    json_path = (out or HERE / "results") / "sentence_training.json"
    page_path = (out or HERE.parent / "docs" / "results") / "sentence_training.md"
    json_path.parent.mkdir(parents=True, exist_ok=True)
    versions = {"firth": firth.__version__, "torch": torch.__version__}
    json_path.write_text(json.dumps({"rows": saved_rows, "nested": nested, "versions": versions}, indent=2) + "\n")
    page_path.write_text(page(saved_rows, nested))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--pretrain", type=float, default=120.0)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    run = firth.Run(report=LogLines(progress=False))
    parts = {part: stsb(given.data, part, given.rows) for part in ("train", "dev", "test")}
    dev, test = scored(parts["dev"]), parts["test"]
    weights = firth.load(given.weights)
    untuned = firth.load(given.base) if given.base else pretrained(given.data, given.pretrain, run)
    pairs, most = scored(parts["train"], dev), given.sentences
    texts, followed = sentences(given.data, most), neighbours(given.data, most)
    rows: list[dict[str, Any]] = []
    for name, known, base, rates in (
        ("untuned BERT, texts alone", texts, untuned, RATES),
        ("untuned BERT, with the next sentence", followed, untuned, RATES),
        ("MiniLM-L6, texts alone", texts, weights, TUNED_RATES),
    ):
        method = best_method(part_of(known, max(256, most // TRIED), dev), base, rates, run)
        rows.append(row(name, method, part_of(known, most, dev), base, run, test))
        keep(given.out, rows, {})
    for name, dims in (("scored pairs", ""), ("scored pairs, nested", ",".join(map(str, LENGTHS)))):
        rows.append(
            row(f"MiniLM-L6, {name}", firth.SentenceEncoder(**SCORED, matryoshka_dims=dims), pairs, weights, run, test)
        )
        keep(given.out, rows, {})
    plain, both = (result["model"] for result in rows[-2:])
    nested = {
        name: {str(width): spearman(model, test, width) for width in (both.size.dim, *LENGTHS)}
        for name, model in (("start", weights), ("scored pairs", plain), ("nested", both))
    }
    keep(given.out, rows, nested)


if __name__ == "__main__":
    main()
