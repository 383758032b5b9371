"""Co-occurrence and GloVe: the metrics that Stanford's implementation reports, which is not available as a package.

    python benchmarks/glove.py DATA [--threads 2] [--rounds 3] [--epochs 15] [--work FOLDER]

DATA holds text/wiki17m.txt.xz and words/questions-words.txt, EN-WS-353-ALL.txt, EN-SIMLEX-999.txt. Settings of
Stanford's demo: window 10, harmonic weights, both sides, x_max 10, 100 dimensions. Reports pairs counted per second,
with and without a memory limit; records per second and loss of each epoch (½ f (w·c + b_w + b_c − log X)², averaged,
which Stanford's implementation calls cost); memory; quality. The best round counts. Results: docs/results/glove.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth import evaluate, kernels  # noqa: E402
from firth.core.report import human  # noqa: E402
from firth.data.cooccurrence import Cooccurrence  # noqa: E402
from firth.data.tokens import Tokens, read_tokens  # noqa: E402

PAGE = HERE.parent / "docs" / "results" / "glove.md"
WINDOW = 10


def memory() -> int:
    """Return the peak memory of this process, including mapped files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def counting(tokens: Tokens, threads: int, rounds: int) -> list[dict[str, Any]]:
    runs = {
        f"{threads} threads": firth.Run(threads=threads),
        "1 thread": firth.Run(threads=1),
        f"{threads} threads, memory 128 MB (sorted runs on disk)": firth.Run(threads=threads, memory="128MB"),
    }
    best: dict[str, float] = {}
    fingerprints = set()
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            counted = Cooccurrence.count(tokens, window=WINDOW, run=run)
            seconds = time.perf_counter() - began
            best[name] = min(seconds, best.get(name, seconds))
            fingerprints.add(counted.fingerprint)
    assert len(fingerprints) == 1, "the sums must be the same for any threads and memory"
    return [{"name": name, "seconds": seconds, "records": len(counted)} for name, seconds in best.items()]


def speed(counted: Cooccurrence, threads: int, rounds: int) -> dict[str, float]:
    """Return records per second of one epoch, by instruction set and threads."""
    best: dict[str, float] = {}
    sets = kernels.instruction_sets()
    runs = [(f"{isa}, {threads} threads", isa, threads) for isa in reversed(sets)] + [(f"{sets[-1]}, 1 thread", "", 1)]
    for _ in range(rounds):
        for name, isa, count in runs:
            os.environ["FIRTH_ISA"] = isa
            result = firth.GloVe(epochs=1).fit(counted, firth.Run(threads=count)).training["pairs_per_second"]
            best[name] = max(result, best.get(name, 0.0))
    os.environ["FIRTH_ISA"] = ""
    return best


def quality(data: Path, model: firth.Model) -> dict[str, float]:
    vectors = model.vectors
    result = evaluate.analogies(vectors, evaluate.read_questions(data / "words" / "questions-words.txt"))
    pairs = {name: evaluate.read_pairs(data / "words" / f"EN-{name}.txt") for name in ("WS-353-ALL", "SIMLEX-999")}
    return {
        "questions": result.total.answered,
        "analogies": result.total.accuracy,
        "semantic": result.semantic.accuracy,
        "syntactic": result.syntactic.accuracy,
        **{name: evaluate.word_similarity(vectors, pairs[name]).spearman for name in pairs},
    }


def page(data: Path, tokens: Tokens, threads: int, rounds: int, epochs: int) -> Iterator[str]:
    yield f"`python benchmarks/glove.py DATA` on {machine()}, {time.strftime('%Y-%m-%d')}. {len(tokens.ids):,} words of"
    yield f"Wikipedia, {len(tokens.vocabulary):,} distinct ones; window {WINDOW}, both sides, harmonic."
    yield ""
    yield "| counting | seconds | pairs of positions/s | records |"
    yield "| --- | ---: | ---: | ---: |"
    for row in counting(tokens, threads, rounds):
        pairs = len(tokens.ids) * 2 * WINDOW / row["seconds"]
        yield f"| {row['name']} | {row['seconds']:.2f} | {human(pairs)} | {row['records']:,} |"
    yield ""
    yield "| GloVe, 100 dimensions | records/s of an epoch |"
    yield "| --- | ---: |"
    counted = Cooccurrence.count(tokens, window=WINDOW, run=firth.Run(threads=threads))
    for name, result in speed(counted, threads, rounds).items():
        yield f"| {name} | {human(result)} |"
    model = firth.GloVe(epochs=epochs).fit(counted, firth.Run(threads=threads))
    losses = [f"{epoch['loss']:.4f}" for epoch in model.training["epochs"]]
    result = quality(data, model)
    yield ""
    yield f"Loss of the epochs 1 to {epochs}: {', '.join(losses)}."
    yield f"{model.training['seconds']:.0f} s in total. Peak memory of the process, including mapped files:"
    yield f"{human(memory())}B."
    yield ""
    yield "| analogies | semantic | syntactic | WS-353 | SimLex-999 |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    shares = " | ".join(f"{result[name]:.1%}" for name in ("analogies", "semantic", "syntactic"))
    yield f"| {shares} | {result['WS-353-ALL']:.3f} | {result['SIMLEX-999']:.3f} |"
    yield ""
    yield f"({result['questions']:,} analogies among the 30,000 most frequent words.)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    tokens = read_tokens(plain_text(arguments.data, arguments.work), tokenizer="whitespace")
    lines = [*page(arguments.data, tokens, arguments.threads, arguments.rounds, arguments.epochs), ""]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
