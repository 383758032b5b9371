"""Interactions on the command line: train, recommend, neighbors of items and users, evaluate, errors."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import firth
from firth.core.model import Recommends
from firth.core.vectors import odd_one_out
from firth.data.splits import split
from firth.data.world import World


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.tsv, test.tsv, and stars.csv with named columns."""
    folder = tmp_path_factory.mktemp("people")
    society = World(seed=5).ratings(200, 80, 20)
    rows = list(zip(society.users, society.items, society.ratings, strict=True))
    parts = split(firth.Interactions([(f"u{u}", f"i{i}", r) for u, i, r in rows]))
    for name, part in (("train", parts.train), ("test", parts.test)):
        lines = [f"{u}\t{i}\t{w:g}\n" for u, history in part.histories().items() for i, w in history.items()]
        (folder / f"{name}.tsv").write_text("".join(lines))
    (folder / "stars.csv").write_text("stars,who,what\n" + "".join(f"{r},u{u},i{i}\n" for u, i, r in rows))
    return folder


@pytest.fixture(scope="module")
def als(files: Path) -> Path:
    firth.ALS(dim=8).fit(files / "train.tsv").save(files / "als")
    return files / "als"


@pytest.mark.parametrize("method", ["als", "bpr", "item2vec", "rating_factors", "sequence-recommender", "two-tower"])
def test_train_and_recommend(call, files, tmp_path, method):
    trained = call("train", method, files / "train.tsv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2)
    assert trained.exit_code == 0, trained.output
    assert {"users 200", "items 80"} <= set(
        map(" ".join, itertools.pairwise(trained.stdout.split()))
    ) and f"Next: firth query recommend {tmp_path / 'm'} --user USER" in trained.stdout
    result = call("query", "recommend", tmp_path / "m", "--user", "u3", "-k", 4, "--json")
    hits = json.loads(result.stdout)["u3"]
    history = firth.Interactions(files / "train.tsv").histories()["u3"]
    assert len(hits) == 4 and not {hit["key"] for hit in hits} & set(history)
    model = firth.load(tmp_path / "m")
    assert isinstance(model, Recommends)
    assert hits == [hit._asdict() for hit in model.recommend("u3", 4)]
    again = call("train", method, files / "train.tsv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2)
    assert "is already finished" in again.stdout


def test_recommend_for_a_new_user(call, als):
    plain = call("query", "recommend", als, "--items", "i3,i5", "-k", 3)
    assert plain.exit_code == 0 and len(plain.stdout.splitlines()) == 3 and "i3 " not in plain.stdout
    weighted = call("query", "recommend", als, "--items", "i3=5,i5=1", "-k", 3, "--json")
    expected = firth.load(als, firth.ALS).recommend_for({"i3": 5.0, "i5": 1.0}, 3)
    assert json.loads(weighted.stdout)["i3=5,i5=1"] == [hit._asdict() for hit in expected]
    both = call("query", "recommend", als, "--user", "u1", "--user", "u2", "-k", 2, "--seen")
    assert both.stdout.splitlines()[0] == "u1:" and len(both.stdout.splitlines()) == 6


def test_queries_of_the_user_table(call, als):
    users = firth.load(als, firth.ALS).tables["users"]
    similarity = call("query", "similarity", als, "u1", "u2", "--table", "users", "--json")
    assert json.loads(similarity.stdout)["score"] == pytest.approx(users.similarity("u1", "u2"))
    analogy = call("query", "analogy", als, "u1", "u2", "u3", "-k", 2, "--table", "users", "--json")
    assert [hit["key"] for hit in json.loads(analogy.stdout)] == [hit.key for hit in users.analogy("u1", "u2", "u3", 2)]
    odd = call("query", "odd-one-out", als, "u1", "u2", "u3", "--table", "users")
    assert odd.stdout.strip() == odd_one_out(users, ["u1", "u2", "u3"])


def test_neighbors_of_items_and_of_users(call, als):
    items = call("query", "neighbors", als, "i3", "-k", 2, "--together", "--json")
    assert all(hit["key"].startswith("i") for hit in json.loads(items.stdout))
    users = call("query", "neighbors", als, "u3", "-k", 2, "--together", "--json", "--table", "users")
    assert json.loads(users.stdout) == [hit._asdict() for hit in firth.load(als, firth.ALS).users.neighbors("u3", 2)]


def test_columns_by_name_and_rating_errors(call, files, tmp_path):
    names = ("--user", "who", "--item", "what", "--value", "stars")
    trained = call("train", "rating_factors", files / "stars.csv", "-o", tmp_path / "m", *names, "--dim", 4)
    assert trained.exit_code == 0, trained.output
    errors = evaluated(call, "ratings", tmp_path / "m", files / "test.tsv")
    assert errors["rmse"] < errors["mean_rmse"] and errors["skipped"] == 0


def evaluated(call, task, *arguments):
    (result,) = json.loads(call("evaluate", task, *arguments, "--json").stdout).values()
    return result


def test_evaluate_shows_the_baselines(call, als, files):
    result = call("evaluate", "recommendations", als, files / "test.tsv")
    assert result.exit_code == 0 and "recall@20" in result.stdout
    assert [line.split()[0] for line in result.stdout.splitlines()[1:4]] == ["ALS", "popularity", "item-kNN"]
    scores = evaluated(call, "recommendations", als, files / "test.tsv", "--history", files / "train.tsv")
    assert scores["users"] > 150 and 0 < scores["scores"]["ALS"]["ndcg@100"] < 1


def test_evaluate_without_the_baselines(call, als, files):
    test = files / "test.tsv"
    both, alone = (evaluated(call, "recommendations", als, test, *flags) for flags in ((), ("--no-baselines",)))
    assert list(both["scores"]) == ["ALS", "popularity", "item-kNN"]
    assert alone["scores"] == {"ALS": both["scores"]["ALS"]}


RECOMMEND, NEIGHBORS = ("query", "recommend", "ALS"), ("query", "neighbors", "ALS")
BAD: dict[str, Any] = {
    "unknown user": ("unknown_key", {}, (*RECOMMEND, "--user", "nobody")),
    "unknown item": ("unknown_key", {"key": "nothing"}, (*RECOMMEND, "--items", "nothing")),
    "weights for some": ("invalid_value", {"option": "--items", "got": "i3"}, (*RECOMMEND, "--items", "i3,i4=2")),
    "not a weight": ("invalid_value", {"option": "--items", "got": "i3=lots"}, (*RECOMMEND, "--items", "i3=lots")),
    "unknown table": ("unknown_table", {"table": "words"}, (*NEIGHBORS, "u3", "--table", "words")),
    "user among items": ("unknown_key", {"key": "u3", "main": "items", "name": "users"}, (*NEIGHBORS, "u3")),
    "unknown key": ("unknown_key", {"key": "x3"}, (*NEIGHBORS, "x3")),
    "no user": ("usage", {}, RECOMMEND),
    "user and items": ("usage", {}, (*RECOMMEND, "--user", "u1", "--items", "i1")),
    "two files": ("wrong_input", {"got": 2}, ("train", "als", "train.tsv", "test.tsv", "-o", "m")),
    "no such column": ("unknown_column", {"name": "whom"}, ("train", "als", "stars.csv", "-o", "m", "--user", "whom")),
    "words to recommend": (
        "unsupported_model",
        {"method": "skipgram"},
        ("query", "recommend", "WORDS", "--user", "u3"),
    ),
    "words to evaluate": ("unsupported_model", {}, ("evaluate", "recommendations", "WORDS", "test.tsv")),
    "als for ratings": ("unsupported_model", {"method": "als"}, ("evaluate", "ratings", "ALS", "test.tsv")),
    "no weights": ("malformed_data", {"got": "much"}, ("train", "als", "bad.csv", "-o", "m")),
    "negative": ("malformed_data", {}, ("train", "bpr", "negative.csv", "-o", "m")),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(refused, als, files, model, name, tmp_path):
    (files / "bad.csv").write_text("user,item,rating\na,x,much\n")
    (files / "negative.csv").write_text("user,item,rating\na,x,-1\na,y,1\n")
    (code, values, line), paths = BAD[name], {"ALS": als, "WORDS": model, "m": tmp_path / "m"}
    arguments = [paths.get(part, files / part if part.endswith("sv") else part) for part in line]
    refused(code, *arguments, **values)
    assert not (tmp_path / "m").exists()


def test_convert_the_user_vectors(call, refused, als, tmp_path):
    written = call("convert", als, tmp_path / "users.npy", "--table", "users")
    assert written.exit_code == 0 and written.stdout.startswith("200 vectors of 8"), written.output
    assert firth.read_vectors(tmp_path / "users.npy").keys == firth.load(als, firth.ALS).users.keys
    refused("unknown_table", "convert", als, tmp_path / "x.npy", "--table", "who", tables="items, users")
    embed = ("embed", als, tmp_path / "users.npy", "-o", tmp_path / "x.npy")
    assert "`firth convert`" in refused("unsupported_model", *embed, path=als, method="als")


def test_evaluate_reads_the_columns_that_train_reads(call, als, files, tmp_path):
    rows = [line.split("\t") for line in (files / "test.tsv").read_text().splitlines()]
    (tmp_path / "wide.csv").write_text("id,who,what,n\n" + "".join(f"{i},{','.join(r)}\n" for i, r in enumerate(rows)))
    columns = ("--user", "who", "--item", "what", "--value", "n")
    expected = evaluated(call, "recommendations", als, files / "test.tsv")
    assert evaluated(call, "recommendations", als, tmp_path / "wide.csv", *columns) == expected
    assert expected["users"] > 0


def test_a_test_without_new_items(call, als, files):
    result = call("evaluate", "recommendations", als, files / "train.tsv")
    assert result.exit_code == 0 and result.stdout and "nan" not in result.stdout


def test_unknown_items_are_counted(call, refused, als):
    plain = call("query", "recommend", als, "--items", "i3,i5", "-k", 3, "--json")
    odd = call("query", "recommend", als, "--items", "i3,no-such,i5", "-k", 3, "--json")
    assert odd.exit_code == 0 and "no-such" in odd.stderr
    recommended, expected = json.loads(odd.stdout), json.loads(plain.stdout)
    assert recommended["i3,no-such,i5"] == expected["i3,i5"]
    assert recommended["unknown_items"] == {"count": 1, "names": ["no-such"]}
    assert expected["unknown_items"] == {"count": 0, "names": []}
    for items in ("no-such,nor-such", "no-such"):
        refused("unknown_key", "query", "recommend", als, "--items", items)
    assert "unknown_items" not in json.loads(call("query", "recommend", als, "--user", "u1", "--json").stdout)


def test_events_with_sessions_and_features(call, files, tmp_path):
    """Features name new users and items on the command line; sessions come from a column."""
    rows = [f"u{u},i{(u + step) % 9},{100 * u + step},{step // 3}" for u in range(20) for step in range(6)]
    (tmp_path / "views.csv").write_text("\n".join(["user,item,time,visit", *rows]))
    (tmp_path / "people.csv").write_text("\n".join(["user,age", *(f"u{u},{20 + u}" for u in range(20))]))
    (tmp_path / "things.csv").write_text("\n".join(["item,kind", *(f"i{i},{'ab'[i % 2]}" for i in range(9))]))
    (tmp_path / "arrivals.csv").write_text("item,kind\nnew,a\n")
    features = ["--user-features", tmp_path / "people.csv", "--item-features", tmp_path / "things.csv"]
    trained = call(
        "train", "two-tower", tmp_path / "views.csv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2, *features
    )
    assert trained.exit_code == 0, trained.output
    shown = call("query", "recommend", tmp_path / "m", "--features", "age=24", "-k", 3, "--json")
    assert len(json.loads(shown.stdout)["age=24"]) == 3
    asked = ["--user", "u3", "--new-items", tmp_path / "arrivals.csv", "-k", 99, "--seen", "--json"]
    everything = json.loads(call("query", "recommend", tmp_path / "m", *asked).stdout)["u3"]
    assert "new" in [hit["key"] for hit in everything]
    wrong = call("query", "recommend", tmp_path / "m", "--features", "age", "--json")
    assert wrong.exit_code and json.loads(wrong.stderr.splitlines()[-1])["error"]["code"] == "invalid_value"
    sessions = ["--sessions", "--epochs", 1, "--dim", 4, "--json"]
    trained = call("train", "item2vec", tmp_path / "views.csv", "-o", tmp_path / "i", *sessions)
    assert trained.exit_code == 0 and firth.load(tmp_path / "i").training["sessions"] == 40
    for model, options in (
        (tmp_path / "i", ["--explore", "1"]),
        (tmp_path / "i", ["--new-items", tmp_path / "arrivals.csv"]),
    ):
        refused = call("query", "recommend", model, "--user", "u3", *options, "--json")
        assert refused.exit_code and json.loads(refused.stderr.splitlines()[-1])["error"]["code"] == "unsupported_model"


def test_uncertainty_and_synthetic_users(call, files, tmp_path):
    assert call("train", "multvae", files / "train.tsv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2).exit_code == 0
    plain, drawn, again = (
        call("query", "recommend", tmp_path / "m", "--user", "u3", *options, "--json").stdout
        for options in ([], ["--explore", "3"], ["--explore", "3", "--seed", "1"])
    )
    assert plain != drawn == again
    assert call("generate", "rows", tmp_path / "m", "-n", 5, "-o", tmp_path / "made.csv").exit_code == 0
    assert len(firth.Interactions(tmp_path / "made.csv").users) == 5
