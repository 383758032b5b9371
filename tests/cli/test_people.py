"""Ratings on the command line: train, recommend, neighbours of items and users, evaluate; bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firth
from firth.core.vectors import odd_one_out
from firth.data.splits import split
from firth.data.world import World


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.tsv, test.tsv, stars.csv with named columns."""
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


@pytest.mark.parametrize("method", ["als", "bpr", "item2vec", "rating_factors"])
def test_train_and_recommend(call, files, tmp_path, method):
    trained = call("train", method, files / "train.tsv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2)
    assert trained.exit_code == 0, trained.output
    assert (
        trained.stdout.split()[:4] == ["users", "200", "items", "80"]
        and f"Next: firth query recommend {tmp_path / 'm'} --user USER" in trained.stdout
    )
    result = call("query", "recommend", tmp_path / "m", "--user", "u3", "-k", 4, "--json")
    hits = json.loads(result.stdout)["u3"]
    had = firth.Interactions(files / "train.tsv").histories()["u3"]
    assert len(hits) == 4 and not {hit["key"] for hit in hits} & set(had)
    assert hits == [hit._asdict() for hit in firth.load(tmp_path / "m").recommend("u3", 4)]
    again = call("train", method, files / "train.tsv", "-o", tmp_path / "m", "--dim", 8, "--epochs", 2)
    assert "is finished already" in again.stdout


def test_recommend_for_someone_new(call, als):
    plain = call("query", "recommend", als, "--items", "i3,i5", "-k", 3)
    assert plain.exit_code == 0 and len(plain.stdout.splitlines()) == 3 and "i3 " not in plain.stdout
    weighed = call("query", "recommend", als, "--items", "i3=5,i5=1", "-k", 3, "--json")
    expected = firth.load(als).recommend_for({"i3": 5.0, "i5": 1.0}, 3)
    assert json.loads(weighed.stdout)["i3=5,i5=1"] == [hit._asdict() for hit in expected]
    both = call("query", "recommend", als, "--user", "u1", "--user", "u2", "-k", 2, "--seen")
    assert both.stdout.splitlines()[0] == "u1:" and len(both.stdout.splitlines()) == 6


def test_other_questions_to_the_table_of_users(call, als):
    users = firth.load(als).tables["users"]
    alike = call("query", "similarity", als, "u1", "u2", "--table", "users", "--json")
    assert json.loads(alike.stdout)["score"] == pytest.approx(users.similarity("u1", "u2"))
    found = call("query", "analogy", als, "u1", "u2", "u3", "-k", 2, "--table", "users", "--json")
    assert [hit["key"] for hit in json.loads(found.stdout)] == [hit.key for hit in users.analogy("u1", "u2", "u3", 2)]
    odd = call("query", "similarity", als, "u1", "u2", "u3", "--odd", "--table", "users")
    assert odd.stdout.strip() == odd_one_out(users, ["u1", "u2", "u3"])


def test_neighbors_of_items_and_of_users(call, als):
    items = call("query", "neighbors", als, "i3", "-k", 2, "--together", "--json")
    assert all(hit["key"].startswith("i") for hit in json.loads(items.stdout))
    users = call("query", "neighbors", als, "u3", "-k", 2, "--together", "--json", "--table", "users")
    assert json.loads(users.stdout) == [hit._asdict() for hit in firth.load(als).users.neighbors("u3", 2)]


def test_columns_by_name_and_rating_errors(call, files, tmp_path):
    names = ("--user", "who", "--item", "what", "--value", "stars")
    trained = call("train", "rating_factors", files / "stars.csv", "-o", tmp_path / "m", *names, "--dim", 4)
    assert trained.exit_code == 0, trained.output
    result = json.loads(call("evaluate", tmp_path / "m", "--ratings", files / "test.tsv", "--json").stdout)
    errors = result[str(tmp_path / "m")][f"{files / 'test.tsv'} (ratings)"]
    assert errors["rmse"] < errors["mean_rmse"] and errors["skipped"] == 0


def test_evaluate_shows_the_baselines(call, als, files):
    result = call("evaluate", als, "--ratings", files / "test.tsv")
    assert result.exit_code == 0 and "recall@20" in result.stdout
    assert [line.split()[0] for line in result.stdout.splitlines()[2:5]] == ["ALS", "popularity", "item-kNN"]
    told = call("evaluate", als, "--ratings", files / "test.tsv", "--history", files / "train.tsv", "--json")
    found = json.loads(told.stdout)[str(als)][str(files / "test.tsv")]
    assert found["users"] > 150 and 0 < found["scores"]["ALS"]["ndcg@100"] < 1


def test_evaluate_without_the_baselines(call, als, files):
    test = files / "test.tsv"
    whole, alone = (
        json.loads(call("evaluate", als, "--ratings", test, "--json", *flags).stdout)[str(als)][str(test)]
        for flags in ((), ("--no-baselines",))
    )
    assert list(whole["scores"]) == ["ALS", "popularity", "item-kNN"]
    assert alone["scores"] == {"ALS": whole["scores"]["ALS"]}


BAD = {
    "unknown user": (
        ("query", "recommend", "ALS", "--user", "nobody"),
        "say what they had: `firth query recommend --items A,B`",
    ),
    "unknown item": (("query", "recommend", "ALS", "--items", "nothing"), "No vector for 'nothing'"),
    "weights for some": (("query", "recommend", "ALS", "--items", "i3,i4=2"), "all items a number or none"),
    "weight that is none": (("query", "recommend", "ALS", "--items", "i3=lots"), "A=2,B=5; got 'i3=lots'"),
    "unknown table": (("query", "neighbors", "ALS", "u3", "--table", "words"), "no table 'words'; it has items, users"),
    "two files": (("train", "als", "train.tsv", "test.tsv", "-o", "m"), "A set of ratings is one file; got 2"),
    "no such column": (("train", "als", "stars.csv", "-o", "m", "--user", "whom"), "no column 'whom'"),
    "words to recommend": (("query", "recommend", "WORDS", "--user", "u3"), "does not recommend (skipgram)"),
    "words to evaluate": (("evaluate", "WORDS", "--ratings", "test.tsv"), "does not recommend"),
    "no weights": (("train", "als", "bad.csv", "-o", "m"), "bad.csv, row 2: the weight must be a number; got 'much'"),
    "negative": (("train", "bpr", "negative.csv", "-o", "m"), "weights of at least 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(call, als, files, model, name, tmp_path):
    (files / "bad.csv").write_text("user,item,rating\na,x,much\n")
    (files / "negative.csv").write_text("user,item,rating\na,x,-1\na,y,1\n")
    (line, rule), places = BAD[name], {"ALS": als, "WORDS": model, "m": tmp_path / "m"}
    arguments = [places.get(part, files / part if part.endswith(("sv",)) else part) for part in line]
    result = call(*arguments)
    assert result.exit_code == 1 and result.stderr.startswith("firth: ") and rule in result.stderr
    assert result.stderr.count("\n") == 1 and not (tmp_path / "m").exists()


def test_recommend_needs_to_know_for_whom(call, als):
    for arguments in ((), ("--user", "u1", "--items", "i1")):
        result = call("query", "recommend", als, *arguments)
        assert result.exit_code == 2 and "--user USER" in result.stderr


def test_the_vectors_of_users_are_written(call, als, tmp_path):
    written = call("convert", als, tmp_path / "users.npy", "--table", "users")
    assert written.exit_code == 0 and written.stdout.startswith("200 vectors of 8"), written.output
    assert firth.read_vectors(tmp_path / "users.npy").keys == firth.load(als).users.keys
    assert "it has items, users" in call("convert", als, tmp_path / "x.npy", "--table", "who").stderr
    refused = call("embed", als, tmp_path / "users.npy")
    assert refused.exit_code == 1 and "`firth convert` writes the vectors that it has" in refused.stderr


def test_neighbors_tells_the_table_that_has_the_key(call, als):
    assert (
        "No vector for 'u3' among the items; the users have one: --table users."
        in call("query", "neighbors", als, "u3").stderr
    )
    assert "No vector for 'x3'" in call("query", "neighbors", als, "x3").stderr


def test_evaluate_reads_the_columns_that_train_reads(call, als, files, tmp_path):
    rows = [line.split("\t") for line in (files / "test.tsv").read_text().splitlines()]
    (tmp_path / "wide.csv").write_text("id,who,what,n\n" + "".join(f"{i},{','.join(r)}\n" for i, r in enumerate(rows)))
    plain = call("evaluate", als, "--ratings", files / "test.tsv", "--json")
    named = ("--user", "who", "--item", "what", "--value", "n")
    told = call("evaluate", als, "--ratings", tmp_path / "wide.csv", *named, "--json")
    figures = [next(iter(json.loads(found.stdout)[str(als)].values())) for found in (plain, told)]
    assert figures[0] == figures[1] and figures[0]["users"] > 0


def test_a_test_without_news_is_said_in_words(call, als, files):
    told = call("evaluate", als, "--ratings", files / "train.tsv")
    assert "Nothing can be measured" in told.stdout and "nan" not in told.stdout


def test_unknown_items_are_counted(call, als):
    plain = call("query", "recommend", als, "--items", "i3,i5", "-k", 3, "--json")
    odd = call("query", "recommend", als, "--items", "i3,no-such,i5", "-k", 3, "--json")
    assert odd.exit_code == 0 and "no-such" in odd.stderr
    told, expected = json.loads(odd.stdout), json.loads(plain.stdout)
    assert told["i3,no-such,i5"] == expected["i3,i5"]
    assert told["unknown_items"] == {"count": 1, "names": ["no-such"]}
    assert expected["unknown_items"] == {"count": 0, "names": []}
    for items in ("no-such,nor-such", "no-such"):
        none = call("query", "recommend", als, "--items", items, "--json")
        error = json.loads(none.stderr)["error"]
        assert none.exit_code == 1 and error["code"] == "unknown_key", none.output
    assert "unknown_items" not in json.loads(call("query", "recommend", als, "--user", "u1", "--json").stdout)
