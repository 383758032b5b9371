"""Users from events: next item, cold start, three kinds of user vectors, and recommendations with uncertainty.

    python benchmarks/events.py MOVIES [--lastfm FOLDER] [--recbole PYTHON] [--seeds 3] [--part next …] [--work FOLDER]

MOVIES is the folder ml-100k of the RecBole package (recbole/dataset_example): ml-100k.inter (user, item, rating, time),
.user and .item. `--lastfm` is a folder with data1.txt, test1.txt and trustnetwork.txt. `--recbole` is a Python that has
RecBole (peers/recbole/requirements.txt); without it, RecBole is left out.

next: the last event of each user is the test item, the one before the validation item; all items that the user has not
had are ranked. Settings are chosen on the validation items with seed 0 and reported on the test items, as the mean of
`--seeds` other seeds, with 95 % bootstrap intervals over users. At the test the history includes the validation item.
cold: a tenth of the users and a tenth of the items are known by their features alone.
vectors: the same users embedded from what they did (ALS), from the order in which they did it (SequenceRecommender) and
from their friends (node2vec, Last.fm), read by the same nearest-neighbor and linear models.
explore: MultVAE with `explore`.
Results: benchmarks/results/events.json and docs/results/events*.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import ask  # noqa: E402

import firth  # noqa: E402
from firth.data.splits import split  # noqa: E402
from firth.evaluate.baselines import item_knn, popularity  # noqa: E402

RESULTS = HERE / "results" / "events.json"
PAGES = HERE.parent / "docs" / "results"
K = 10
CONTEXT = 50
Rows = dict[str, Any]


# ---- data ----


def atomic(path: Path) -> dict[str, list[str]]:
    """Return the columns of one of RecBole's atomic files."""
    with path.open(encoding="utf-8") as file:
        header, *rows = list(csv.reader(file, delimiter="\t"))
    return {name.partition(":")[0]: [row[at] for row in rows] for at, name in enumerate(header)}


def movies(folder: Path) -> firth.Interactions:
    """Return MovieLens-100K as events, with features: genres and decade; age, gender and occupation."""
    events, people, films = (atomic(folder / f"ml-100k.{suffix}") for suffix in ("inter", "user", "item"))
    genres = sorted({genre for text in films["class"] for genre in text.split()})
    item_features: Rows = {"item": films["item_id"]}
    item_features |= {genre: [float(genre in text.split()) for text in films["class"]] for genre in genres}
    item_features["decade"] = [year[:3] if year[:3].isdigit() else None for year in films["release_year"]]
    user_features = {
        "user": people["user_id"],
        "age": list(map(float, people["age"])),
        "gender": people["gender"],
        "occupation": people["occupation"],
    }
    rows = {"user": events["user_id"], "item": events["item_id"], "time": list(map(float, events["timestamp"]))}
    return firth.Interactions(rows, user_features=user_features, item_features=item_features)


def plain(data: firth.Interactions) -> firth.Interactions:
    """Return the events without features."""
    return firth.Interactions.from_events(data.users, data.items, data.events())


# ---- ranking ----


def ranks(
    scores: np.ndarray, items: Sequence[str], histories: Sequence[Sequence[str]], targets: Sequence[str]
) -> np.ndarray:
    """Return the rank of each user's target among the items that are not in the history; ties count half."""
    rows, found = {item: row for row, item in enumerate(items)}, np.full(len(targets), len(items) + 1.0)
    for user, (history, target) in enumerate(zip(histories, targets, strict=True)):
        if target in rows:
            unseen = np.ones(len(items), bool)
            unseen[[rows[item] for item in history if item in rows]] = False
            unseen[rows[target]] = False
            own = scores[user, rows[target]]
            found[user] = 1 + (scores[user, unseen] > own).sum() + 0.5 * (scores[user, unseen] == own).sum()
    return found


def metrics(rank: np.ndarray) -> dict[str, np.ndarray]:
    """Return recall@10 and NDCG@10 of each user, who has one target."""
    hit = rank <= K
    return {"recall@10": hit.astype(float), "ndcg@10": np.where(hit, 1 / np.log2(1 + np.minimum(rank, K)), 0.0)}


def interval(values: np.ndarray, repeats: int = 2000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over users."""
    random = np.random.default_rng(7)
    means = values[random.integers(len(values), size=(repeats, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def cell(values: np.ndarray) -> str:
    """Return a mean with its interval."""
    low, high = interval(values)
    return f"{values.mean():.4f} ({low:.4f}–{high:.4f})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


# ---- next item ----


class LastOut:
    """Leave-last-out: training events, and the history and target of each user for validation and test."""

    def __init__(self, data: firth.Interactions) -> None:
        whole = split(data, "last")
        self.train, valid = split(whole.train, "last")[:2]
        valid_items, test_items = valid.histories(), whole.test.histories()
        histories = self.train.histories()
        self.users = [user for user in self.train.users if user in valid_items and user in test_items]
        self.inputs = {"valid": [list(histories[user]) for user in self.users]}
        self.targets = {
            "valid": [next(iter(valid_items[user])) for user in self.users],
            "test": [next(iter(test_items[user])) for user in self.users],
        }
        pairs = zip(self.inputs["valid"], self.targets["valid"], strict=True)
        self.inputs["test"] = [[*history, item] for history, item in pairs]

    def rank(self, part: str, items: Sequence[str], scores: np.ndarray) -> np.ndarray:
        """Return the ranks of the targets."""
        return ranks(scores, items, self.inputs[part], self.targets[part])


def firth_scores(model: Any, histories: Sequence[Sequence[str]], features: Any = None) -> np.ndarray:
    """Return the scores of a model for folded-in histories."""
    known = [[item for item in history if item in model.items] for history in histories]
    rows = model.fold_in(known) if features is None else model.fold_in(known, features)
    scores: np.ndarray = model.scores(rows)
    return scores


#: Candidates of each method: the best on the validation items is reported. Sequence recommenders, which take longest,
#: have one: the defaults, with as many epochs as the time of RecBole's models allows.
CANDIDATES: dict[str, list[firth.Method]] = {
    "Firth ALS": [firth.ALS(alpha=a, regularization=r) for a in (2.0, 10.0) for r in (10.0, 30.0, 100.0)],
    "Firth Item2Vec, sessions": [firth.Item2Vec(sessions=True, epochs=20), firth.Item2Vec(epochs=20)],
    "Firth MultVAE": [firth.MultVAE(), firth.MultVAE(beta=0.5)],
    "Firth TwoTower, with features": [firth.TwoTower(), firth.TwoTower(cold_start=0.0)],
    "Firth SequenceRecommender, causal": [firth.SequenceRecommender(epochs=12)],
    "Firth SequenceRecommender, masked": [firth.SequenceRecommender(objective="masked", epochs=12)],
}


def next_item(
    data: firth.Interactions, seeds: int, names: Sequence[str], recbole: str | None, work: Path, budget: float
) -> Rows:
    """Measure the next item; results are added to those of other methods that were measured before."""
    parts, results = LastOut(data), load().get("next", {})
    size = len(parts.train.items)
    for name, scorer in (("popularity", popularity), ("item-kNN", item_knn)):
        if name not in results:
            model = firth.ALS(dim=2, epochs=1).fit(plain(parts.train))
            rows = [
                [model.items.rows[item] for item in history if item in model.items] for history in parts.inputs["test"]
            ]
            ranked = parts.rank("test", model.items.keys, scorer(model.seen, size)(rows))
            results[name] = {"ranks": [ranked.tolist()], "cpu_seconds": 0.0, "settings": ""}
            save("next", results)
    for name in names:
        if name in results or name not in CANDIDATES:
            continue
        candidates = CANDIDATES[name]
        train = parts.train if "features" in name else plain(parts.train)
        features = None
        if "features" in name:
            assert data.user_features is not None
            features = data.user_features.aligned(parts.users)

        def ranked(
            method: firth.Method, seed: int, part: str, train: Any = train, features: Any = features
        ) -> np.ndarray:
            model: Any = method.fit(train, firth.Run(seed=seed, threads=1))
            return parts.rank(part, model.items.keys, firth_scores(model, parts.inputs[part], features))

        best, valid = candidates[0], list[float]()
        if len(candidates) > 1:
            valid = [float(metrics(ranked(method, 0, "valid"))["ndcg@10"].mean()) for method in candidates]
            best = candidates[int(np.argmax(valid))]
        changed = {key: value for key, value in best.options().items() if value != type(best)().options()[key]}
        began, found = time.process_time(), []
        for seed in range(1, seeds + 1):
            found.append(ranked(best, seed, "test").tolist())
            results[name] = {
                "ranks": found,
                "cpu_seconds": (time.process_time() - began) / seed,
                "settings": ", ".join(f"{key}={value}" for key, value in changed.items()) or "defaults",
                "valid": valid,
            }
            save("next", results)
        print(name, valid, results[name]["settings"], round(results[name]["cpu_seconds"]), file=sys.stderr)
    if "implicit ALS" not in results and "implicit ALS" in names:
        results["implicit ALS"] = implicit_als(parts, seeds, work)
        save("next", results)
    for model in ("SASRec", "BERT4Rec") if recbole else ():
        if f"RecBole {model}" not in results and f"RecBole {model}" in names:
            for result in peer(model, parts, data, seeds, str(recbole), work, budget):
                results[f"RecBole {model}"] = result
                save("next", results)
    return results


def peer(
    model: str, parts: LastOut, data: firth.Interactions, seeds: int, python: str, work: Path, budget: float
) -> Iterator[Rows]:
    """Train a model of RecBole with its own settings, for `budget` seconds of processor time; yield after each seed."""
    folder = work / "recbole" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    assert data.times is not None
    with (folder / "events.inter").open("w") as file:
        file.write("user_id:token\titem_id:token\ttimestamp:float\n")
        for place, (user, item) in enumerate(zip(data.user_ids().tolist(), data.item_ids.tolist(), strict=True)):
            file.write(f"{data.users[user]}\t{data.items[item]}\t{place}\n")  # the same order for equal times
    found, done = [], {}
    for seed in range(1, seeds + 1):
        job = {
            "model": model,
            "folder": str(folder.parent),
            "name": "events",
            "output": str(work / f"{model}-{seed}"),
            "context_length": CONTEXT,
            "epochs": 200,
            "seed": seed,
            "threads": 1,
            "seconds": budget,
            "batch_size": 256,
            "learning_rate": 1e-3,
            "dropout": 0.5 if model == "SASRec" else 0.2,
        }
        command = [python, str(HERE / "peers" / "recbole" / "worker.py")]
        output = subprocess.run(command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True, cwd=work)
        done = json.loads(output.stdout.splitlines()[-1])
        keys = json.loads((work / f"{model}-{seed}.json").read_text())
        order = {user: row for row, user in enumerate(keys["users"])}
        scores = np.load(work / f"{model}-{seed}.npy")[[order[user] for user in parts.users]]
        found.append(parts.rank("test", keys["items"], scores).tolist())
        print(model, done, float(metrics(np.array(found[-1]))["ndcg@10"].mean()), file=sys.stderr)
        yield {
            "ranks": list(found),
            "cpu_seconds": done["cpu_seconds"],
            "settings": f"its own, {done['epochs']} epochs",
            "peer": done["peer"],
        }


def implicit_als(parts: LastOut, seeds: int, work: Path) -> Rows:
    """Train implicit's ALS with settings chosen on the validation items; users are folded in by the exact solution."""
    train, items = parts.train, parts.train.items

    def ranked(alpha: float, ridge: float, seed: int, part: str) -> tuple[np.ndarray, float]:
        confidence = 1 + alpha * np.log(2)  # as Firth's for a weight of 1
        matrix = scipy.sparse.csr_array(
            (np.full(len(train), confidence, np.float32), train.item_ids, train.starts), (len(train.users), len(items))
        )
        scipy.sparse.save_npz(work / "events.npz", scipy.sparse.csr_matrix(matrix))
        job = {"matrix": str(work / "events.npz"), "output": str(work / "events"), "method": "als", "dim": 64}
        job |= {"epochs": 15, "regularization": ridge, "threads": 1, "seed": seed}
        done = ask("implicit", job)
        factors = np.load(work / "events-items.npy").astype(np.float64)
        gram, rows = factors.T @ factors + ridge * np.eye(64), {item: row for row, item in enumerate(items)}
        users = []
        for history in parts.inputs[part]:
            own = factors[[rows[item] for item in history if item in rows]]
            users.append(np.linalg.solve(gram + (confidence - 1) * own.T @ own, confidence * own.sum(axis=0)))
        return parts.rank(part, items, np.array(users) @ factors.T), sum(done["seconds"])

    candidates = [(alpha, ridge) for alpha in (2.0, 10.0) for ridge in (10.0, 30.0, 100.0)]
    valid = [float(metrics(ranked(*each, 0, "valid")[0])["ndcg@10"].mean()) for each in candidates]
    alpha, ridge = candidates[int(np.argmax(valid))]
    found = [ranked(alpha, ridge, seed, "test") for seed in range(1, seeds + 1)]
    return {
        "ranks": [each[0].tolist() for each in found],
        "cpu_seconds": float(np.mean([each[1] for each in found])),
        "settings": f"alpha={alpha}, regularization={ridge}",
        "valid": valid,
    }


def next_page(results: Rows) -> str:
    """Return the table of the next item."""
    rows = []
    for name, result in results.items():
        by_seed = [metrics(np.array(each, float)) for each in result["ranks"]]
        means = {metric: np.mean([each[metric] for each in by_seed], axis=0) for metric in by_seed[0]}
        rows.append(
            [
                name,
                *(cell(means[metric]) for metric in means),
                str(len(by_seed)),
                f"{result['cpu_seconds']:.0f}",
                result["settings"],
            ]
        )
    rows.sort(key=lambda row: row[2])
    return table(["", "recall@10", "NDCG@10", "seeds", "CPU seconds", "settings"], rows)


# ---- cold start ----


def cold(data: firth.Interactions, seeds: int) -> Rows:
    """Hide the events of a tenth of the users and items; rank by features alone."""
    found: dict[str, list[Any]] = {}
    for seed in range(1, seeds + 1):
        random = np.random.default_rng(seed)
        new_items = random.random(len(data.items)) < 0.1
        new_users = random.random(len(data.users)) < 0.1
        owners = data.user_ids()
        known = ~new_items[data.item_ids] & ~new_users[owners]
        model: Any = firth.TwoTower().fit(data.take(known), firth.Run(seed=seed, threads=1))
        order = [model.items.rows[item] for item in data.items]
        scores = model.scores(model.user_rows(data.users))[:, order]
        popular = np.bincount(data.item_ids[known], minlength=len(data.items)).astype(float)
        uniform = random.random(scores.shape)
        had = np.zeros(scores.shape, bool)
        had[owners, data.item_ids] = True
        for task, users, items in (
            ("new users, known items", new_users, ~new_items),
            ("known users, new items", ~new_users, new_items),
            ("new users, new items", new_users, new_items),
        ):
            relevant = had[users][:, items]
            kept = relevant.any(axis=1)
            for ranker, part in (
                ("TwoTower", scores),
                ("popularity", np.tile(popular, (len(scores), 1)) + 1e-9 * uniform),
                ("random", uniform),
            ):
                best = np.argsort(-part[users][:, items], axis=1)[:, :K]
                hits = np.take_along_axis(relevant, best, axis=1).sum(axis=1) / np.minimum(
                    K, np.maximum(1, relevant.sum(axis=1))
                )
                found.setdefault(f"{task}|{ranker}", []).extend(hits[kept].tolist())
    save("cold", found)
    return found


def cold_page(found: Rows) -> str:
    """Return the table of the cold start."""
    tasks = list(dict.fromkeys(name.partition("|")[0] for name in found))
    rankers = list(dict.fromkeys(name.partition("|")[2] for name in found))
    rows = [[task, *(cell(np.array(found[f"{task}|{ranker}"])) for ranker in rankers)] for task in tasks]
    return table(["recall@10", *rankers], rows)


# ---- three ways to embed the same users ----


def neighbors_recall(vectors: np.ndarray, train: Any, test: Any) -> np.ndarray:
    """Return recall@10 of the items of the 50 nearest users, by cosine, for users with test items."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argpartition(-cosines, 50, axis=1)[:, :50]
    recalls = []
    for user in np.flatnonzero(test.any(axis=1)):
        scores = train[nearest[user]].T @ np.maximum(cosines[user, nearest[user]], 0)
        scores[train[user]] = -np.inf
        best = np.argsort(-scores, kind="stable")[:K]
        recalls.append(test[user, best].sum() / min(K, test[user].sum()))
    return np.array(recalls)


def similarity(vectors: np.ndarray, test: Any) -> np.ndarray:
    """Return, per user with test items, the rank correlation of cosines with the overlap of later items (Jaccard)."""
    from scipy.stats import rankdata

    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    users = np.flatnonzero(test.any(axis=1))
    later = test[users].astype(np.float32)
    both = later @ later.T
    sizes = later.sum(axis=1)
    jaccard, cosines = both / np.maximum(sizes[:, None] + sizes - both, 1), unit[users] @ unit[users].T
    values = []
    for user in range(len(users)):
        others = np.arange(len(users)) != user
        first, second = rankdata(cosines[user, others]), rankdata(jaccard[user, others])
        if second.std():
            values.append(np.corrcoef(first, second)[0, 1])
    return np.array(values)


def attributes(vectors: np.ndarray, gender: np.ndarray, age: np.ndarray) -> dict[str, np.ndarray]:
    """Return, per user, whether a linear model predicts the gender, and how much of the age it explains (5 folds)."""
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    right, errors, spread = np.zeros(len(age)), np.zeros(len(age)), np.zeros(len(age))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=1).split(vectors, gender):
        scaler = StandardScaler().fit(vectors[train])
        x, y = scaler.transform(vectors[train]), scaler.transform(vectors[test])
        model = LogisticRegressionCV(Cs=[1e-3, 1e-2, 1e-1, 1], cv=3, class_weight="balanced", max_iter=500).fit(
            x, gender[train]
        )
        ordered = model.decision_function(y)
        for row, value in zip(test, ordered, strict=True):  # the share of the other class that is on the right side
            others = ordered[gender[test] != gender[row]]
            right[row] = (value > others).mean() if gender[row] == model.classes_[1] else (value < others).mean()
        errors[test] = (age[test] - RidgeCV(np.logspace(0, 4, 9)).fit(x, age[train]).predict(y)) ** 2
        spread[test] = (age[test] - age[train].mean()) ** 2
    return {"gender, AUC": right, "age, R²": 1 - errors / spread.mean()}


def incidence(data: firth.Interactions, users: Sequence[str], items: Sequence[str]) -> np.ndarray:
    """Return a matrix of users and items, True where there is an event."""
    rows, columns = ({key: at for at, key in enumerate(keys)} for keys in (users, items))
    found = np.zeros((len(users), len(items)), bool)
    for user, item in zip(data.user_ids().tolist(), data.item_ids.tolist(), strict=True):
        if data.users[user] in rows and data.items[item] in columns:
            found[rows[data.users[user]], columns[data.items[item]]] = True
    return found


def vectors(data: firth.Interactions, lastfm: Path | None, seeds: int) -> Rows:
    """Compare user vectors on the same users."""
    results: dict[str, dict[str, list[Any]]] = {}

    def add(name: str, values: dict[str, np.ndarray]) -> None:
        for task, value in values.items():
            results.setdefault(name, {}).setdefault(task, []).append(value.tolist())

    place = np.arange(len(data)) - np.repeat(data.starts[:-1], np.diff(data.starts))
    late = place >= 0.8 * np.repeat(np.diff(data.starts), np.diff(data.starts))
    early, later = plain(data.take(~late)), data.take(late)
    train, test = (incidence(each, data.users, data.items) for each in (early, later))
    features = data.user_features.aligned(data.users).to_dict()  # type: ignore[union-attr]
    gender, age = np.array(features["gender"]), np.array(features["age"], float)
    random = np.random.default_rng(1)
    movie_methods: dict[str, Callable[[], firth.Method]] = {
        "behaviour (ALS)": lambda: firth.ALS(alpha=10.0),
        "sequence (SequenceRecommender)": lambda: firth.SequenceRecommender(epochs=12),
    }
    for seed in range(1, seeds + 1):
        for name, method in movie_methods.items():
            model: Any = method().fit(early, firth.Run(seed=seed, threads=1))
            rows = model.users.matrix[[model.users.rows[user] for user in data.users]]
            add(f"MovieLens|{name}", read(rows, train, test) | attributes(rows, gender, age))
        noise = random.standard_normal((len(data.users), 64))
        add("MovieLens|random vectors", read(noise, train, test) | attributes(noise, gender, age))
        if lastfm is not None:
            social(lastfm, seed, add)
        save("vectors", results)
    return results


def read(rows: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, np.ndarray]:
    """Return what nearest neighbors read from vectors."""
    return {"next items, recall@10": neighbors_recall(rows, train, test), "similarity": similarity(rows, test)}


def social(folder: Path, seed: int, add: Callable[[str, dict[str, np.ndarray]], None]) -> None:
    """Compare behaviour and friends on Last.fm, whose plays have no times."""
    early, later = (firth.Interactions(folder / name) for name in ("data1.txt", "test1.txt"))
    graph = firth.Graph(folder / "trustnetwork.txt")
    users = [user for user in early.users if user in set(graph.nodes)]
    items = early.items[:5000]
    train, test = (incidence(each, users, items) for each in (early, later))
    als: Any = firth.ALS().fit(early, firth.Run(seed=seed, threads=1))
    walks: Any = firth.DeepWalk(dim=64).fit(graph, firth.Run(seed=seed, threads=1))
    for name, table in (("behaviour (ALS)", als.users), ("social graph (DeepWalk)", walks.vectors)):
        add(f"Last.fm|{name}", read(table.matrix[[table.rows[user] for user in users]], train, test))
    noise = np.random.default_rng(seed).standard_normal((len(users), 64))
    add("Last.fm|random vectors", read(noise, train, test))


def vectors_page(results: Rows) -> str:
    """Return the table of user vectors."""
    tasks = list(dict.fromkeys(task for each in results.values() for task in each))
    rows = []
    for name, each in results.items():
        data, _, kind = name.partition("|")
        cells = [cell(np.mean(each[task], axis=0)) if task in each else "–" for task in tasks]
        rows.append([data, kind, *cells])
    return table(["data", "a user is embedded by", *tasks], rows)


# ---- uncertainty ----


def explore(data: firth.Interactions, seeds: int) -> Rows:
    """Recommend to held-out users with MultVAE, with the mean and with draws of the code."""
    results: dict[str, dict[str, list[float]]] = {}
    for seed in range(1, seeds + 1):
        train, test, history = split(plain(data), "user", 0.2, seed)
        assert history is not None
        model: Any = firth.MultVAE().fit(train, firth.Run(seed=seed, threads=1))
        columns = incidence(train, train.users, model.items.keys).astype(np.float32)
        columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-9)
        relevant = {user: set(items) for user, items in test.histories().items()}
        past = {u: [i for i in items if i in model.items] for u, items in history.histories().items()}
        for strength in (0.0, 0.5, 1.0, 2.0, 4.0):
            ndcg, apart, fresh, shown = [], [], [], set()
            for user, items in past.items():
                if not items or user not in relevant:
                    continue
                lists = [
                    [hit.key for hit in model.recommend_for(items, K, explore=strength, seed=draw)] for draw in range(5)
                ]
                gains = [
                    sum(1 / np.log2(2 + at) for at, item in enumerate(each) if item in relevant[user]) for each in lists
                ]
                best = sum(1 / np.log2(2 + at) for at in range(min(K, len(relevant[user]))))
                ndcg.append(float(np.mean(gains)) / best)
                rows = [model.items.rows[item] for item in lists[0]]
                cosines = columns[:, rows].T @ columns[:, rows]
                apart.append(1 - float((cosines.sum() - np.trace(cosines)) / (K * (K - 1))))
                fresh.append(len({item for each in lists for item in each}))
                shown |= set(lists[0])
            one = results.setdefault(str(strength), {})
            one.setdefault("ndcg@10", []).extend(ndcg)
            one.setdefault("diversity", []).extend(apart)
            one.setdefault("fresh", []).extend(map(float, fresh))
            one.setdefault("shown", []).append(len(shown))
        save("explore", results)
    return results


def explore_page(results: Rows) -> str:
    """Return the table of exploration."""
    rows = [
        [
            strength,
            cell(np.array(one["ndcg@10"])),
            cell(np.array(one["diversity"])),
            f"{np.mean(one['fresh']):.1f}",
            f"{np.mean(one['shown']):.0f}",
        ]
        for strength, one in results.items()
    ]
    return table(
        ["`explore`", "NDCG@10", "diversity of a list", "different items in 5 lists of 10", "items shown to anyone"],
        rows,
    )


# ---- results ----


def load() -> Rows:
    """Return what was measured so far."""
    found: Rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def rounded(value: Any) -> Any:
    """Return JSON values with four decimals."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def save(part: str, results: Any) -> None:
    """Store a part, and write its page."""
    before = load()
    results = {**before.get(part, {}), **results}  # parts of a run may be separate processes
    RESULTS.write_text(json.dumps(rounded(before | {part: results})) + "\n")
    name, page = {
        "next": ("events", next_page),
        "cold": ("events-cold", cold_page),
        "vectors": ("events-vectors", vectors_page),
        "explore": ("events-explore", explore_page),
    }[part]
    (PAGES / f"{name}.md").write_text(page(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("movies", type=Path)
    parser.add_argument("--lastfm", type=Path)
    parser.add_argument("--recbole")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", nargs="+", default=["next", "cold", "vectors", "explore"])
    parser.add_argument(
        "--method",
        nargs="*",
        default=[*CANDIDATES, "implicit ALS", "RecBole SASRec", "RecBole BERT4Rec"],
        help="methods of the part next",
    )
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of processor time of a model of RecBole")
    parser.add_argument("--work", type=Path, default=Path("/tmp/firth-events"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    data = movies(arguments.movies)
    if "next" in arguments.part:
        next_item(data, arguments.seeds, arguments.method, arguments.recbole, arguments.work, arguments.budget)
    if "cold" in arguments.part:
        cold(data, arguments.seeds)
    if "vectors" in arguments.part:
        vectors(data, arguments.lastfm, arguments.seeds)
    if "explore" in arguments.part:
        explore(data, arguments.seeds)


if __name__ == "__main__":
    main()
