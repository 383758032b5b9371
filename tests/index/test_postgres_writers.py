"""`firth index build --postgres --cluster`: several writers fill one table, each row once, whatever dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow
import pytest
from click.testing import CliRunner
from refusing import refuses

import firth
from firth.cli.index import cluster as index_cluster
from firth.cli.main import cli
from firth.data.world import World
from firth.index.postgres import PostgresIndex

SENTENCES = list(World(seed=4).sentences(800))
PROCESSES = ("--cluster", "processes", "--workers", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file and a model of words."""
    made = tmp_path_factory.mktemp("written")
    rows = [{"id": f"t{n}", "text": text, "year": 1900 + n % 7} for n, text in enumerate([*SENTENCES, "", "unheard"])]
    (made / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    firth.SkipGram(dim=8, epochs=1, min_count=1).fit(SENTENCES).save(made / "model")
    return made


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(index_cluster, "SEGMENT_ROWS", 40)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def build(folder: Path, server: str, table: str, *flags: Any, data: str = "a.jsonl") -> Any:
    words = ["index", "build", folder / "model", folder / data, "--key", "id", "--attributes", "year", "-o", table]
    return CliRunner().invoke(cli, [str(word) for word in [*words, "--postgres", server, "--json", *flags]])


def content(server: str, table: str) -> list[Any]:
    with psycopg.connect(server) as connection:
        return connection.execute(f"SELECT key, vector::text, text, year FROM {table} ORDER BY key").fetchall()


def counts(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return {name: found[name] for name in ("rows", "unknown", "zero_rows")}


def error(result: Any) -> dict[str, Any]:
    [found] = [json.loads(line)["error"] for line in result.stderr.splitlines() if line.startswith('{"error"')]
    return dict(found)


def test_writers_fill_the_table_of_one_process(postgres, folder, table):
    one, two = f"{table}a", f"{table}b"
    expected = counts(build(folder, postgres.url, one))
    assert counts(build(folder, postgres.url, two, *PROCESSES)) == expected == {
        "rows": 802, "unknown": 1, "zero_rows": 2
    }  # fmt: skip
    assert content(postgres.url, one) == content(postgres.url, two)
    with psycopg.connect(postgres.url) as connection:
        sizes = [connection.execute(f"SELECT count(*) FROM {two}_{number}").fetchone() for number in range(8)]
        left = connection.execute("SELECT to_regclass(%s)", [f"{two}_shards"]).fetchone()
    assert sum(size[0] for size in sizes if size) == 802 and all(size and size[0] > 50 for size in sizes)
    assert left == (None,)
    model = firth.load(folder / "model")
    ours, theirs = (PostgresIndex.open(postgres.url, name, model) for name in (one, two))
    for exact in (True, False):
        found = [index.search("the king", 5, where="year > 1903", exact=exact) for index in (ours, theirs)]
        assert [hit.key for hit in found[0]] == [hit.key for hit in found[1]] and len(found[0]) == 5
    theirs.update(["t3"], np.ones((1, 8)), {"text": ["x"], "year": [2000]})
    assert len(theirs) == 802
    assert "already finished" in build(folder, postgres.url, two, *PROCESSES).stdout


def test_a_shard_is_stored_once(postgres, table):
    """A writer that died after its commit repeats the shard; another one of the same shard waits for the first."""
    index = PostgresIndex.create(postgres.url, table, dim=2, partitions=4)
    index.begin_shards({"n": pyarrow.int64()})
    others = [PostgresIndex.open(postgres.url, table) for _ in range(4)]
    added: list[bool] = []
    arguments: tuple[Any, ...] = ("s1", ["a", "b"], np.ones((2, 2)), {"n": [1, 2]})
    threads = [threading.Thread(target=lambda one=each: added.append(one.add_shard(*arguments))) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(added) == [False, False, False, True] and len(index) == 2
    with refuses("duplicate_name"):
        index.add_shard("s2", ["c", "b"], np.ones((2, 2)), {"n": [1, 2]})
    assert index.add_shard("s2", ["c"], np.ones((1, 2)), {"n": [1]})  # the failed one left no trace
    index.end_shards(finished=True)
    assert not index.has_shards and index.metadata == {"finished": True} and len(index) == 3
    index.drop()


def workers() -> list[int]:
    """The worker processes of this process."""
    found = []
    for task in Path("/proc/self/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            with contextlib.suppress(OSError):  # it has ended
                if b"firth.work.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found


def test_killed_writers_leave_every_row_once(postgres, folder, table):
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(build(folder, postgres.url, table, *PROCESSES)))
    thread.start()
    killed, seen = 0, -1
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        while thread.is_alive():
            row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{table}_shards"]).fetchone()
            if row != (True,):
                time.sleep(0.001)
                continue
            try:
                done = connection.execute(f"SELECT count(*) FROM {table}_shards").fetchone()
            except psycopg.errors.UndefinedTable:
                continue
            if done and done[0] > seen and killed < 3 and (alive := workers()):
                os.kill(alive[-1], signal.SIGKILL)
                killed, seen = killed + 1, done[0]
    thread.join(120)
    assert killed == 3 and counts(results[0])["rows"] == 802
    assert [row[0] for row in content(postgres.url, table)] == sorted(f"t{n}" for n in range(802))


def test_a_stopped_build_is_resumed_by_one_process(postgres, folder, table, monkeypatch):
    """Also when what it recorded as finished belonged to a table that was replaced."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PostgresIndex, "optimize", stop)
        assert build(folder, postgres.url, table, *PROCESSES).exit_code == 130
    with psycopg.connect(postgres.url) as connection:  # one shard is lost with its rows
        connection.execute(f"DELETE FROM {table}_shards WHERE shard = '00003'")
        connection.execute(f"DELETE FROM {table} WHERE key IN (SELECT 't' || n FROM generate_series(120, 159) n)")
    assert counts(build(folder, postgres.url, table))["rows"] == 802
    with monkeypatch.context() as patch:
        patch.setattr(PostgresIndex, "optimize", stop)
        assert build(folder, postgres.url, table, *PROCESSES, "--overwrite").exit_code == 130
    assert counts(build(folder, postgres.url, table, *PROCESSES, "--overwrite"))["rows"] == 802


def test_one_build_at_a_time_and_repeated_keys(postgres, folder, table):
    index = PostgresIndex.create(postgres.url, table, dim=8)
    index.lock()
    with refuses("locked", table=table):
        PostgresIndex.open(postgres.url, table).lock()
    index.close()
    PostgresIndex.open(postgres.url, table).lock()
    (folder / "twice.jsonl").write_text((folder / "a.jsonl").read_text() * 2)
    found = error(build(folder, postgres.url, f"{table}twice", *PROCESSES, data="twice.jsonl"))
    assert found["code"] == "duplicate_name" and found["values"]["shard"]
