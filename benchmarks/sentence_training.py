"""Sentence training: STS-B before and after, from texts alone and from scored pairs.

    python benchmarks/sentence_training.py DATA WEIGHTS [--sentences N] [--pretrain SECONDS] [--base FOLDER] [--rows N]
                                           [--out FOLDER]

DATA holds text/wiki-raw.txt.xz and sentences/stsb-en-train.csv.xz, -dev.csv, -test.csv; WEIGHTS is a folder of Hugging
Face's, such as all-MiniLM-L6-v2, which was tuned for sentences already. The untuned start is a BERT that Firth trains
on wiki-raw for some SECONDS, or the one in --base. Before is the plain mean of the same weights' last layer.

    alone   contrast of N sentences of wiki-raw, each read twice (SimCSE); rate and temperature are tried on a part of
            them, and the best by STS-B dev, which chooses the weights too, takes all
    next    the same with each sentence beside the one that follows it in its paragraph, from the untuned start
    scored  the training pairs of STS-B put in order (CoSENT), chosen by dev, from WEIGHTS
    nested  the same with shorter lengths (Matryoshka): STS-B by the first numbers of the vectors, with and without

Figures are Spearman's ρ × 100 on the test set, which is looked at once a row. `--rows N` takes N pairs of each part of
STS-B, to see that it works. Results, after each row: results/sentence_training.json beside this file and
docs/results/sentence_training.md (with --out, in that folder instead). Wants a GPU.
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
TUNED_RATES = (5e-6, 2e-5)  # of weights that were tuned for sentences already
TEMPERATURES = (0.05, 0.1)
TRIED = 4  # a try takes this part of the sentences
SCORED = {"learning_rate": 5e-5, "batch_size": 32, "epochs": 4}


def stsb(data: Path, part: str, rows: int) -> dict[str, list[Any]]:
    path = data / f"sentences/stsb-en-{part}.csv"
    raw = path.read_bytes() if path.exists() else lzma.decompress(path.with_name(path.name + ".xz").read_bytes())
    found = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")))[: rows or None]
    return {
        "text": [row[0] for row in found],
        "other": [row[1] for row in found],
        "score": [float(row[2]) for row in found],
    }


def scored(table: dict[str, list[Any]], dev: firth.SimilarPairs | None = None) -> firth.SimilarPairs:
    return firth.SimilarPairs(table, other="other", score="score", dev=dev)


def paragraphs(data: Path) -> Iterator[list[str]]:
    """The sentences of each, of no odd length; drawn."""
    with lzma.open(data / "text/wiki-raw.txt.xz", "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("=")]
    for line in np.random.default_rng(1).permutation(len(lines)):
        yield [text for text in split_sentences(lines[line]) if 20 <= len(text) <= 400]


def sentences(data: Path, most: int) -> list[str]:
    found: dict[str, None] = {}
    for parts in paragraphs(data):
        found |= dict.fromkeys(parts)
        if len(found) >= most:
            break
    return list(found)[:most]


def neighbours(data: Path, most: int) -> dict[str, list[str]]:
    """Sentences that follow each other in a paragraph, each in one pair only."""
    found: dict[str, list[str]] = {"text": [], "other": []}
    for parts in paragraphs(data):
        for first, second in zip(parts[::2], parts[1::2], strict=False):
            found["text"].append(first)
            found["other"].append(second)
        if len(found["text"]) >= most:
            break
    return {side: texts[:most] for side, texts in found.items()}


def part_of(texts: list[str] | dict[str, list[str]], most: int, dev: firth.SimilarPairs) -> firth.SimilarPairs:
    """The first of them, texts or pairs."""
    if isinstance(texts, list):
        return firth.SimilarPairs(texts[:most], dev=dev)
    return firth.SimilarPairs({side: each[:most] for side, each in texts.items()}, other="other", dev=dev)


def spearman(model: Any, table: dict[str, list[Any]], width: int | None = None) -> float:
    """Of the first `width` numbers: also of models that were not trained for it, which `shortened` refuses."""
    first, second = (model.embed(table[side])[:, :width].astype(np.float64) for side in ("text", "other"))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return 100 * correlation(ranks(cosines), ranks(np.array(table["score"])))


def pretrained(data: Path, seconds: float, run: firth.Run) -> Any:
    """An untuned start: words masked, nothing said of sentences."""
    method = firth.BERT(size="small", context_length=128, epochs=1000, next_sentence=False, batch_tokens=65_536)
    with lzma.open(data / "text/wiki-raw.txt.xz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    settings = {"seed": run.seed, "budget": seconds, "report": run.report}
    return method.fit(firth.Corpus(lines), firth.Run(**settings), None)


def chosen(some: firth.SimilarPairs, base: Any, rates: Sequence[float], run: firth.Run) -> firth.SentenceEncoder:
    """The rate and temperature that are best by dev after these sentences."""
    found = list[tuple[float, firth.SentenceEncoder]]()
    for rate in rates:
        for temperature in TEMPERATURES:
            method = firth.SentenceEncoder(**ALONE, learning_rate=rate, temperature=temperature)
            figures = method.fit(some, run, base).training
            found.append((figures["spearman"], method))
            print({"rate": rate, "temperature": temperature, "dev": 100 * figures["spearman"]}, flush=True)
    return max(found, key=lambda one: one[0])[1]


def row(
    name: str, method: Any, data: firth.SimilarPairs, base: Any, run: firth.Run, test: dict[str, Any]
) -> dict[str, Any]:
    began = time.perf_counter()
    model = method.fit(data, run, base)
    figures = model.training
    found = {
        "name": name,
        "before": spearman(base, test),
        "after": spearman(model, test),
        "dev_before": 100 * figures["spearman_before"],
        "dev_after": 100 * figures["spearman"],
        "texts": figures["texts"],
        "test_pairs": len(test["score"]),
        "seconds": time.perf_counter() - began,
        "texts_per_second": figures["texts_per_second"],
        "device": figures.get("device", "CPU"),
        "options": method.options(),
    }
    print({key: value for key, value in found.items() if key != "options"}, flush=True)
    return {**found, "model": model}


def page(rows: list[dict[str, Any]], nested: dict[str, dict[str, float]]) -> str:
    lines = [
        "| start, and what it learns from | texts | test before | test after | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for found in rows:
        cells = [found["name"], f"{found['texts']:,}", f"{found['before']:.1f}", f"{found['after']:.1f}"]
        lines.append(f"| {' | '.join([*cells, format(found['seconds'], ',.0f')])} |")
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
    kept = [{key: value for key, value in found.items() if key != "model"} for found in rows]
    json_path = (out or HERE / "results") / "sentence_training.json"
    page_path = (out or HERE.parent / "docs" / "results") / "sentence_training.md"
    json_path.parent.mkdir(parents=True, exist_ok=True)
    versions = {"firth": firth.__version__, "torch": torch.__version__}
    json_path.write_text(json.dumps({"rows": kept, "nested": nested, "versions": versions}, indent=2) + "\n")
    page_path.write_text(page(kept, nested))


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
        method = chosen(part_of(known, max(256, most // TRIED), dev), base, rates, run)
        rows.append(row(name, method, part_of(known, most, dev), base, run, test))
        keep(given.out, rows, {})
    for name, dims in (("scored pairs", ""), ("scored pairs, nested", ",".join(map(str, LENGTHS)))):
        rows.append(
            row(f"MiniLM-L6, {name}", firth.SentenceEncoder(**SCORED, matryoshka_dims=dims), pairs, weights, run, test)
        )
        keep(given.out, rows, {})
    plain, both = (found["model"] for found in rows[-2:])
    nested = {
        name: {str(width): spearman(model, test, width) for width in (both.size.dim, *LENGTHS)}
        for name, model in (("start", weights), ("scored pairs", plain), ("nested", both))
    }
    keep(given.out, rows, nested)


if __name__ == "__main__":
    main()
