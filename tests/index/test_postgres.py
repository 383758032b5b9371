"""`PostgresIndex` with a real server: the same results as `Index`, atomic uploads, and lost connections."""

from __future__ import annotations

import datetime
import json
import signal
import threading
import uuid
from typing import Any

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner
from refusing import refuses

import firth
from firth import FirthError
from firth.cli.main import cli
from firth.core.extras import how_to_install
from firth.data.world import World
from firth.index import Index
from firth.index.postgres import PostgresIndex


@pytest.fixture
def table() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def rows(count: int, seed: int = 0) -> tuple[list[str], np.ndarray, dict[str, list[object]]]:
    rng = np.random.default_rng(seed)
    attributes: dict[str, list[object]] = {
        "year": rng.integers(2000, 2020, count).tolist(),
        "name": [None if i % 7 == 0 else f'it\'s {i % 3} "%s"' for i in range(count)],
        "open": [bool(i % 2) for i in range(count)],
        "share": rng.random(count).tolist(),
        "day": [datetime.date(2020, 1, 1 + i % 28) for i in range(count)],
    }
    return [f"k{i}" for i in range(count)], rng.normal(size=(count, 6)).astype(np.float32), attributes


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_results_equal_those_of_index(postgres, table, metric, dtype):
    keys, matrix, attributes = rows(400)
    near = Index.create(dim=6, metric=metric, dtype=dtype)
    far = PostgresIndex.create(postgres.url, table, dim=6, metric=metric, dtype=dtype)
    for index in (near, far):
        index.add(keys, matrix, attributes)
        index.delete(keys[:20])
        index.update(["k30", "new"], matrix[:2], {name: values[:2] for name, values in attributes.items()})
    assert len(far) == len(near) == 381 and "k3" not in far and "new" in far
    np.testing.assert_allclose(far["k30"], near["k30"], rtol=1e-3)
    queries = np.random.default_rng(1).normal(size=(5, 6))
    conditions = [None, "year >= 2010", "name != None and not open", "share < 0.3 or year in (2001, 2003)"]
    conditions += ['name == "it\'s 1 \\"%s\\""', 'day >= "2020-01-20"', 'day in ("2020-01-20", "2020-01-21")']
    conditions += ["not year in ()"]
    for where in conditions:
        for mine, theirs in zip(near.search(queries, 8, where=where), far.search(queries, 8, where=where), strict=True):
            assert [hit.key for hit in mine] == [hit.key for hit in theirs] and mine
            scores = [hit.score for hit in mine]
            assert scores == pytest.approx([hit.score for hit in theirs], rel=2e-3 if dtype == "float16" else 1e-5)
            assert [dict(hit.attributes) for hit in mine] == [dict(hit.attributes) for hit in theirs]
    again = PostgresIndex.open(postgres.url, table)
    assert again.space == near.space and again.search(queries[0], 3) == far.search(queries[0], 3)


def test_hnsw_has_high_recall_and_filtered_searches_return_k_rows(postgres, table):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3000, 8)).astype(np.float32)
    index = PostgresIndex.create(postgres.url, table, dim=8)
    index.add([str(i) for i in range(3000)], matrix, {"n": list(range(3000))})
    index.optimize()
    index.optimize()  # can be repeated
    queries = rng.normal(size=(20, 8))
    for where in (None, "n < 300"):
        near, exact = (index.search(queries, 10, where=where, exact=exact) for exact in (False, True))
        assert all(len(hits) == 10 for hits in near)
        shared = [len({hit.key for hit in a} & {hit.key for hit in b}) / 10 for a, b in zip(near, exact, strict=True)]
        assert np.mean(shared) >= 0.98
    with psycopg.connect(postgres.url) as connection:
        (plan,) = connection.execute(
            f"EXPLAIN (FORMAT TEXT) SELECT key FROM {table} ORDER BY vector <=> '[1,1,1,1,1,1,1,1]' LIMIT 5"
        ).fetchall()[1]
    assert "hnsw" in plan


def test_text_queries_need_the_model_of_the_vectors(postgres, table):
    texts = list(World(seed=2).sentences(500))
    one, two = (firth.SkipGram(dim=5, epochs=1).fit(texts, firth.Run(seed=seed, threads=1)) for seed in (1, 2))
    index = PostgresIndex.create(postgres.url, table, dim=5, model=one)
    index.add([str(i) for i in range(500)], one.embed(texts), {"text": texts})
    assert PostgresIndex.open(postgres.url, table, one).search(texts[3], 1)[0].attributes["text"] == texts[3]
    with refuses("model_mismatch", expected_method="skipgram", method="skipgram"):
        PostgresIndex.open(postgres.url, table, two)
    with refuses("missing_model"):
        PostgresIndex.open(postgres.url, table).search("king")
    by_product = PostgresIndex.create(postgres.url, f"{table}_dot", dim=5, metric="dot", model=one)
    with refuses("zero_vector"):  # otherwise all rows would be equally near
        by_product.search("zzyzx")


def test_uploads_are_atomic(postgres, table):
    keys, matrix, attributes = rows(50)
    index = PostgresIndex.create(postgres.url, table, dim=6)
    index.add(keys[:10], matrix[:10], {name: values[:10] for name, values in attributes.items()})
    with refuses("duplicate_name", more=", …") as caught:
        index.add(keys, matrix, attributes)
    assert caught.value.values["examples"].startswith("'k")
    assert len(index) == 10
    index.update(keys, matrix, attributes)
    index.update(keys, matrix, attributes)
    assert len(index) == 50


@pytest.mark.parametrize("how", ["the server ends this connection", "the server is killed"])
def test_an_upload_with_a_lost_connection_stores_nothing_and_can_be_repeated(postgres, table, monkeypatch, how):
    keys, matrix, attributes = rows(3000)
    index = PostgresIndex.create(postgres.url, table, dim=6)
    index.add(keys[:100], matrix[:100], {name: values[:100] for name, values in attributes.items()})
    written = [0]
    real = psycopg.Copy.write_row

    def cut(copy, row):
        written[0] += 1
        if written[0] == 1500:
            if how == "the server is killed":
                postgres.stop(signal.SIGQUIT)  # at once, as in a crash
            else:
                with psycopg.connect(postgres.url, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s)", [copy.connection.info.backend_pid])
        real(copy, row)

    monkeypatch.setattr(psycopg.Copy, "write_row", cut)
    with refuses("database", where=f"PostgreSQL (postgres at {postgres.folder})") as caught:
        index.update(keys, matrix, attributes)
    assert "update" in caught.value.values["hint"]
    if postgres.process is None:
        with refuses("database") as caught:
            len(index)
        assert "where" not in caught.value.values  # not connected
        postgres.start()
    assert len(index) == 100
    index.update(keys, matrix, attributes)
    assert len(index) == 3000
    np.testing.assert_allclose(index["k2999"], matrix[2999], rtol=1e-6)


def test_a_server_that_does_not_exist(tmp_path):
    with refuses("database") as caught:
        PostgresIndex.open(f"host={tmp_path} user=x dbname=y password=secret", "t")
    assert "connection" in caught.value.values["reason"]
    try:
        PostgresIndex.create(f"host={tmp_path} user=x dbname=y password=secret", "t", dim=3)
    except FirthError as error:
        assert "secret" not in str(error)


def test_invalid_arguments_are_refused(postgres, table):
    keys, matrix, attributes = rows(5)
    with refuses("not_found", table=table):
        PostgresIndex.open(postgres.url, table)
    index = PostgresIndex.create(postgres.url, table, dim=6)
    assert index.search(np.ones(6)) == [] and len(index) == 0
    with refuses("output_exists", table=table):
        PostgresIndex.create(postgres.url, table, dim=6)
    index.add(keys, matrix, attributes)
    names = "year, name, open, share, day"
    filtered: dict[str, object] = {"column": "year", "type": "int64", "value": "'x'"}
    injected = "t; DROP TABLE x"
    calls: list[tuple[Any, str, dict[str, object]]] = [
        (lambda: index.add(["a"], [[1, 2]]), "shape_mismatch", {"dim": 6, "shape": "1 × 2"}),
        (lambda: index.add(["a"], [[np.nan] * 6]), "non_finite", {"key": "a"}),
        (lambda: index.add(["a", "a"], np.ones((2, 6))), "duplicate_name", {"key": "a", "count": 2}),
        (lambda: index.add(["a"], np.ones((1, 6))), "shape_mismatch", {"expected": names, "got": "none"}),
        (lambda: index.delete(["k1", "z"]), "unknown_key", {"missing": "z", "n_missing": 1}),
        (lambda: index["z"], "unknown_key", {"key": "z"}),
        (lambda: index.search(np.ones(3)), "shape_mismatch", {"dim": 6}),
        (lambda: index.search(np.zeros(6)), "zero_vector", {}),
        (lambda: index.search(np.ones(6), 0), "invalid_value", {"option": "k", "got": 0}),
        (lambda: index.search(np.ones(6), where="month > 3"), "unknown_column", {"name": "month"}),
        (lambda: index.search(np.ones(6), where="year > 'x'"), "invalid_filter", filtered),
        (lambda: PostgresIndex.create(postgres.url, injected, dim=3), "invalid_value", {"got": injected}),
        (lambda: PostgresIndex.create(postgres.url, "t2", dim=0), "invalid_value", {"option": "PostgresIndex.dim"}),
        (lambda: PostgresIndex.open(postgres.url, "pg_class"), "wrong_input", {"table": "pg_class"}),
    ]
    for call, code, values in calls:
        with refuses(code, **values):
            call()
    assert len(index) == 5 and "k1" in index
    assert len(index.search(np.ones(6), 50)) == 5


HOSTILE = ["year in {[]}", "not " * 500 + "open", "(" * 500, f"year == {10**30}", f"share > {10**400}", "year == 'x'"]
HOSTILE += [
    "name == '\\ud800'",
    "name == '\\0'",
    "day == 'no day'",
    "key == 3",
    "open == 'x'",
    "year.real > 1",
    "name in (1,)",
]
HOSTILE += ["open or " * 2000 + "open", "open" + " " * 70_000, "year == 0x" + "f" * 5000, "", "'", "year > None"]


@pytest.mark.parametrize("where", HOSTILE, ids=lambda text: repr(text[:20]))
def test_invalid_conditions_are_refused(hostile, where):
    """They are refused as by `Index`, before PostgreSQL sees them, except NUL characters, which it does not support."""
    with refuses("database" if "\\0" in where else "invalid_filter"):
        hostile.search(np.ones(6), where=where)
    assert len(hostile.search(np.ones(6), where="share < 1e999 and key in ('k1', 'k2')")) == 2


@pytest.fixture(scope="module")
def hostile(server):
    if server.process is None:
        server.start()
    index = PostgresIndex.create(server.url, f"t{uuid.uuid4().hex[:8]}", dim=6)
    index.add(*rows(5))
    return index


def test_threads_can_share_an_index(postgres, table):
    """Calls on its one connection are serialized, and none sees the transaction of another."""
    index = PostgresIndex.create(postgres.url, table, dim=6)
    faults = []

    def work(number: int) -> None:
        try:
            for turn in range(8):
                index.add([f"{number}-{turn}"], np.full((1, 6), number + 1.0))
                index.add_metadata(**{f"{number}-{turn}": turn})
                assert index.search(np.ones(6), 3) and f"{number}-{turn}" in index
                if turn % 4 == 3:
                    index.delete([f"{number}-{turn}"])
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and len(index) == 24
    assert len(PostgresIndex.open(postgres.url, table).metadata) == 32


def test_arguments_of_the_wrong_type_are_refused(postgres, table):
    index = PostgresIndex.create(postgres.url, table, dim=2)
    index.add(["a"], [[1, 2]])
    calls = [
        (lambda: index.add(["b"], [["1", "2"]]), "invalid_type"),
        (lambda: index.add(["b"], [[1, 2], [3]]), "invalid_type"),
        (lambda: index.add(["b"], [[1e25, 1]]), "out_of_range"),
        (lambda: index.add(["\ud800"], [[1, 2]]), "invalid_encoding"),
        (lambda: index.search([1j, 2]), "invalid_type"),
        (lambda: index.search(["a", 3]), "invalid_type"),
        (lambda: index.search(None), "invalid_type"),
        (lambda: index.search([1, 2], "3"), "invalid_type"),  # type: ignore[arg-type]
        (lambda: index.search([1, 2], where=3), "invalid_type"),  # type: ignore[arg-type]
        (lambda: index["\ud800"], "unknown_key"),
        (lambda: index[None], "unknown_key"),  # type: ignore[index]
        (lambda: index.delete([3]), "invalid_type"),  # type: ignore[list-item]
        (lambda: index.add_metadata(x={1}), "invalid_type"),
    ]
    for call, code in calls:
        with refuses(code):
            call()
    assert None not in index and "\ud800" not in index and len(index) == 1


def test_zero_vectors_are_never_near_under_cosine(postgres, table):
    index = PostgresIndex.create(postgres.url, table, dim=2)
    index.add(["none", "a"], [[0, 0], [-1, 0]])
    assert [hit.key for hit in index.search([1, 0], 5)] == ["a"]


def test_without_psycopg(monkeypatch):
    monkeypatch.setattr("firth.index.postgres.importlib.util.find_spec", lambda name: None)
    with refuses("missing_package", how=how_to_install("scale")):
        PostgresIndex.open("host=nowhere", "t")


def test_the_command_line_fills_a_table_resumes_and_searches_it(postgres, table, tmp_path, monkeypatch):
    world = World(seed=3)
    (tmp_path / "text.txt").write_text("\n".join(world.sentences(600)))
    model = firth.SkipGram(dim=8, epochs=2, min_count=1).fit(world.sentences(600)).save(tmp_path / "model")

    def call(*arguments):
        return CliRunner().invoke(cli, [str(each) for each in arguments])

    where = ("--postgres", postgres.url)
    command = ("index", "build", model, tmp_path / "text.txt", "-o", table, *where, "--json")
    monkeypatch.setattr("firth.cli.index.build.BATCH", 100)
    monkeypatch.setattr("firth.cli.index.build.COMMIT", 200)
    add = PostgresIndex.add

    def cut(self, keys, *rest):
        if len(self) == 400:
            postgres.stop(signal.SIGKILL)
        add(self, keys, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresIndex, "add", cut)
        lost = call(*command)
    error = json.loads(lost.stderr.splitlines()[-1])["error"]
    assert lost.exit_code == 1 and error["code"] == "database" and "update" in error["values"]["hint"]
    postgres.start()
    done = call(*command)
    assert json.loads(done.stdout)["status"] == "resumed" and json.loads(done.stdout)["rows"] == 600
    assert json.loads(call(*command).stdout)["status"] == "already finished"
    near = tmp_path / "near"
    assert call("index", "build", model, tmp_path / "text.txt", "-o", near).exit_code == 0
    query = next(iter(world.sentences(1)))
    found = json.loads(call("search", table, query, *where, "--json").stdout)
    same = json.loads(call("search", near, query, "--mode", "vector", "--json").stdout)
    assert [hit["score"] for hit in found] == pytest.approx([hit["score"] for hit in same], abs=1e-5)
    assert found[0]["attributes"]["text"] == query
    refused = call("search", table, query, *where, "--mode", "words")
    assert refused.exit_code == 1
    other = call(*command, "--metric", "dot")
    error = json.loads(other.stderr.splitlines()[-1])["error"]
    assert other.exit_code == 1 and error["code"] == "other_run" and "metric was" in error["values"]["reason"]
    assert json.loads(call(*command, "--metric", "dot", "--overwrite").stdout)["rows"] == 600


def test_passwords_are_never_printed(table, tmp_path):
    model = firth.SkipGram(dim=4, min_count=1).fit(["some words"] * 5).save(tmp_path / "model")
    (tmp_path / "text.txt").write_text("some words\n")
    for server in (
        "postgresql://me:hunter2@127.0.0.1:1/x",
        "postgresql//me:hunter2@host/x",
        "password=hunter2 nonsense",
        "host=127.0.0.1 port=1 password=hunter2",
        "postgresql://me:hunter2@127.0.0.1:1/x?nonsense=1",
    ):
        for command in (("index", "build", model, tmp_path / "text.txt", "-o", table), ("search", table, "words")):
            result = CliRunner().invoke(cli, [*map(str, command), "--postgres", server])
            assert result.exit_code == 1 and "hunter2" not in result.output + result.stderr
            again = CliRunner().invoke(cli, [*map(str, command)], env={"FIRTH_POSTGRES": server})
            assert again.exit_code == 1 and again.stderr == result.stderr
