"""PCA, LSA, autoencoder and VAE side by side; MultVAE and MultDAE beside ALS on Last.fm.

    python benchmarks/compression.py DATA [--threads 2] [--seeds 3] [--only tables --only people] [--table NAME]
                                     [--pictures FOLDER]

Tables: scikit-learn's digits, breast cancer and wine; a generated one like California's districts; synthetic people;
and a synthetic corpus of topics. Each method is trained on four fifths of the rows and evaluated on the rest, as in
`firth evaluate compression`. Metrics are means over the seeds.

DATA holds people/lastfm/data1.txt (training) and test1.txt (test). The settings of the networks are selected, like
those of ALS for people.py, by NDCG@100 on a held-out fifth of data1; test1 is used with the selected settings only.
Results, after each part: benchmarks/results/compression.json, docs/results/compression.md and
docs/results/compression-people.md; a run adds to what is there. With --pictures also the pictures of the docs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate, maps  # noqa: E402
from firth.cli.evaluate.compression import compare_compression, word_table  # noqa: E402
from firth.data.splits import split  # noqa: E402
from firth.data.world import World  # noqa: E402
from firth.evaluate.compression import CompressionResult, CompressionScore  # noqa: E402

RESULTS = HERE / "results" / "compression.json"
PAGES = HERE.parent / "docs" / "results"
METRICS = ("recall@20", "ndcg@100", "map@10")
WORLD = World(seed=3)
Page = Callable[[dict[str, Any], int], Iterator[str]]
TRIED: dict[str, list[dict[str, Any]]] = {
    "MultDAE": [{}, {"dropout": 0.7}],
    "MultVAE": [{}, {"dropout": 0.7}, {"beta": 0.5}],
}


def california(n: int = 4000) -> tuple[firth.Table, list[str]]:
    """Districts by income, age, rooms, people and place, skewed and dependent as in the census of 1990; the label is
    the quarter of house values that a district is in, from income and place."""
    random = np.random.default_rng(6)
    north, income = random.uniform(size=n), np.exp(random.normal(1.3, 0.45, n))
    households = np.exp(random.normal(6, 0.7, n))
    rooms = households * np.clip(random.normal(4.4 + 0.35 * income, 0.6, n), 1, None)
    people = households * np.clip(random.normal(3.1 - 0.05 * income, 0.4, n), 1, None)
    columns = {
        "income": income,
        "age": random.integers(1, 52, n),
        "rooms": rooms.round(),
        "bedrooms": (rooms / random.normal(5, 0.4, n)).round(),
        "people": people.round(),
        "households": households.round(),
        "latitude": 32.5 + 9.5 * north,
        "longitude": -124.3 + 10 * (1 - north) + random.normal(0, 0.6, n),
    }
    value = np.log(income) - 0.8 * np.abs(north - 0.45) + random.normal(0, 0.2, n)
    return firth.Table(columns), [str(int(q)) for q in np.searchsorted(np.quantile(value, (0.25, 0.5, 0.75)), value)]


def tables() -> Iterator[tuple[str, firth.Table, list[str] | None, int, str]]:
    """Return name, table, labels, dimension of the compressed rows, and scale of the numbers."""
    for name, load, dim, numeric in (
        ("digits", load_digits, 8, "common"),
        ("breast cancer", load_breast_cancer, 5, "standardize"),
        ("wine", load_wine, 4, "standardize"),
    ):
        stats = load()
        yield name, firth.Table(stats.data), [str(label) for label in stats.target], dim, numeric
    yield "California-like", *california(), 3, "standardize"
    people = WORLD.rows(3000).complete
    labels = [str(owns) for owns in people["owns_horse"]]
    rest = {name: values for name, values in people.items() if name != "owns_horse"}
    yield "the world's people", firth.Table(rest), labels, 3, "standardize"
    documents = list(WORLD.topics(1500))
    yield (
        "the world's topics (text)",
        word_table([text for text, _ in documents]),
        [t for _, t in documents],
        10,
        "common",
    )


def side_by_side(threads: int, seeds: int, stats: dict[str, Any], only: str | None) -> Iterator[dict[str, Any]]:
    """Yield the previous results, with one table measured again each time."""
    for name, table, labels, dim, numeric in tables():
        if only not in (None, name):
            continue
        results = [
            compare_compression(table, labels, dim, firth.Run(threads=threads, seed=seed), numeric)
            for seed in range(1, seeds + 1)
        ]
        result = mean_of(results)
        stats[name] = {
            "rows": len(table), "columns": len(table.names), "judged": result.rows, "seeds": seeds,
            "date": time.strftime("%Y-%m-%d"),
            "methods": result.to_json(), "table": result.to_markdown(),
        }  # fmt: skip
        print(f"{name}\n{result}\n", flush=True)
        yield stats


def mean_of(results: list[CompressionResult]) -> CompressionResult:
    scores = {}
    for name, score in results[0].scores.items():
        means = (statistics.mean(float(getattr(each[name], field)) for each in results) for field in score._fields)
        scores[name] = CompressionScore(*means)._replace(dim=score.dim, size=score.size)
    return CompressionResult(scores, results[0].rows, results[0].k)


# ---- people ----


def fitted(method: Any, train: firth.Interactions, test: firth.Interactions, run: firth.Run) -> dict[str, float]:
    began = time.perf_counter()
    model = method.fit(train, run)
    seconds = time.perf_counter() - began
    judged = evaluate.recommendations(model, test, metrics=METRICS, baselines=False)
    return {metric: judged[metric] for metric in METRICS} | {"seconds": seconds}


def best_settings(kind: type[Any], train: firth.Interactions, threads: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the settings with the best NDCG@100 on a fifth of the pairs, and the scores of all."""
    parts, tried = split(train, share=0.2, seed=1), dict[str, float]()
    for changes in TRIED[kind.__name__]:
        stats = fitted(kind(**changes), parts.train, parts.test, firth.Run(threads=threads))
        tried[json.dumps(changes)] = stats["ndcg@100"]
        print(kind.__name__, changes, stats, flush=True)
    return json.loads(max(tried, key=lambda changes: tried[changes])), tried


def lastfm(data: Path, threads: int, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the metrics so far, with one more seed each time."""
    folder = data / "people" / "lastfm"
    train, test = firth.Interactions(folder / "data1.txt"), firth.Interactions(folder / "test1.txt")
    choices = {kind.__name__: best_settings(kind, train, threads) for kind in (firth.MultDAE, firth.MultVAE)}
    methods = {"ALS, tuned": firth.ALS(dim=64, alpha=4.0, regularization=30.0)}
    methods |= {name: getattr(firth, name)(**settings) for name, (settings, _) in choices.items()}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
    for seed in range(1, seeds + 1):
        for name, method in methods.items():
            rows[name].append(fitted(method, train, test, firth.Run(threads=threads, seed=seed)))
            print(name, seed, rows[name][-1], flush=True)
        means = {
            name: {key: statistics.mean(one[key] for one in each) for key in each[0]} for name, each in rows.items()
        }
        yield {
            "rows": means, "each": rows, "seeds": seed, "pairs": len(train), "users": len(train.users),
            "items": len(train.items), "tried": {name: tried for name, (_, tried) in choices.items()},
            "chosen": {name: settings for name, (settings, _) in choices.items()},
        }  # fmt: skip


def draw(folder: Path) -> None:
    """Draw images: originals, reconstructions, interpolations and samples; and the 2-D map."""
    digits = load_digits()
    run = firth.Run(threads=1)
    model = firth.VAE(dim=8, numeric="common").fit(digits.data, run)

    def pixels(table: firth.Table) -> Any:
        return np.stack([table.numbers(name) for name in table.names], axis=1)

    some = digits.data[:12]
    lines = {
        "given": some,
        "rebuilt": pixels(model.reconstruct(some)),
        "between": pixels(model.interpolate(some, 2, 7, 12)),
    }
    lines |= {"made up": pixels(model.sample(12, noise=False)), "": pixels(model.sample(12, seed=2, noise=False))}
    maps.plot_images(lines, (8, 8), folder / "compress-images.png", title="VAE: 64 pixels through 8 numbers")
    flat = firth.VAE(dim=2, numeric="common").fit(digits.data, run)
    labels = [str(label) for label in digits.target]
    maps.plot_codes(
        flat.transform(digits.data), labels, folder / "compress-codes.png", title="VAE: digits as two numbers"
    )


def tables_page(stats: dict[str, Any], threads: int) -> Iterator[str]:
    yield f"`python benchmarks/compression.py DATA` on {machine()}, {threads} threads."
    yield "Each method was trained on four fifths of the rows; the metrics are those of the others."
    for name, part in stats.items():
        yield ""
        times = part.get("seeds", 1)
        ways = f"mean of {times} splits" if times > 1 else "one division"
        yield f"**{name}**: {part['rows']:,} rows, {part['columns']} columns; {ways}, {part['date']}"
        yield ""
        yield part["table"]


def people_page(stats: dict[str, Any], threads: int) -> Iterator[str]:
    yield f"`python benchmarks/compression.py DATA` on {machine()}, {threads} threads, {time.strftime('%Y-%m-%d')}."
    yield f"Last.fm: {stats['pairs']:,} pairs of {stats['users']:,} users and {stats['items']:,} artists; mean of"
    yield f"{stats['seeds']} seeds. Settings were selected on a fifth of the training pairs."
    yield ""
    yield "| | recall@20 | NDCG@100 | MAP@10 | seconds of training |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, row in stats["rows"].items():
        yield f"| {name} | {' | '.join(f'{row[metric]:.4f}' for metric in METRICS)} | {row['seconds']:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=("tables", "people"))
    parser.add_argument("--table", help="measure this table only")
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    if arguments.pictures:
        draw(arguments.pictures)
    threads, seeds = arguments.threads, arguments.seeds
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    parts: dict[str, tuple[Iterator[dict[str, Any]], str, Page]] = {
        "tables": (
            side_by_side(threads, seeds, results.get("tables", {}), arguments.table),
            "compression.md",
            tables_page,
        ),
        "people": (lastfm(arguments.data, threads, seeds), "compression-people.md", people_page),
    }
    for part in arguments.only or parts:
        rounds, name, page = parts[part]
        for stats in rounds:
            results[part] = stats
            RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
            lines = (line.rstrip() for line in page(stats, threads))
            (PAGES / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
