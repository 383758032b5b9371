"""The page of gpu_words.py, written from its results."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"


def by_seed(rows: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, row in rows.items():
        groups.setdefault(name.rpartition(", seed ")[0], []).append(row)
    return groups


def cell(rows: list[dict[str, Any]], name: str, layout: str, scale: float = 1) -> str:
    values = [row[name] * scale for row in rows if name in row]
    middle = statistics.median if name.endswith("seconds") else statistics.mean
    return layout.format(middle(values)) if values else ""


def words_table(rows: dict[str, Any]) -> Iterator[str]:
    yield "| | seeds | words/s, kernel | words/s, training | text to vectors | analogies | WS-353 | SimLex-999 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, groups in sorted(by_seed(rows).items()):
        cells = [
            cell(groups, "kernel_words_per_second", "{:.3g}M", 1e-6), cell(groups, "words_per_second", "{:.3g}M", 1e-6),
            cell(groups, "total_seconds", "{:.2f} s"), cell(groups, "analogies", "{:.1%}"),
            cell(groups, "ws353", "{:.3f}"), cell(groups, "simlex", "{:.3f}"),
        ]  # fmt: skip
        yield f"| {name} | {len(groups)} | {' | '.join(cells)} |"


def speed_table(rows: dict[str, Any]) -> Iterator[str]:
    yield "| | words/s in the kernel | pairs/s | bytes/s | share of the GPU's bandwidth |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, row in rows.items():
        cells = [
            cell([row], "kernel_words_per_second", "{:.0f}M", 1e-6), cell([row], "pairs_per_second", "{:.2f}G", 1e-9),
            cell([row], "bytes_per_second", "{:.2f}T", 1e-12), cell([row], "bandwidth_share", "{:.0%}"),
        ]  # fmt: skip
        yield f"| {name} | {' | '.join(cells)} |"


def graph_table(rows: dict[str, Any]) -> Iterator[str]:
    yield "| | from edges to vectors | training | walks | Macro-F1 | Micro-F1 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in rows.items():
        times = [cell([row], key, "{:.3f} s") for key in ("total_seconds", "seconds", "walk_seconds")]
        scores = [cell([row], key, "{:.3f}") for key in ("macro", "micro")]
        yield f"| {name} | {' | '.join(times + scores)} |"


def programs_table(rows: dict[str, Any]) -> Iterator[str]:
    yield "| programs | words/s in the kernel | analogies | WS-353 | SimLex-999 |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for name in sorted(rows, key=int):
        speed = cell([rows[name]], "kernel_words_per_second", "{:.0f}M", 1e-6)
        scores = [cell([rows[name]], key, layout) for key, layout in
                  (("analogies", "{:.1%}"), ("ws353", "{:.3f}"), ("simlex", "{:.3f}"))]  # fmt: skip
        yield f"| {int(name):,} | {speed} | {' | '.join(scores)} |"


def plot(rows: dict[str, Any], path: Path) -> None:
    """Quality and speed by number of programs."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "firth"
    import matplotlib.pyplot as plt

    names = sorted(rows, key=int)
    counts = [int(name) for name in names]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for key, label in (("analogies", "analogies"), ("ws353", "WS-353"), ("simlex", "SimLex-999")):
        left.plot(counts, [rows[name][key] for name in names], marker="o", label=label)
    right.plot(counts, [rows[name]["kernel_words_per_second"] / 1e6 for name in names], marker="o", color="black")
    left.set(xscale="log", xlabel="programs", ylabel="score", ylim=(0, None))
    right.set(xscale="log", xlabel="programs", ylabel="million words/s", ylim=(0, None))
    left.legend()
    figure.savefig(path, metadata={"Date": None})


def page(results: dict[str, Any]) -> Iterator[str]:
    rows = results.get("skipgram", {})
    card = next((row["device"] for row in rows.values() if "kernel_seconds" in row and "device" in row), "a GPU")
    yield f"`python benchmarks/gpu_words.py DATA` on {card}, {results['date']}; CPU: {results['machine']}."
    yield "16.9M words, 5 epochs, 128 dimensions, window 5, 5 negative samples; means over seeds, median times."
    yield "Words are those of the text, including those dropped by subsampling. A time from text to vectors"
    yield "begins with a file that has been read before (its words are cached), in a process that has already used"
    yield "the GPU. gensim ran on two cores of another machine. Plain torch processes 256 windows at once; with 1,024"
    yield "it made 3M words/s, but two of three seeds diverged (analogies 3% and 28%)."
    yield from ("", "Skip-gram:", "", *words_table(rows), "")
    whole = [f"{name} {row['total_seconds']:.1f} s" for name, row in results.get("whole", {}).items()]
    yield from (f"From the start of a new process to the vectors: {'; '.join(whole)}.", "") if whole else ()
    if "cbow" in results:
        yield from ("CBOW:", "", *words_table(results["cbow"]), "")
    if "programs" in results:
        yield from (
            "Quality by number of programs, one seed, the fastest tiles; the last is one program for each word:",
            "",
        )
        yield from (*programs_table(results["programs"]), "")
        yield from (
            "```{image} /_static/gpu-programs.svg",
            ":alt: quality and speed by number of programs",
            "```",
            "",
        )
    if "dims" in results:
        yield "By dimension (window 5) and window (128 dimensions). Bytes are those of the rows that windows read and"
        yield from ("add to, most of which are in a cache:", "", *speed_table(results["dims"]), "")
    if "tiles" in results:
        yield from ("By the number of windows per tile:", "", *speed_table(results["tiles"]), "")
    if "graphs" in results:
        yield "Node2Vec on BlogCatalog (10,312 nodes, 333,983 edges; 10 walks of 80 nodes, window 10, 10 negative"
        yield from ("samples); the first run starts the GPU and compiles:", "", *graph_table(results["graphs"]), "")


def write_page(results: dict[str, Any]) -> None:
    if "programs" in results:
        plot(results["programs"], DOCS / "_static" / "gpu-programs.svg")
    text = "\n".join(page(results))
    (DOCS / "results" / "gpu-words.md").write_text(text + "\n", encoding="utf-8")
    print(text)
