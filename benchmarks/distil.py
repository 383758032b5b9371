"""Distillation of a transformer to a table of token vectors, compared with its teacher and with model2vec.

    python benchmarks/distil.py DATA WEIGHTS [--texts N] [--speed-texts N] [--rounds N] [--no-peer] [--out FOLDER]

DATA holds text/wiki-raw.txt.xz and sentences/stsb-en-dev.csv, -test.csv; WEIGHTS is a folder of Hugging Face's, such as
all-MiniLM-L6-v2. Reports Spearman's ρ of cosines and human scores on STS-B (the test set is used once) for the teacher,
for Firth's table from tokens only, for Firth's table fitted to N sentences, and for model2vec's (pip install
"model2vec[distill]"). Then texts per second on all CPU cores, for the same sentences (a part of them for the teacher),
interleaved, the best of several rounds; the teacher by Firth's engine and by sentence-transformers. Results:
results/distil.json beside this file and docs/results/distil.md (with --out, in that folder instead).
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np  # noqa: E402

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.core.run import available_cores  # noqa: E402
from firth.core.scores import correlation, ranks  # noqa: E402
from firth.transformers.distillation import draw_sentences  # noqa: E402

Embed = Callable[[list[str]], Any]
PART = 20  # the slow teacher gets fewer texts per round


def stsb(data: Path, part: str) -> tuple[list[str], list[str], np.ndarray]:
    with (data / f"sentences/stsb-en-{part}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return [row[0] for row in rows], [row[1] for row in rows], np.array([float(row[2]) for row in rows])


def spearman(embed: Embed, pairs: tuple[list[str], list[str], np.ndarray]) -> float:
    first, second = (np.asarray(embed(side), np.float64) for side in pairs[:2])
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return 100 * correlation(ranks((first * second).sum(1) / np.maximum(lengths, 1e-12)), ranks(pairs[2]))


def peer(weights: Path, dim: int) -> Any:
    """Run model2vec's distillation with its defaults, except for single precision."""
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    return distill_from_model(
        AutoModel.from_pretrained(weights),
        AutoTokenizer.from_pretrained(weights),
        device="cpu",
        pca_dims=dim,
        quantize_to="float32",
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def speeds(embeds: dict[str, tuple[Embed, int]], texts: list[str], rounds: int) -> dict[str, float]:
    """Return texts per second, the best of the rounds; each gets its share of the texts."""
    results = dict.fromkeys(embeds, 0.0)
    for _ in range(rounds):
        for name, (embed, part) in embeds.items():
            some = texts[: max(1, len(texts) // part)]
            _, seconds = timed(lambda embed=embed, some=some: embed(some))
            results[name] = max(results[name], len(some) / seconds)
    return results


def page(results: dict[str, Any]) -> str:
    teacher = results["speed"]["teacher, Firth"]
    lines = [
        "| model | STS-B dev | STS-B test | texts/s | × teacher | distilled in |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, quality in results["quality"].items():
        speed = results["speed"].get(name)
        table_cells = [f"{speed:,.0f}", f"{speed / teacher:,.0f}×"] if speed else ["", ""]
        made = results["made"].get(name)
        cells = [
            name,
            f"{quality['dev']:.1f}",
            f"{quality['test']:.1f}",
            *table_cells,
            f"{made:,.0f} s" if made else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    other = results["speed"].get("teacher, sentence-transformers")
    beside = f" The teacher with sentence-transformers: {other:,.0f} texts/s." if other else ""
    lines += [
        "",
        f"Spearman's ρ × 100. Speed: sentences of {results['tokens_per_text']:.0f} tokens, {results['cores']} cores "
        f"({results['machine']}).{beside} Fitted to {results['texts']:,} sentences of wiki-raw; "
        "the teacher ran "
        f"on {results['device']}; `benchmarks/distil.py`.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--speed-texts", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    run = firth.Run(report=LogLines(progress=False))
    teacher = firth.load(given.weights)
    with lzma.open(given.data / "text/wiki-raw.txt.xz", "rt", encoding="utf-8") as file:
        corpus = firth.Corpus([line.strip() for line in file if line.strip() and not line.startswith("=")])
    made: dict[str, float] = {}
    alone, made["Firth, tokens only"] = timed(lambda: firth.Distil(dim=given.dim).fit(None, run, teacher))
    fitted, made["Firth, fitted"] = timed(
        lambda: firth.Distil(dim=given.dim, texts=given.texts).fit(corpus, run, teacher)
    )
    embeds: dict[str, tuple[Embed, int]] = {
        "teacher, Firth": (lambda texts: teacher.embed(texts, device="cpu"), PART),
        "Firth, tokens only": (alone.embed, 1),
        "Firth, fitted": (fitted.embed, 1),
    }
    if not given.no_peer:
        from sentence_transformers import SentenceTransformer

        theirs, made["model2vec"] = timed(lambda: peer(given.weights, given.dim))
        slow = SentenceTransformer(str(given.weights), device="cpu")
        embeds["model2vec"] = (theirs.encode, 1)
        embeds["teacher, sentence-transformers"] = (slow.encode, PART)
    pairs = {part: stsb(given.data, part) for part in ("dev", "test")}
    quality = {
        name: {part: spearman(embed, both) for part, both in pairs.items()}
        for name, (embed, _) in embeds.items()
        if name != "teacher, sentence-transformers"
    }
    for name, metrics in quality.items():
        print(name, metrics, flush=True)
    texts = draw_sentences(corpus, given.speed_texts, seed=7)
    known = fitted.embed_with_counts(texts).known
    results = {
        "quality": quality,
        "speed": speeds(embeds, texts, given.rounds),
        "made": made,
        "texts": fitted.training["texts"],
        "tokens_per_text": float(known.mean()),
        "cores": available_cores(),
        "machine": platform.machine(),
        "device": "a GPU" if teacher.engine().__class__.__name__ == "Torch" else "the CPU",
        "versions": {"firth": firth.__version__},
    }
    print(json.dumps(results["speed"], indent=2))
    json_path = (given.out or HERE / "results") / "distil.json"
    page_path = (given.out or HERE.parent / "docs" / "results") / "distil.md"
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps(results, indent=2) + "\n")
    page_path.write_text(page(results))


if __name__ == "__main__":
    main()
