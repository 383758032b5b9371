"""Word vectors trained by several workers against one process: quality and speed.

    python benchmarks/distributed_words.py DATA [--workers 1 2 4] [--seeds 1 2 3] [--epochs 5] [--where processes]
        [--text FILE] [--work FOLDER]

DATA holds text/wiki17m.txt.xz and words/, as for words.py. `--workers 1` is one process without a cluster, with one
thread. Quality: analogies among the 30,000 most frequent words, WS-353 and SimLex-999; the mean over seeds and the
difference to one process. Speed: words per second of training, without reading the text; runs are interleaved. Finished
runs are kept in the work folder, so that an interrupted benchmark continues. `--text` trains on another text.
Results: benchmarks/results/distributed-words.json and docs/results/distributed-words.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402

METHODS = {
    "skip-gram": firth.SkipGram(tokenizer="whitespace"),
    "CBOW": firth.CBOW(tokenizer="whitespace"),
    "fastText": firth.FastText(tokenizer="whitespace"),
}
PAIRS = {"ws353": "EN-WS-353-ALL.txt", "simlex": "EN-SIMLEX-999.txt"}


def measured(method: firth.Method, text: Path, seed: int, workers: int, where: str, data: Path) -> dict[str, Any]:
    """Train and evaluate one model."""
    run = firth.Run(seed=seed, threads=1)
    if workers > 1:
        run = firth.Run(seed=seed, cluster=where, workers=workers, deterministic=True)
    began = time.perf_counter()
    model = method.fit(firth.Corpus(text), run)
    seconds = time.perf_counter() - began
    vectors = model.vectors
    analogies = evaluate.analogies(vectors, evaluate.read_questions(data / "words" / "questions-words.txt"))
    similar = {
        name: evaluate.word_similarity(vectors, evaluate.read_pairs(data / "words" / file)).spearman
        for name, file in PAIRS.items()
    }
    training = model.training
    return {
        "seed": seed,
        "workers": workers,
        "where": where if workers > 1 else "",
        "analogies": analogies.total.accuracy,
        "questions": analogies.total.answered,
        **similar,
        "loss": training["loss"],
        "words_per_second": training["words_per_second"],
        "seconds": seconds,
    }


def results_page(runs: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The page of docs."""
    lines = [
        f"`python benchmarks/distributed_words.py DATA` on {facts['machine']}, {facts['date']}.",
        "",
        f"{facts['text']}, {facts['epochs']} epochs, 100d; mean of {facts['seeds']} seeds, and the difference to one "
        f"process. All runs share {facts['cores']} cores; a worker has one thread, one process too.",
        "",
        "| | workers | analogies | WS-353 | SimLex-999 | words/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for method in dict.fromkeys(run["method"] for run in runs):
        base: dict[str, float] = {}
        for workers in sorted({run["workers"] for run in runs if run["method"] == method}):
            group = [run for run in runs if (run["method"], run["workers"]) == (method, workers)]
            mean = {name: statistics.mean(run[name] for run in group) for name in ("analogies", *PAIRS)}
            base = base or mean
            shares = [f"{mean['analogies']:.1%}", *(f"{mean[name]:.3f}" for name in PAIRS)]
            if workers > 1:
                gains = [100 * (mean["analogies"] - base["analogies"]), *(mean[name] - base[name] for name in PAIRS)]
                shares = [f"{a} ({b:+.{n}f})" for a, b, n in zip(shares, gains, (1, 3, 3), strict=True)]
            speed = max(run["words_per_second"] for run in group) / 1e6
            lines.append(f"| {method} | {workers} | {' | '.join(shares)} | {speed:.2f}M |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["skip-gram"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--where", default="processes", choices=("processes", "ray"))
    parser.add_argument("--text", type=Path)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = arguments.text or plain_text(arguments.data, arguments.work)
    runs = []
    for seed in arguments.seeds:
        for name in arguments.methods:
            for workers in arguments.workers:
                kept = arguments.work / f"distributed-{text.stem}-{name}-{workers}-{seed}-{arguments.epochs}.json"
                if not kept.exists():
                    method = dataclasses.replace(METHODS[name], epochs=arguments.epochs)
                    run = measured(method, text, seed, workers, arguments.where, arguments.data)
                    kept.write_text(json.dumps({"method": name, **run}) + "\n")
                runs.append(json.loads(kept.read_text()))
                print(json.dumps(runs[-1]), file=sys.stderr)
    facts = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "text": "The whole text (16.9M words)" if not arguments.text else text.name,
        "epochs": arguments.epochs,
        "seeds": len(arguments.seeds),
        "cores": len(os.sched_getaffinity(0)),
    }
    page = results_page(runs, facts)
    print(page)
    if not arguments.text:
        (HERE / "results" / "distributed-words.json").write_text(json.dumps({**facts, "runs": runs}, indent=1) + "\n")
        (HERE.parent / "docs" / "results" / "distributed-words.md").write_text(page)


if __name__ == "__main__":
    main()
