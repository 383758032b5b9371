"""Fine-tuning: SST-2, MRPC, STS-B and SQuAD from the weights of a small BERT; features of a frozen one on the CPU.

    python benchmarks/finetune.py DATA WEIGHTS [--only sst2 --only squad …] [--choose train] [--rows N] [--out FOLDER]

DATA holds sentences/ (sst2, mrpc, stsb-en-*.csv) and qa/ (squad-train-part.json, squad-dev-v1.1.json), packed or not;
WEIGHTS is a folder of Hugging Face's, such as all-MiniLM-L6-v2. Reports the task's metric on its dev data and the
seconds of training and selection. Rate, pooling, restart and epoch are selected on a held-out tenth of the training
data; `--choose dev` selects on the dev data, as is common for GLUE dev results (both are reported).

SQuAD is compared with a plain loop around transformers' model, at the same settings (batch, length, rate, epochs, bf16,
AdamW), padded to the longest of a batch as its collator does, timed from the first step to the last, interleaved.
`features` are vectors of 5,000 rows of SST-2 by the frozen network and a logistic regression (scikit-learn), on the
CPU. `--rows N` uses N rows of each training and dev set, for a quick test. Results: results/finetune.json beside this
file and docs/results/finetune.md (with --out, in that folder instead), after each round; a run adds to what is there.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from squad_peer import CUDA, Peer  # noqa: E402

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.core.scores import accuracy, correlation, f1, matthews, ranks  # noqa: E402

SPANS = {"epochs": 5, "batch_size": 64, "learning_rate": 2e-4, "warmup": 0.1, "weight_decay": 0.01, "max_length": 384}
TASKS: dict[str, dict[str, Any]] = {
    "sst2": {"epochs": 4, "batch_size": 64, "learning_rates": "5e-5,1e-4", "max_length": 128},
    "mrpc": {
        "epochs": 5,
        "batch_size": 32,
        "learning_rates": "1e-4,2e-4",
        "restarts": 2,
        "metric": "f1",
        "max_length": 256,
    },
    "stsb": {"epochs": 5, "batch_size": 32, "learning_rates": "1e-4,2e-4", "restarts": 2, "max_length": 256},
}
POOLS = ("cls", "mean")
SEEDS = 2  # of SQuAD
AIMS = {"sst2": ("accuracy", 0.90), "mrpc": ("f1", 0.88), "stsb": ("spearman", 0.86)}
NAMES = {"sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B"}
CHOSEN_BY = {"train": "a tenth of train", "dev": "dev itself"}
FEATURE_ROWS = 5000


def packed(data: Path, name: str) -> Path:
    """Open a file, compressed or not."""
    path = data / name
    return path if path.exists() else path.with_name(path.name + ".xz")


def text_of(data: Path, name: str) -> str:
    path = packed(data, name)
    raw = path.read_bytes()
    return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8-sig")


def table(
    data: Path, name: str, columns: dict[int, str], rows: int, header: bool, quoted: bool
) -> dict[str, list[str]]:
    """Some columns of a csv or tsv, by index. Quotes have no meaning in GLUE's tsv files."""
    delimiter = "," if name.endswith(".csv") else "\t"
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    lines = list(csv.reader(io.StringIO(text_of(data, name), newline=""), delimiter=delimiter, quoting=quoting))
    lines = [line for line in lines[header:] if len(line) > max(columns)][: rows or None]
    return {named: [line[column].strip() for line in lines] for column, named in columns.items()}


def examples(data: Path, task: str, part: str, rows: int) -> firth.Examples:
    if task == "sst2":
        return firth.Examples(table(data, f"sentences/sst2/{part}.tsv", {0: "text", 1: "label"}, rows, True, False))
    if task == "mrpc":
        columns = {0: "label", 3: "text", 4: "other"}
        outcome = table(data, f"sentences/mrpc/{part}_cleaned.tsv", columns, rows, True, False)
        outcome = {name: [cell.strip('"').replace('""', '"') for cell in cells] for name, cells in outcome.items()}
    else:
        columns = {0: "text", 1: "other", 2: "label"}
        outcome = table(data, f"sentences/stsb-en-{part}.csv", columns, rows, False, True)
        outcome["label"] = [float(cell) for cell in outcome["label"]]  # type: ignore[misc]
    return firth.Examples(outcome, other="other")


def tuned(
    data: Path, weights: Path, task: str, choose: str, rows: int, run: firth.Run, changes: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """One of the three tasks of sentences, by [CLS] and by the mean of the tokens, chosen between as rates are."""
    train, dev = (examples(data, task, part, rows) for part in ("train", "dev"))
    train.dev = dev if choose == "dev" else None
    base, outcome = firth.load(weights), dict[str, dict[str, Any]]()
    for pool in POOLS:
        outcome[pool] = one_pool(train, dev, base, task, run, {**TASKS[task], "pooling": pool, **changes})
        best = max(outcome.values(), key=lambda one: one["chosen_at"])
        pools = {name: {key: one[key] for key in ("chosen_at", "value")} for name, one in outcome.items()}
        yield {**best, "choose": choose, "pools": pools, "seconds": sum(one["seconds"] for one in outcome.values())}


def one_pool(train: Any, dev: Any, base: Any, task: str, run: firth.Run, settings: dict[str, Any]) -> dict[str, Any]:
    method = firth.TextRegressor(**settings) if task == "stsb" else firth.TextClassifier(**settings)
    began = time.perf_counter()
    model = method.fit(train, run, base)
    seconds = time.perf_counter() - began
    metrics, (name, aim) = model.training, AIMS[task]
    best = max(metrics["held_out"], key=lambda one: one["score"])
    if CUDA:
        model.net.cuda()
    dev_metrics = dev_figures(model, dev, task)
    return {
        "figure": name,
        "value": dev_metrics[name],
        "aim": aim,
        "chosen_at": best["score"],
        "seconds": seconds,
        "training": metrics["seconds"],
        "rows": metrics["texts"],
        "texts_per_second": metrics["texts_per_second"],
        "others": dev_metrics,
        "best": {key: best[key] for key in ("try", "rate", "share")},
        "pool": settings["pool"],
        "options": method.options(),
        "device": metrics.get("device", "CPU"),
    }


def dev_figures(model: Any, dev: Any, task: str) -> dict[str, float]:
    if task == "stsb":
        outcome, right = np.asarray(model.estimate(dev.texts()), np.float64), dev.numbers()
        return {"spearman": correlation(ranks(outcome), ranks(right)), "pearson": correlation(outcome, right)}
    said = np.array([model.labels.index(labels[0][0]) for labels in model.predict(dev.texts())])
    truth = np.array([model.labels.index(label) for label in dev.labels()])
    return {"accuracy": accuracy(truth, said), "f1": f1(truth, said, 2), "matthews": matthews(truth, said)}


# ---- features ----


def features(data: Path, weights: Path, rows: int) -> Iterator[dict[str, Any]]:
    """A frozen net's vectors, a linear layer by logistic regression; all on the CPU."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from firth.sklearn import Features

    count = rows or FEATURE_ROWS
    train = table(data, "sentences/sst2/train.tsv", {0: "text", 1: "label"}, 0, True, False)
    dev = table(data, "sentences/sst2/dev.tsv", {0: "text", 1: "label"}, rows, True, False)
    selected = np.random.default_rng(1).permutation(len(train["text"]))[:count]
    texts, labels = ([train[name][row] for row in selected] for name in ("text", "label"))
    began = time.perf_counter()
    pipeline = make_pipeline(Features(model=str(weights)), LogisticRegression(max_iter=2000, C=3.0))
    pipeline.fit(texts, labels)
    score = float(pipeline.score(dev["text"], dev["label"]))
    seconds = time.perf_counter() - began
    yield {"accuracy": score, "aim": 0.79, "seconds": seconds, "rows": len(texts), "device": "CPU"}


# ---- SQuAD, and the same with transformers' net ----


def squad(data: Path, weights: Path, rows: int, run: firth.Run, changes: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Firth and transformers in turns, each with several seeds: the best speed of each, the mean of its figures."""
    train, dev = (firth.Questions(packed(data, f"qa/squad-{part}.json")) for part in ("train-part", "dev-v1.1"))
    train.rows, dev.rows = train.rows[: rows or None], dev.rows[: rows or None]
    settings = {**SPANS, **changes}
    base, peer = firth.load(weights), Peer(train, dev, weights, settings)
    few = firth.Questions(train)
    few.rows = train.rows[: 2 * settings["batch_size"]]
    firth.QuestionAnswerer(**{**settings, "epochs": 1}, held_out=0.0).fit(
        few, run, base
    )  # warm-up: the first steps load kernels
    outcome: dict[str, list[dict[str, float]]] = {"firth": [], "transformers": []}
    device = torch.cuda.get_device_name() if CUDA else "CPU"
    for seed in range(1, SEEDS + 1):
        outcome["firth"].append(firth_answers(train, dev, base, settings, replace(run, seed=seed)))
        print(json.dumps({"firth": outcome["firth"][-1]}), flush=True)
        outcome["transformers"].append(peer.answers(seed))
        print(json.dumps({"transformers": outcome["transformers"][-1]}), flush=True)
        result: dict[str, Any] = {}
        for who, rounds in outcome.items():
            fastest = max(rounds, key=lambda one: one["windows_per_second"])
            means = {name: float(np.mean([one[name] for one in rounds])) for name in ("exact_match", "f1")}
            result[who] = {**fastest, **means, "rounds": list(rounds)}
        faster = result["firth"]["windows_per_second"] / result["transformers"]["windows_per_second"]
        yield {**result, "faster": faster, "aim": 0.60, "options": settings, "device": device}


def firth_answers(train: Any, dev: Any, base: Any, settings: dict[str, Any], run: firth.Run) -> dict[str, float]:
    from firth.evaluate import answers

    model = firth.QuestionAnswerer(**settings, held_out=0.0).fit(train, run, base)
    if CUDA:
        model.net.cuda()
    began = time.perf_counter()
    outcome = answers(model, dev)
    metrics = model.training
    return {
        "exact_match": outcome.exact_match,
        "f1": outcome.f1,
        "training": metrics["seconds"],
        "windows": metrics["windows"],
        "windows_per_second": metrics["texts_per_second"],
        "answering": time.perf_counter() - began,
        "steps": metrics["steps"],
    }


# ---- the page ----


def page(results: dict[str, Any]) -> Iterator[str]:
    devices = sorted({outcome["device"] for outcome in results.values()})
    yield f"`python benchmarks/finetune.py DATA WEIGHTS` with all-MiniLM-L6-v2 on {' and '.join(devices)},"
    yield f"{time.strftime('%Y-%m-%d')}."
    sentences = [(name, results[key]) for name in NAMES for key in (name, f"{name}-dev") if key in results]
    if sentences:
        yield "Metrics on dev data; seconds of all trials with both poolings."
        yield ""
        yield "| task | metric | target | selected on | pooling | best learning rate | trials each | s | texts/s |"
        yield "| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: |"
    for name, outcome in sentences:
        tries = outcome["options"]["restarts"] * len((outcome["options"]["learning_rates"] or "1").split(","))
        yield (
            f"| {NAMES[name]} | {outcome['figure']} {100 * outcome['value']:.1f} | {100 * outcome['aim']:.0f} | "
            f"{CHOSEN_BY[outcome['choose']]} | {outcome['pool']} | "
            f"{outcome['best']['rate']:g} | {tries} | {outcome['seconds']:.0f} | {outcome['texts_per_second']:,.0f} |"
        )
    if "features" in results:
        outcome = results["features"]
        yield ""
        yield f"Frozen network on a CPU, vectors of {outcome['rows']:,} rows of SST-2, logistic regression: accuracy"
        accuracy, aim = 100 * outcome["accuracy"], 100 * outcome["aim"]
        yield f"{accuracy:.1f} (target {aim:.0f}), {outcome['seconds']:.0f} s in total."
    if "squad" in results:
        outcome = results["squad"]
        yield ""
        yield "SQuAD 1.1, part of its training data (11,877 questions), all of its dev data. Metrics are means over"
        yield f"{len(outcome['firth']['rounds'])} seeds, times the best:"
        yield ""
        yield "| | exact match | F1 | s to train | windows/s | s to predict |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for who in ("firth", "transformers"):
            one = outcome[who]
            yield (
                f"| {who} | {100 * one['exact_match']:.1f} | {100 * one['f1']:.1f} | {one['training']:.1f} "
                f"| {one['windows_per_second']:,.0f} | {one['answering']:.1f} |"
            )
        yield ""
        yield f"Firth trains {outcome['faster']:.2f} times as fast: no padding is computed."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--only", action="append", help="sst2, mrpc, stsb, squad, features; may be given several times")
    parser.add_argument("--choose", choices=tuple(CHOSEN_BY), default="train", help="what chooses the weights")
    parser.add_argument("--rows", type=int, default=0, help="only so many rows of each set")
    parser.add_argument("--threads", type=int, default=0, help="of a CPU; 0 = one for each core")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another option of the methods"
    )
    parser.add_argument("--out", type=Path, help="a folder for results instead of benchmarks/results and docs/results")
    arguments = parser.parse_args()
    record = (arguments.out or HERE / "results") / "finetune.json"
    written = (arguments.out or HERE.parent / "docs" / "results") / "finetune.md"
    results: dict[str, Any] = json.loads(record.read_text())["runs"] if record.exists() else {}
    changes = {name: json.loads(value) for name, _, value in (item.partition("=") for item in arguments.set)}
    print(f"torch {torch.__version__}, {platform.platform()}, cuda {CUDA}", flush=True)
    where, run = (
        (arguments.data, arguments.weights),
        firth.Run(report=LogLines(progress=False), threads=arguments.threads),
    )
    tasks: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        **{
            name: lambda name=name: tuned(*where, name, arguments.choose, arguments.rows, run, changes)
            for name in TASKS
        },
        "squad": lambda: squad(*where, arguments.rows, run, changes),
        "features": lambda: features(*where, arguments.rows),
    }
    for name in arguments.only or tasks:
        for outcome in tasks[name]():
            results[f"{name}-dev" if outcome.get("choose") == "dev" else name] = outcome
            print(json.dumps({name: {key: value for key, value in outcome.items() if key != "options"}}), flush=True)
            for path in (record, written):
                path.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps({"runs": results}, indent=1, ensure_ascii=False) + "\n")
            written.write_text("\n".join([*page(results), ""]), encoding="utf-8")
    print("\n".join(page(results)))


if __name__ == "__main__":
    main()
