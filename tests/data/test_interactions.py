"""Ratings from files, frames, matrices and tuples; odd ids, duplicates and bad input; and the ways to split them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_matrix

import firth
from firth.data.interactions import transposed
from firth.data.splits import split

PLAIN = [("ann", "jazz", 3.0), ("bob", "jazz", 1.0), ("ann", "soul", 2.0)]


def content(ratings: firth.Interactions) -> list[tuple[str, str, float]]:
    users = ratings.user_ids().tolist()
    events = zip(users, ratings.item_ids.tolist(), ratings.weights.tolist(), strict=True)
    return sorted((ratings.users[u], ratings.items[i], w) for u, i, w in events)


FILES = {
    "a.csv": "user,item,weight\nann,jazz,3\nbob,jazz,1\nann,soul,2\n",
    "plain.csv": "ann,jazz,3\nbob,jazz,1\nann,soul,2\n",
    "quoted.csv": '"ann","jazz",3\n"bob","jazz",1\n"ann","soul",2\n',
    "crlf.tsv": "ann\tjazz\t3\r\nbob\tjazz\t1\r\nann\tsoul\t2\r\n",
    "tabs.txt": "ann\tjazz\t3\nbob\tjazz\t1\nann\tsoul\t2\n",
    "blanks.txt": "ann  jazz 3\nbob jazz   1 \nann soul 2\n",
    "movielens.dat": "ann::jazz::3\nbob::jazz::1\nann::soul::2\n",
    "swapped.csv": "rating,item,note,user\n3,jazz,x,ann\n1,jazz,y,bob\n2,soul,z,ann\n",
    "rows.jsonl": "\n".join(json.dumps({"user": u, "item": i, "rating": w}) for u, i, w in PLAIN) + "\n",
    "emptylines.csv": "\r\n\nuser,item,weight\nann,jazz,3\nbob,jazz,1\nann,soul,2\n",
    "byteordermark.csv": "\ufeffuser,item,weight\nann,jazz,3\nbob,jazz,1\nann,soul,2\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path: Path):
    (tmp_path / name).write_bytes(FILES[name].encode())
    assert content(firth.Interactions(tmp_path / name)) == sorted(PLAIN)


def test_compressed_and_parquet_files(tmp_path: Path):
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(FILES["a.csv"].encode()))
    columns = dict(zip(("user", "item", "rating"), zip(*PLAIN, strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), tmp_path / "r.parquet")
    assert content(firth.Interactions(tmp_path / "r.csv.gz")) == content(firth.Interactions(tmp_path / "r.parquet"))
    assert content(firth.Interactions(str(tmp_path / "r.parquet"))) == sorted(PLAIN)


def test_frames_and_dictionaries():
    columns = {name: list(values) for name, values in zip("abc", zip(*PLAIN, strict=True), strict=True)}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), columns]
    frames.append([dict(zip(columns, row, strict=True)) for row in PLAIN])
    for frame in frames:
        with pytest.warns(firth.FirthWarning, match="by their place, user in 'a', item in 'b', value in 'c'"):
            assert content(firth.Interactions(frame)) == sorted(PLAIN)
        named = firth.Interactions(frame, user="b", item="a")
        assert content(named) == sorted((i, u, 1.0) for u, i, _ in PLAIN)


def test_columns_are_found_by_name_and_by_place(tmp_path: Path):
    (tmp_path / "r.csv").write_text("when,who,what\n5,ann,jazz\n4,ann,soul\n")
    ratings = firth.Interactions(tmp_path / "r.csv", user="who", item="what", time="when")
    assert ratings.times is not None and ratings.times.tolist() == [4, 5]
    assert [ratings.items[i] for i in ratings.item_ids] == ["soul", "jazz"]
    with pytest.raises(firth.FirthError, match="no column 'whom'; there are when, who, what"):
        firth.Interactions(tmp_path / "r.csv", user="whom", item="what")
    with pytest.raises(firth.FirthError, match="which column is the item"):
        firth.Interactions(tmp_path / "r.csv", user="who")


def test_a_header_is_told_from_data(tmp_path: Path):
    (tmp_path / "two.csv").write_text("user_id,item_id\n1,2\n")
    (tmp_path / "ids.csv").write_text("1,2\n3,4\n")
    (tmp_path / "other.csv").write_text("who,what\n1,2\n")
    assert firth.Interactions(tmp_path / "two.csv").users == ["1"]
    assert firth.Interactions(tmp_path / "ids.csv").users == ["1", "3"]
    with pytest.warns(firth.FirthWarning, match="user in 'who', item in 'what'"):
        assert firth.Interactions(tmp_path / "other.csv").users == ["1"]


def test_a_first_line_of_words_is_told_where_it_may_be_a_header(tmp_path: Path, recwarn):
    path = tmp_path / "two.csv"
    path.write_text("listener,song\nann,jazz\nbob,folk\n")
    with pytest.warns(firth.FirthWarning, match=r"is taken as data.*listener, song.*--user listener --item song"):
        assert firth.Interactions(path).users == ["listener", "ann", "bob"]
    recwarn.clear()
    assert firth.Interactions(path, user="listener", item="song").users == ["ann", "bob"]
    path.write_text("ann,jazz\nbob,folk\nbob,jazz\n")  # jazz stands again
    assert len(firth.Interactions(path).users) == 2
    assert not recwarn.list


def test_another_encoding_is_told(tmp_path: Path):
    (tmp_path / "latin.csv").write_bytes(b"user,item\nann,caf\xe9\n")
    with pytest.raises(firth.FirthError, match=r"is not UTF-8 text.*iconv"):
        firth.Interactions(tmp_path / "latin.csv")


def test_a_table_of_orders_is_not_guessed_at(tmp_path: Path):
    orders = tmp_path / "orders.csv"
    orders.write_text("order,buyer,good,price,when\n1,ann,lamp,9.5,2024-05-31\n")
    with pytest.raises(firth.FirthError, match=r"which columns are the user and the item.*order, buyer, good"):
        firth.Interactions(orders)
    orders.write_text("order_id;customer_id;sku;quantity;timestamp\n1;ann;lamp;2,5;2024-05-31\n")  # as spreadsheets do
    ratings = firth.Interactions(orders)
    assert (ratings.users, ratings.items, ratings.weights.tolist()) == (["ann"], ["lamp"], [2.5])
    assert ratings.times is not None


def test_times_may_be_dates(tmp_path: Path):
    (tmp_path / "r.csv").write_text("user,item,rating,time\na,x,1,2024-05-31\na,y,1,2023-01-01\n")
    found = firth.Interactions(tmp_path / "r.csv")
    assert [found.items[i] for i in found.item_ids] == ["y", "x"]
    assert np.diff(found.times) == pytest.approx(516 * 86400)
    as_tuples = firth.Interactions([("a", "x", 1, "2024-05-31"), ("a", "y", 1, "2023-01-01")])
    assert np.array_equal(as_tuples.times, found.times)
    frame = pd.read_csv(tmp_path / "r.csv")
    assert np.array_equal(firth.Interactions(frame).times, found.times)
    assert np.array_equal(firth.Interactions(frame.astype({"time": "string[pyarrow]"})).times, found.times)


def test_ids_are_text_whatever_they_were(tmp_path: Path):
    huge = 2**70
    ratings = firth.Interactions([(huge, "x"), (huge + 1, "x"), (7, 7.0), (7.0, "7"), ("é☃", True)])
    assert ratings.users == [str(huge), str(huge + 1), "7", "é☃"]
    assert set(ratings.items) == {"x", "7", "true"}
    (tmp_path / "r.csv").write_text(f"007,{2**64 + 3},1\n7,{2**64 + 4},1\n")
    read = firth.Interactions(tmp_path / "r.csv")
    assert read.users == ["007", "7"] and set(read.items) == {str(2**64 + 3), str(2**64 + 4)}
    frame = pd.DataFrame({"user": [1.0, 2.0], "item": [2**63 + 5, 2**63 + 6]})
    assert set(firth.Interactions(frame).items) == {str(2**63 + 5), str(2**63 + 6)}


def test_a_sparse_matrix_keeps_empty_rows_and_columns():
    matrix = coo_array(([2.0, 3.0, 4.0], ([0, 2, 2], [3, 3, 1])), shape=(4, 5))
    ratings = firth.Interactions(matrix)
    assert (len(ratings.users), len(ratings.items), len(ratings)) == (4, 5, 3)
    assert ratings.items[:2] == ["3", "1"] and ratings.histories() == {
        "0": {"3": 2.0}, "1": {}, "2": {"3": 3.0, "1": 4.0}, "3": {}
    }  # fmt: skip


def test_duplicates_are_added_or_the_last_or_the_mean():
    pairs = [("a", "x", 1.0), ("a", "y", 5.0), ("a", "x", 3.0), ("b", "x", 2.0)]
    plain = firth.Interactions(pairs)
    assert sorted(plain.summed().values.tolist()) == [2, 4, 5]
    assert sorted(plain.latest().values.tolist()) == [2, 2, 5]  # x: the mean of 1 and 3
    timed = firth.Interactions([(*pair, time) for pair, time in zip(pairs, (9, 1, 2, 3), strict=True)])
    assert timed.histories() == {"a": {"y": 5.0, "x": 1.0}, "b": {"x": 2.0}}  # x = 1 came later


def test_a_weight_of_zero_is_no_use():
    ratings = firth.Interactions([("a", "x", 0.0), ("a", "y", 2.0)])
    assert ratings.summed().columns.tolist() == [ratings.items.index("y")]
    assert len(ratings.latest().columns) == 2  # but a rating of 0 is one
    for method in (firth.ALS(), firth.Item2Vec()):
        with pytest.raises(firth.FirthError, match="needs weights above 0; all are 0"):
            method.fit([("a", "x", 0.0), ("a", "y", 0.0)])


triples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=40)


@given(triples)
def test_sums_are_those_of_scipy(rows):
    ratings = firth.Interactions(rows)
    users, items, weights = zip(*rows, strict=True)
    expected = csr_matrix((np.array(weights, float), (users, items)), shape=(6, 5))
    summed = ratings.summed()
    found = csr_matrix((summed.values, summed.columns, summed.starts), (len(ratings.users), len(ratings.items)))
    for u, user in enumerate(ratings.users):
        for i, item in enumerate(ratings.items):
            assert found[u, i] == expected[int(user), int(item)]
    back = transposed(summed, len(ratings.items))
    assert (csr_matrix((back.values, back.columns, back.starts)) != found.T).nnz == 0
    counts = np.bincount(ratings.item_ids, minlength=len(ratings.items))
    assert (np.diff(counts) <= 0).all()  # the most used first
    assert firth.Interactions(ratings).fingerprint() == ratings.fingerprint()


BAD = {
    "NaN weight": ([("a", "x", float("nan"))], "row 1: the weight must be a finite number; got nan"),
    "infinite weight": ([("a", "x", 1.0), ("a", "y", float("inf"))], "row 2: the weight must be a finite"),
    "weight that is text": ([("a", "x", "much")], "row 1: the weight must be a number; got 'much'"),
    "no item": ([("a", None)], "row 1 has no item"),
    "no user": ([("a", "x"), (float("nan"), "y")], "row 2 has no user"),
    "empty user": ([("", "x")], "row 1 has no user"),
    "a list as an item": ([("a", ["x"])], "the item must be text or a number; got a list"),
    "one column": ([("a",)], r"Row 1 must be \(user, item"),
    "texts": (["a x"], r"Row 1 must be \(user, item"),
    "times for some": ([("a", "x", 1, 5), ("a", "y")], "Some rows have a time"),
    "no time": ([("a", "x", 1, None)], "row 1 has no time"),
    "a time that is none": ([("a", "x", 1, "soon")], "must be a number or a date"),
    "a number": (5, "Ratings are made of a file"),
    "unequal columns": ({"user": [1], "item": [1, 2]}, "equally long"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    source, rule = BAD[name]
    with pytest.raises(firth.FirthError, match=rule):
        firth.Interactions(source)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("user,item,rating\na,x,1\nb,y\n", "not a table of users and items"),
        ("user,item,rating\na,x,1\nb,y,lots\n", "row 3: the weight must be a number; got 'lots'"),
        ("\n\nuser,item,rating\na,x,1\nb,y,lots\n", "row 5: the weight must be a number; got 'lots'"),
        ("user,item,rating\na,x,\n", "row 2: the weight must be a finite number"),
        ("alone\n", "needs at least a user and an item"),
        ("", "needs at least a user and an item"),
        ("a\0b,c\n", "looks binary"),
        ("user,it\rem\na,x\n", "carriage return"),
        ("user,item\na\rb,x\n", "carriage return"),
        ("user,item\nb,y\na\rb,x\n", "not a table of users and items"),
    ],
)
def test_bad_files(text, rule, tmp_path: Path):
    (tmp_path / "bad.csv").write_bytes(text.encode())
    with pytest.raises(firth.FirthError, match=rule):
        firth.Interactions(tmp_path / "bad.csv")


def test_negative_weights_are_ratings_but_no_use():
    ratings = firth.Interactions([("a", "x", -2.0), ("a", "y", 3.0)])
    assert sorted(ratings.latest().values.tolist()) == [-2, 3]
    with pytest.raises(firth.FirthError, match=r"at least 0; user 'a' with item 'x' has -2. RatingFactors"):
        ratings.summed()


def many(seed: int = 3, times: bool = True) -> firth.Interactions:
    random = np.random.default_rng(seed)
    rows = np.stack([random.integers(0, 30, 900), random.integers(0, 50, 900)], axis=1)
    return firth.Interactions(
        [(int(u), int(i), 1.0, t) if times else (int(u), int(i)) for t, (u, i) in enumerate(rows)]
    )


def pairs(ratings: firth.Interactions) -> set[tuple[str, str]]:
    return {(user, item) for user, history in ratings.histories().items() for item in history}


@pytest.mark.parametrize("by", ["random", "last", "user"])
def test_a_split_parts_the_pairs(by):
    ratings = many()
    train, test, history = split(ratings, by)
    parts = [pairs(part) for part in (train, test, history) if part is not None]
    assert set.union(*parts) == pairs(ratings) and sum(map(len, parts)) == len(pairs(ratings))
    again = split(ratings, by)
    assert again.test.fingerprint() == test.fingerprint()
    if by == "random":
        assert 0.15 < len(parts[1]) / len(pairs(ratings)) < 0.25
        assert split(ratings, by, seed=2).test.fingerprint() != test.fingerprint()
    if by == "user":
        assert history is not None and not set(train.users) & set(test.users) and set(history.users) == set(test.users)
        told = {user: len(items) for user, items in history.histories().items()}
        for user, items in test.histories().items():
            assert len(items) == max(1, round(0.2 * (len(items) + told[user])))


def test_leaving_the_last_out():
    ratings = firth.Interactions(
        [("a", "x", 1, 5), ("a", "y", 1, 9), ("a", "y", 1, 1), ("a", "z", 1, 7), ("b", "x", 1, 1)]
    )
    train, test, _ = split(ratings, "last")
    assert pairs(test) == {("a", "z")}  # y was met at 1 first
    assert pairs(train) == {("a", "x"), ("a", "y"), ("b", "x")}  # b has one item, which stays
    one_day = firth.Interactions([(user, item, 1, 5) for user in range(9) for item in (f"rare {user}", "common")])
    assert split(one_day, "last").test.items == ["common"]  # the last in the source, not the rarest
    untimed = split(many(times=False), "last")
    assert all(len(items) == 1 for items in untimed.test.histories().values())


def test_nothing_is_learned_from_the_future():
    ratings = many()
    train, test, _ = split(ratings, "time", 0.25)
    assert train.times.max() < test.times.min()
    assert not pairs(train) & pairs(test)
    late = {(u, i) for u, i in pairs(ratings) if (u, i) not in pairs(train)}
    assert pairs(test) == late
    ten = firth.Interactions([("a", str(time), 1, time) for time in range(10)])
    for tenths in range(1, 10):
        assert len(split(ten, "time", tenths / 10).test) == tenths
    with pytest.raises(firth.FirthError, match="needs times"):
        split(many(times=False), "time")


def test_other_splits_are_refused():
    with pytest.raises(firth.FirthError, match="by one of random, last, time, user; got 'half'"):
        split(many(), "half")
    with pytest.raises(firth.FirthError, match="between 0 and 1; got 1"):
        split(many(), share=1)
