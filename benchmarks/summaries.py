"""Summarization of docstrings: from the body to the first line.

    python benchmarks/summaries.py [--packages numpy,scipy] [--budget SECONDS] [--words 60] [--out FOLDER]

Pairs are made from the docstrings of the standard library and the installed packages (`firth.data.docstrings`): the
target is the first line, the source the first words of what follows it. A tenth of the modules is held out for testing,
so that no docstring of the same module is in the training data. Reports ROUGE-1, -2 and -L (F1) of the model's
summaries, of the lead (the first line of the body, the usual baseline), and of random first lines.
Results: benchmarks/results/summaries.json and docs/results/summaries.md (with --out, in that folder instead).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "src"))

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.data.docstrings import python_docstrings  # noqa: E402
from firth.data.translation_pairs import Pair  # noqa: E402
from firth.evaluate.translation import rouge  # noqa: E402

SETTINGS: dict[str, Any] = {
    "layers": 4, "dim": 256, "heads": 4, "dropout": 0.2, "vocabulary_size": 8000, "epochs": 30, "batch_tokens": 8192,
    "learning_rate": 1e-3, "warmup": 0.1, "weight_decay": 0.05, "context_length": 256,
}  # fmt: skip
MOST_TEST = 1000


def summarised(packages: Sequence[str] | None, words: int) -> Iterator[tuple[str, Pair]]:
    """Yield (module, pair) of each docstring that has both a first line and a body."""
    for name, text in python_docstrings(packages, report=LogLines(progress=False)):
        first, _, body = text.strip().partition("\n")
        target = " ".join(re.findall(r"\w+|[^\w\s]", first.lower()))
        source = [line for line in body.split("\n") if line.strip()]
        cut = " \n ".join(" ".join(re.findall(r"\w+|[^\w\s]", line.lower())) for line in source)
        taken = " ".join(cut.split(" ")[:words])
        if 3 <= len(target.split()) <= 30 and len(taken.split()) >= 10:
            yield name.rpartition(".")[0], Pair(taken, target)


def held_back(module: str) -> bool:
    return hashlib.sha256(module.encode()).digest()[0] < 26


def measure(packages: Sequence[str] | None, words: int, run: firth.Run, changes: dict[str, Any]) -> dict[str, Any]:
    result = list(summarised(packages, words))
    training = [pair for module, pair in result if not held_back(module)]
    targets = {pair.target for pair in training}
    # First lines that also occur in the training data would be memorized, not summarized.
    test = [pair for module, pair in result if held_back(module) and pair.target not in targets]
    test = Random(1).sample(test, min(MOST_TEST, len(test)))
    method = firth.Seq2Seq(**{**SETTINGS, **changes})
    began = time.perf_counter()
    model = method.fit(firth.TranslationPairs(training), run)
    seconds = time.perf_counter() - began
    sources, right = [pair.source for pair in test], [pair.target for pair in test]
    written = [each.text for each in model.translations(sources)]
    lines = {
        "Seq2Seq": written,
        "lead: the body's first line": [source.partition(" \n ")[0] for source in sources],
        "a first line at random": [Random(number).choice(training).target for number in range(len(test))],
    }
    return {
        "pairs": len(training),
        "test": len(test),
        "rouge": {name: list(rouge(texts, right)) for name, texts in lines.items()},
        "seconds": seconds,
        "parameters": model.training["parameters"],
        "epochs": model.training["finished_epochs"],
        "perplexity": model.training["perplexity"],
        "device": model.training.get("device", "CPU"),
        "examples": [[source[:200], text, truth] for source, text, truth in zip(sources, written, right, strict=True)][
            :5
        ],
        "options": method.options(),
    }


def page(result: dict[str, Any], words: int) -> Iterator[str]:
    yield f"`python benchmarks/summaries.py` on {result['device']}, {time.strftime('%Y-%m-%d')}."
    yield f"{result['pairs']:,} docstrings for training, {result['test']:,} of other modules to test on; the first"
    yield f"{words} words of the body become the first line. {result['parameters'] / 1e6:.1f} M parameters,"
    yield f"{result['epochs']} epochs in {result['seconds']:.0f} s."
    yield ""
    yield "| | ROUGE-1 | ROUGE-2 | ROUGE-L |"
    yield "| --- | ---: | ---: | ---: |"
    for name, scores in result["rouge"].items():
        yield f"| {name} | {' | '.join(f'{score:.1f}' for score in scores)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", help="only these, as in numpy,scipy")
    parser.add_argument("--words", type=int, default=60, help="of the body that the model reads")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another option of Seq2Seq")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of training")
    parser.add_argument("--out", type=Path, help="a folder for results instead of benchmarks/results and docs/results")
    arguments = parser.parse_args()
    changes = {name: json.loads(value) for name, _, value in (item.partition("=") for item in arguments.set)}
    run = firth.Run(budget=arguments.budget, report=LogLines(progress=False))
    packages = arguments.packages.split(",") if arguments.packages else None
    result = measure(packages, arguments.words, run, changes)
    record = (arguments.out or HERE / "results") / "summaries.json"
    written = (arguments.out or HERE.parent / "docs" / "results") / "summaries.md"
    for path in (record, written):
        path.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    written.write_text("\n".join([*page(result, arguments.words), ""]), encoding="utf-8")
    print(json.dumps(result["examples"], indent=1, ensure_ascii=False))
    print("\n".join(page(result, arguments.words)))


if __name__ == "__main__":
    main()
