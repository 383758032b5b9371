"""Users without a history: recommendations from the social graph.

    python benchmarks/users.py DATA [--seeds 3]

DATA holds people/lastfm/data1.txt and test1.txt (user, artist, plays per line) and trustnetwork.txt (links between
users). A fifth of the users is held out: their links are known, their plays are not. Artists are ranked by the others'
plays:

- popularity: the number of users who played them;
- friends: the number of linked users who played them;
- node2vec: the number of the 50 nearest users by node vectors who played them, weighted by similarity;
- node2vec to ALS: a ridge regression from node vectors to the user vectors of ALS.

Results: benchmarks/results/users.json and docs/results/users.md. Half a minute.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import firth

HERE = Path(__file__).resolve().parent
PLAYS, FOLLOWS = ("people/lastfm/data1.txt", "people/lastfm/test1.txt"), "people/lastfm/trustnetwork.txt"
DIM, NEAREST, RIDGE, BEST = 64, 50, 1.0, 20


def read(data: Path) -> tuple[list[tuple[str, str, float]], firth.Graph]:
    plays = []
    for name in PLAYS:
        for line in (data / name).read_text(encoding="utf-8").splitlines():
            user, artist, count = line.split()
            plays.append((user, artist, float(count)))
    return plays, firth.Graph(str(data / FOLLOWS))


def trial(plays: list[tuple[str, str, float]], graph: firth.Graph, seed: int) -> dict[str, float]:
    """Return the recall@20 of each method on the held-out users."""
    run = firth.Run(seed=seed)
    linked = sorted({user for user, _, _ in plays} & set(graph.keys))
    held = set(np.random.default_rng(seed).permutation(linked)[: len(linked) // 5].tolist())
    als = firth.ALS(dim=DIM).fit(firth.Interactions([play for play in plays if play[0] not in held]), run)
    nodes = firth.Node2Vec(dim=DIM).fit(graph, run).vectors

    seen, items = als.seen, als.items
    had = scipy.sparse.csr_matrix(
        (np.ones(len(seen.items), np.float32), seen.items, seen.starts), (len(als.users), len(items))
    )
    popular = np.asarray(had.sum(axis=0)).ravel()
    known = [row for row, user in enumerate(als.users.keys) if user in nodes]
    inputs = nodes.unit[[nodes.row(als.users.keys[row]) for row in known]]
    targets = als.users.matrix[known]
    mean = targets.mean(axis=0)
    turn = np.linalg.solve(inputs.T @ inputs + RIDGE * np.eye(DIM), inputs.T @ (targets - mean))

    truth: dict[str, set[str]] = defaultdict(set)
    for user, artist, _ in plays:
        if user in held:
            truth[user].add(artist)
    number = {key: row for row, key in enumerate(graph.keys)}
    recalls: dict[str, list[float]] = defaultdict(list)
    for user, right in truth.items():
        mine = graph.neighbors[graph.starts[number[user]] : graph.starts[number[user] + 1]]
        friends = [als.users.rows[key] for row in mine if (key := graph.keys[row]) in als.users]
        near = inputs @ nodes.unit[nodes.row(user)]
        top = np.argsort(-near)[:NEAREST]
        weights = np.maximum(near[top], 0)
        ways = {
            "popularity": popular,
            "friends": np.asarray(had[friends].sum(axis=0)).ravel() if friends else popular,
            "node2vec": had[[known[row] for row in top]].T @ weights,
            "node2vec to ALS": items.matrix @ (mean + nodes.unit[nodes.row(user)] @ turn),
        }
        for way, scores in ways.items():
            best = np.lexsort((-popular, -scores))[:BEST]  # ties go to the more popular
            recommended = {items.keys[row] for row in best}
            recalls[way].append(len(recommended & right) / min(BEST, len(right)))
    return {way: float(np.mean(values)) for way, values in recalls.items()}


def write(results: dict[str, Any]) -> None:
    (HERE / "results" / "users.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    lines = [
        f"`python benchmarks/users.py DATA`, {results['date']}. Last.fm: {results['users']:,} users,",
        f"{results['links']:,} links; a fifth of the users is held out, with only their links known; mean of",
        f"{len(results['trials'])} seeds.",
        "",
        "| ranked by | recall@20 |",
        "| --- | ---: |",
    ]
    means = {way: np.mean([each[way] for each in results["trials"]]) for way in results["trials"][0]}
    lines += [f"| {way} | {mean:.3f} |" for way, mean in means.items()]
    (HERE.parent / "docs" / "results" / "users.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    plays, graph = read(options.data)
    trials = [trial(plays, graph, seed) for seed in range(1, options.seeds + 1)]
    sizes = {"users": len({user for user, _, _ in plays}), "links": len(graph.neighbors) // 2}
    write({"date": time.strftime("%Y-%m-%d"), **sizes, "trials": trials})
    print(json.dumps(trials, indent=1))


if __name__ == "__main__":
    main()
