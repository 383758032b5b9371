"""Interactions from files, frames, matrices and tuples; unusual ids, duplicates, invalid input; and splits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses, warns_code
from scipy.sparse import coo_array, csr_matrix

import firth
from firth.data.interactions import transposed
from firth.data.readers import ICONV
from firth.data.splits import split

LONE_RETURN = "a carriage return (\\r) without a line feed; put the field in quotes or remove the character"

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
        with warns_code("columns_by_position") as warned:
            assert content(firth.Interactions(frame)) == sorted(PLAIN)
        assert "user in 'a', item in 'b', value in 'c'" in str(warned[0])
        named = firth.Interactions(frame, user="b", item="a")
        assert content(named) == sorted((i, u, 1.0) for u, i, _ in PLAIN)


def test_columns_are_requested_by_name(tmp_path: Path):
    (tmp_path / "r.csv").write_text("when,who,what\n5,ann,jazz\n4,ann,soul\n")
    ratings = firth.Interactions(tmp_path / "r.csv", user="who", item="what", time="when")
    assert ratings.times is not None and ratings.times.tolist() == [4, 5]
    assert [ratings.items[i] for i in ratings.item_ids] == ["soul", "jazz"]
    with refuses("unknown_column", name="whom", available="when, who, what"):
        firth.Interactions(tmp_path / "r.csv", user="whom", item="what")
    with refuses("unknown_column", missing="item", available="when, who, what"):
        firth.Interactions(tmp_path / "r.csv", user="who")


def test_header_is_distinguished_from_data(tmp_path: Path):
    (tmp_path / "two.csv").write_text("user_id,item_id\n1,2\n")
    (tmp_path / "ids.csv").write_text("1,2\n3,4\n")
    (tmp_path / "other.csv").write_text("who,what\n1,2\n")
    assert firth.Interactions(tmp_path / "two.csv").users == ["1"]
    assert firth.Interactions(tmp_path / "ids.csv").users == ["1", "3"]
    with warns_code("columns_by_position") as warned:
        assert firth.Interactions(tmp_path / "other.csv").users == ["1"]
    assert "user in 'who', item in 'what'" in str(warned[0])


def test_possible_header_is_reported(tmp_path: Path, recwarn):
    path = tmp_path / "two.csv"
    path.write_text("listener,song\nann,jazz\nbob,folk\n")
    with warns_code("possible_header") as warned:
        assert firth.Interactions(path).users == ["listener", "ann", "bob"]
    assert "listener, song" in str(warned[0]) and "--user listener --item song" in str(warned[0])
    recwarn.clear()
    assert firth.Interactions(path, user="listener", item="song").users == ["ann", "bob"]
    path.write_text("ann,jazz\nbob,folk\nbob,jazz\n")  # jazz occurs again
    assert len(firth.Interactions(path).users) == 2
    assert not recwarn.list


def test_other_encodings_are_refused(tmp_path: Path):
    (tmp_path / "latin.csv").write_bytes(b"user,item\nann,caf\xe9\n")
    with refuses("invalid_encoding", path=tmp_path / "latin.csv", iconv=ICONV):
        firth.Interactions(tmp_path / "latin.csv")


def test_columns_of_wide_tables_must_be_named(tmp_path: Path):
    orders = tmp_path / "orders.csv"
    orders.write_text("order,buyer,good,price,when\n1,ann,lamp,9.5,2024-05-31\n")
    with refuses("unknown_column", missing="user and item", available="order, buyer, good, price, when"):
        firth.Interactions(orders)
    orders.write_text("order_id;customer_id;sku;quantity;timestamp\n1;ann;lamp;2,5;2024-05-31\n")  # as spreadsheets do
    ratings = firth.Interactions(orders)
    assert (ratings.users, ratings.items, ratings.weights.tolist()) == (["ann"], ["lamp"], [2.5])
    assert ratings.times is not None


def test_times_may_be_dates(tmp_path: Path):
    (tmp_path / "r.csv").write_text("user,item,rating,time\na,x,1,2024-05-31\na,y,1,2023-01-01\n")
    from_csv = firth.Interactions(tmp_path / "r.csv")
    assert [from_csv.items[i] for i in from_csv.item_ids] == ["y", "x"]
    assert from_csv.times is not None and np.diff(from_csv.times) == pytest.approx(516 * 86400)
    as_tuples = firth.Interactions([("a", "x", 1, "2024-05-31"), ("a", "y", 1, "2023-01-01")])
    assert as_tuples.times is not None and np.array_equal(as_tuples.times, from_csv.times)
    frame = pd.read_csv(tmp_path / "r.csv")
    for each in (frame, frame.astype({"time": "string[pyarrow]"})):
        times = firth.Interactions(each).times
        assert times is not None and np.array_equal(times, from_csv.times)


def test_ids_of_any_type_become_text(tmp_path: Path):
    huge = 2**70
    ratings = firth.Interactions([(huge, "x"), (huge + 1, "x"), (7, 7.0), (7.0, "7"), ("é☃", True)])
    assert ratings.users == [str(huge), str(huge + 1), "7", "é☃"]
    assert set(ratings.items) == {"x", "7", "true"}
    (tmp_path / "r.csv").write_text(f"007,{2**64 + 3},1\n7,{2**64 + 4},1\n")
    read = firth.Interactions(tmp_path / "r.csv")
    assert read.users == ["007", "7"] and set(read.items) == {str(2**64 + 3), str(2**64 + 4)}
    frame = pd.DataFrame({"user": [1.0, 2.0], "item": [2**63 + 5, 2**63 + 6]})
    assert set(firth.Interactions(frame).items) == {str(2**63 + 5), str(2**63 + 6)}


def test_empty_rows_and_columns_of_a_sparse_matrix_are_kept():
    matrix = coo_array(([2.0, 3.0, 4.0], ([0, 2, 2], [3, 3, 1])), shape=(4, 5))
    ratings = firth.Interactions(matrix)
    assert (len(ratings.users), len(ratings.items), len(ratings)) == (4, 5, 3)
    assert ratings.items[:2] == ["3", "1"] and ratings.histories() == {
        "0": {"3": 2.0}, "1": {}, "2": {"3": 3.0, "1": 4.0}, "3": {}
    }  # fmt: skip


def test_duplicates_are_summed_or_reduced_to_the_latest_or_the_mean():
    pairs = [("a", "x", 1.0), ("a", "y", 5.0), ("a", "x", 3.0), ("b", "x", 2.0)]
    plain = firth.Interactions(pairs)
    assert sorted(plain.summed().values.tolist()) == [2, 4, 5]
    assert sorted(plain.latest().values.tolist()) == [2, 2, 5]  # x: the mean of 1 and 3
    timed = firth.Interactions([(*pair, time) for pair, time in zip(pairs, (9, 1, 2, 3), strict=True)])
    assert timed.histories() == {"a": {"y": 5.0, "x": 1.0}, "b": {"x": 2.0}}  # x = 1 came later


def test_zero_weights_are_not_implicit_feedback():
    ratings = firth.Interactions([("a", "x", 0.0), ("a", "y", 2.0)])
    assert ratings.summed().columns.tolist() == [ratings.items.index("y")]
    assert len(ratings.latest().columns) == 2  # but a rating of 0 is one
    for method in (firth.ALS(), firth.Item2Vec()):
        with refuses("empty_data", events=2):
            method.fit([("a", "x", 0.0), ("a", "y", 0.0)])


triples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=40)


@given(triples)
def test_sums_equal_those_of_scipy(rows):
    ratings = firth.Interactions(rows)
    users, items, weights = zip(*rows, strict=True)
    expected = csr_matrix((np.array(weights, float), (users, items)), shape=(6, 5))
    summed = ratings.summed()
    matrix = csr_matrix((summed.values, summed.columns, summed.starts), (len(ratings.users), len(ratings.items)))
    for u, user in enumerate(ratings.users):
        for i, item in enumerate(ratings.items):
            assert matrix[u, i] == expected[int(user), int(item)]
    back = transposed(summed, len(ratings.items))
    assert (csr_matrix((back.values, back.columns, back.starts)) != matrix.T).nnz == 0
    counts = np.bincount(ratings.item_ids, minlength=len(ratings.items))
    assert (np.diff(counts) <= 0).all()  # the most popular first
    assert firth.Interactions(ratings).fingerprint() == ratings.fingerprint()


BAD: dict[str, Any] = {
    "NaN weight": ([("a", "x", np.nan)], {"where": "The data, row 1", "field": "weight", "got": np.nan}),
    "infinite weight": (
        [("a", "x", 1.0), ("a", "y", np.inf)], {"where": "The data, row 2", "field": "weight", "got": np.inf}
    ),
    "weight that is text": ([("a", "x", "much")], {"where": "The data, row 1", "field": "weight", "got": "much"}),
    "no item": ([("a", None)], {"where": "The data, row 1", "field": "item"}),
    "no user": ([("a", "x"), (float("nan"), "y")], {"where": "The data, row 2", "field": "user"}),
    "empty user": ([("", "x")], {"where": "The data, row 1", "field": "user"}),
    "a list as an item": ([("a", ["x"])], {"where": "The data, row 1", "field": "item", "got": "list"}),
    "one column": ([("a",)], {"where": "Row 1", "got": ("a",)}),
    "texts": (["a x"], {"where": "Row 1", "got": "a x"}),
    "times for some": ([("a", "x", 1, 5), ("a", "y")], {"with_time": 1, "rows": 2}),
    "no time": ([("a", "x", 1, None)], {"where": "The data, row 1", "field": "time"}),
    "invalid time": ([("a", "x", 1, "soon")], {"where": "The data", "field": "time"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_invalid_events_are_refused(name):
    source, values = BAD[name]
    with refuses("malformed_data", **values):
        firth.Interactions(source)


def test_invalid_sources_are_refused():
    with refuses("invalid_type", got="int"):
        firth.Interactions(5)
    with refuses("shape_mismatch", shortest=1, longest=2):
        firth.Interactions({"user": [1], "item": [1, 2]})
    with refuses("non_finite", row=1, column=0, got=np.inf):
        firth.Interactions(csr_matrix([[0.0, 1.0], [np.inf, 0.0]]))
    with refuses("conflicting_options", options="user"):
        firth.Interactions([("a", "x")], user="who")


NOT_A_TABLE = ("malformed_data", {"expected": "a table of users and items"})


@pytest.mark.parametrize(
    ("text", "code", "values"),
    [
        ("user,item,rating\na,x,1\nb,y\n", *NOT_A_TABLE),
        ("user,item,rating\na,x,1\nb,y,lots\n", "malformed_data", {"row": 3, "field": "weight", "got": "lots"}),
        ("\n\nuser,item,rating\na,x,1\nb,y,lots\n", "malformed_data", {"row": 5, "field": "weight", "got": "lots"}),
        ("user,item,rating\na,x,\n", "malformed_data", {"row": 2, "field": "weight", "got": np.nan}),
        ("alone\n", "too_few", {"got": "alone"}),
        ("", "too_few", {"got": ""}),
        ("a\0b,c\n", "malformed_data", {"found": "NUL bytes"}),
        ("user,it\rem\na,x\n", "malformed_data", {"reason": LONE_RETURN}),
        ("user,item\na\rb,x\n", "malformed_data", {"reason": LONE_RETURN}),
        ("user,item\nb,y\na\rb,x\n", *NOT_A_TABLE),
    ],
)
def test_bad_files_are_refused(text, code, values, tmp_path: Path):
    path = tmp_path / "bad.csv"
    path.write_bytes(text.encode())
    values = dict(values)
    if "row" in values:
        values["where"] = f"{path}, row {values.pop('row')}"
    with refuses(code, **values):
        firth.Interactions(path)


def test_negative_weights_are_refused_as_implicit_feedback():
    ratings = firth.Interactions([("a", "x", -2.0), ("a", "y", 3.0)])
    assert sorted(ratings.latest().values.tolist()) == [-2, 3]
    with refuses("malformed_data", event="user 'a' with item 'x'", got=-2.0):
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
def test_splits_partition_the_pairs(by):
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
        n_history = {user: len(items) for user, items in history.histories().items()}
        for user, items in test.histories().items():
            assert len(items) == max(1, round(0.2 * (len(items) + n_history[user])))


def test_leave_last_item_out():
    ratings = firth.Interactions(
        [("a", "x", 1, 5), ("a", "y", 1, 9), ("a", "y", 1, 1), ("a", "z", 1, 7), ("b", "x", 1, 1)]
    )
    train, test, _ = split(ratings, "last")
    assert pairs(test) == {("a", "z")}  # y first occurs at time 1
    assert pairs(train) == {("a", "x"), ("a", "y"), ("b", "x")}  # b has one item, which stays
    one_day = firth.Interactions([(user, item, 1, 5) for user in range(9) for item in (f"rare {user}", "common")])
    assert split(one_day, "last").test.items == ["common"]  # the last in the source, not the rarest
    untimed = split(many(times=False), "last")
    assert all(len(items) == 1 for items in untimed.test.histories().values())


def test_split_by_time_has_no_future_events_in_the_training_set():
    ratings = many()
    train, test, _ = split(ratings, "time", 0.25)
    assert train.times is not None and test.times is not None
    assert train.times.max() < test.times.min()
    assert not pairs(train) & pairs(test)
    late = {(u, i) for u, i in pairs(ratings) if (u, i) not in pairs(train)}
    assert pairs(test) == late
    ten = firth.Interactions([("a", str(time), 1, time) for time in range(10)])
    for tenths in range(1, 10):
        assert len(split(ten, "time", tenths / 10).test) == tenths
    with refuses("missing_option", option="time"):
        split(many(times=False), "time")


def test_invalid_splits_are_refused():
    with refuses("invalid_value", option="split.by", choices="random, last, time, user", got="half"):
        split(many(), "half")
    with refuses("invalid_value", option="split.share", got=1):
        split(many(), share=1)
