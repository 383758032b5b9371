"""What the workbench may read, what it runs, and what it says of data."""

from __future__ import annotations

import io
import json
import shlex
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from serving import serving

from firth.cli.data_kinds import DATA_KINDS
from firth.core import registry
from firth.core.errors import CODES
from firth.core.options import options_of
from firth.core.run import Run
from firth.server.workbench.earlier import own_arguments
from firth.server.workbench.training import FIELDS, Training, arguments


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "text.txt").write_text("the sea is wide\nthe sea is deep\n" * 200, encoding="utf-8")
    (folder / "rows.csv").write_text("id,text,year\na,the sea,2020\nb,a ship,2021\n", encoding="utf-8")
    (folder / "deep" / "rows.jsonl").write_text('{"text": "a", "n": 1}\n', encoding="utf-8")
    (folder / ".hidden.txt").write_text("secret\n", encoding="utf-8")
    (folder.parent / "outside.txt").write_text("secret\n", encoding="utf-8")
    (folder / "link.txt").symlink_to(folder.parent / "outside.txt")
    (folder / "away").symlink_to(folder.parent)
    return folder


@pytest.fixture(scope="module")
def bench(root, places):
    with serving(models=places, root=root) as client:
        client.headers["X-Firth-Token"] = client.settings.token
        yield client


def done(client, job):
    """The job once it has ended."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        job = client.get(f"/api/jobs/{job['id']}").json()
        if job["status"] in ("finished", "failed", "stopped"):
            return job
        time.sleep(0.1)
    raise AssertionError(job)


def test_files_under_the_root_are_listed(bench):
    found = {source["id"] for source in bench.get("/api/data").json()["sources"]}
    assert {"root/text.txt", "root/rows.csv", "root/deep/rows.jsonl"} <= found
    assert not any("hidden" in name for name in found)


DETOURS = """
root/../outside.txt root/deep/../../outside.txt root//etc/passwd /etc/passwd root/link.txt root/.hidden.txt root/
root/deep
root/away/outside.txt here/../../etc/hosts root/nothing.txt root/a\0.txt root/~/x.txt outside.txt root/..%2foutside.txt
other/text.txt"""


@pytest.mark.parametrize("name", ["", *DETOURS.split()])
def test_no_detour_leads_out_of_the_root(bench, name):
    for path in ("look", "vocabulary"):
        answer = bench.get(f"/api/data/{path}", params={"source": name})
        assert answer.status_code == 404 and "secret" not in answer.text
    body = {"method": "skipgram", "name": "x", "source": name}
    assert bench.post("/api/train", json=body).status_code == 404


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "x" * 65, "a b", "-o"])
def test_no_model_is_written_elsewhere(bench, name):
    answer = bench.post("/api/train", json={"method": "skipgram", "name": name, "source": "root/text.txt"})
    assert answer.status_code == 400 and "A name has letters" in answer.json()["error"]


def test_a_damaged_table_is_refused(bench, root):
    """Parquet that is none, is cut short or has other bytes; a carriage return in csv."""
    sink = io.BytesIO()
    table = pyarrow.table({"text": [f"text {n}" for n in range(50)], "year": list(range(50))})
    pyarrow.parquet.write_table(table, sink)
    data = sink.getvalue()
    flipped = [data[:place] + b"\xff" + data[place + 1 :] for place in range(4, len(data), len(data) // 25)]
    kinds = {".parquet": [b"", b"PAR1 not", data[: len(data) // 2], data[:-9], *flipped], ".csv": [b"text,n\na\rb,1\n"]}
    refused = 0
    for suffix, contents in kinds.items():
        for content in contents:
            (root / f"damaged{suffix}").write_bytes(content)
            for view in ("look", "vocabulary"):
                answer = bench.get(f"/api/data/{view}", params={"source": f"root/damaged{suffix}", "column": "text"})
                assert answer.status_code in (200, 400), answer.text
                if answer.status_code == 400:
                    refused += 1
                    assert answer.json()["code"] == "malformed_data"
        (root / f"damaged{suffix}").unlink()
    assert refused > 20


def test_rows_and_words_are_told(bench):
    look = bench.get("/api/data/look", params={"source": "root/rows.csv"}).json()
    assert look["columns"] == ["id", "text", "year"] and look["text"] == "text" and look["rows"][1][1] == "a ship"
    found = bench.get("/api/data/vocabulary", params={"source": "root/text.txt"}).json()
    assert (found["documents"], found["tokens"], found["vocabulary"]) == (400, 1600, 5)
    assert {word["word"] for word in found["words"][:3]} == {"is", "sea", "the"}
    assert found["curve"]["count"] == [400, 400, 400, 200, 200]


def test_a_dropped_file_is_kept_under_a_plain_name(bench):
    kept = bench.post("/api/data/drop", params={"name": "../../my file.txt"}, content=b"a b c\n").json()
    assert kept["id"] == "here/my-file.txt" and Path(kept["path"]).read_bytes() == b"a b c\n"
    other = bench.post("/api/data/drop", params={"name": "my file.txt"}, content=b"other\n").json()
    assert other["id"] == "here/my-file-2.txt"
    for name, content in (("a.exe", b"x"), ("a.txt", b""), ("..", b"x")):
        assert bench.post("/api/data/drop", params={"name": name}, content=content).status_code == 400


def test_a_run_becomes_a_model(bench, root):
    body = {"method": "skipgram", "name": "sea", "source": "root/text.txt", "options": {"dim": 8, "min_count": 1}}
    job = done(bench, bench.post("/api/train", json=body).json())
    assert job["status"] == "finished", job["error"]
    assert job["result"]["method"] == "skipgram" and job["command"].startswith("firth train skipgram ")
    assert "sea" in [model["name"] for model in bench.get("/api/models").json()["models"]]
    again = bench.post("/api/train", json=body)
    assert again.status_code == 409 and again.json()["code"] == "output_exists"
    space = {"of": "model/sea/words"}
    about = bench.get("/api/map/about", params=space).json()
    points = bench.get("/api/map/points", params=space).content
    assert about["rows"] == 5 and len(points) == 5 * 2 * 4


def test_a_run_that_fails_says_why(bench):
    body = {"method": "als", "name": "bad", "source": "root/text.txt"}
    job = done(bench, bench.post("/api/train", json=body).json())
    assert job["status"] == "failed" and "Traceback" not in job["error"]
    assert "status 1" not in job["error"] and not job["error"].startswith(("{", "firth:"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "nothing"}, "There is no method"),
        ({"options": {"dim": 0}}, "must be at least 1"),
        ({"options": {"colour": 1}}, "has no option"),
        ({"method": "rating-factors", "options": {"colour": 1}}, "RatingFactors has no option"),
        ({"run": {"threads": -1}}, "must be at least 0"),
        ({"data": {"label": "x"}}, "It has no 'label'"),
        ({"method": "text_classifier"}, "choose one to begin with"),
    ],
)
def test_what_can_be_told_before_the_start_is_told(bench, change, said):
    answer = bench.post("/api/train", json={"method": "skipgram", "name": "x", "source": "root/text.txt", **change})
    assert answer.status_code == 400 and said in answer.json()["error"]


def test_forms_ask_what_the_command_line_asks():
    """Every field of a form is a flag of `firth train` for that kind of data, and every kind has a form."""
    for kind, fields in FIELDS.items():
        flags = {name.removeprefix("--") for names, _ in DATA_KINDS[kind].flags for name in names.split(", ")}
        assert {field.name for field in fields} <= flags, kind
    assert {registry.method(name).kind for name in registry.method_classes()} <= set(FIELDS)


def test_an_index_is_made_and_searched(bench):
    body = {
        "model": "words",
        "source": "root/rows.csv",
        "name": "rows",
        "column": "text",
        "key": "id",
        "attributes": ["year"],
    }
    job = done(bench, bench.post("/api/index", json=body).json())
    assert job["status"] == "finished", job["error"]
    (index,) = [one for one in bench.get("/api/indexes").json()["indexes"] if one["name"] == "rows"]
    assert index["rows"] == 2 and index["columns"] == [
        {"name": "year", "written": "year", "kind": "number", "low": 2020, "high": 2021}
    ]
    asked = {"index": "rows", "query": "the ship", "mode": "words", "where": "year > 2020"}
    (hit,) = bench.post("/api/search", json=asked).json()["hits"]
    assert hit["key"] == "b" and hit["marks"] == [{"start": 2, "end": 6, "kind": "same"}]
    bad = bench.post("/api/search", json={**asked, "where": "__import__('os')"})
    assert bad.status_code == 400 and "where" in bad.json()["error"]


def test_models_are_compared(bench):
    job = done(bench, bench.post("/api/compare", json={"models": ["words", "sea"]}).json())
    assert job["status"] == "finished", job["error"]
    assert set(job["result"]["models"]) == {"words", "sea"} and "recommendation" in json.dumps(job["result"])
    alone = bench.post("/api/compare", json={"models": ["words"]})
    assert alone.status_code == 400 and "Choose two models" in alone.json()["error"]


def test_models_are_compared_under_the_names_they_have_here(places):
    with serving(models={"mine": places["words"], "yours": places["counts"]}) as client:
        client.headers["X-Firth-Token"] = client.settings.token
        job = done(client, client.post("/api/compare", json={"models": ["mine", "yours"]}).json())
    assert list(job["result"]["models"]) == ["mine", "yours"], job["error"]


# ---- what options may name ----


@pytest.mark.parametrize(
    "path", ["OUTSIDE", "../outside.txt", "link.txt", "away/outside.txt", "/etc/passwd", "deep/../../outside.txt"]
)
def test_an_option_names_no_file_outside_the_root(bench, root, path):
    given = path.replace("OUTSIDE", str(root.parent / "outside.txt"))
    body = {"method": "bert", "name": "spy", "source": "root/text.txt", "options": {"tokenizer": given}}
    answer = bench.post("/api/train", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), answer.text


def test_an_option_names_a_file_inside_the_root_from_there(bench, root):
    workspace = bench.app.state.workspace
    asked = Training(method="bert", name="ok", source="root/text.txt", options={"tokenizer": "deep/rows.jsonl"})
    assert f"--tokenizer={root.resolve() / 'deep' / 'rows.jsonl'}" in arguments(workspace, asked)


def test_fine_tuning_and_distillation_take_the_base_model_first(bench, root):
    workspace = bench.app.state.workspace
    base, data = str(workspace.models.path("words")), str(workspace.source("root/rows.csv"))
    columns = {"column": "text", "label": "year"}
    tuned = Training(method="text_classifier", name="m", source="root/rows.csv", data=columns, start="words")
    assert arguments(workspace, tuned)[:4] == ["finetune", "text_classifier", base, data]
    small = Training(method="distil", name="m", source="root/rows.csv", start="words")
    assert arguments(workspace, small) == ["train", "distil", base, data]
    further = Training(method="skipgram", name="m", source="root/rows.csv", start="words")
    assert arguments(workspace, further) == ["train", "skipgram", data, "--start", base]
    folder = root.resolve() / "m"
    for training in (tuned, small, further):
        words = [*arguments(workspace, training), "-o", str(folder), "--json"]
        assert own_arguments(workspace, folder, shlex.join(["firth", *words])) == words
    assert own_arguments(workspace, folder, f"firth train text_classifier {data} -o {folder} --json") == []


#: Options of free text that name no file: what they are is decided here, when one is added.
PLAIN = {"tune", "learning_rates", "hidden_sizes", "matryoshka_dims", "memory"}


def test_every_option_of_free_text_is_known_to_name_a_path_or_not():
    found = [option for name in registry.method_classes() for option in options_of(registry.method(name))]
    texts = [option for option in [*found, *options_of(Run)] if option.kind is str and not option.choices]
    assert {option.name for option in texts if not option.path} <= PLAIN
    assert {option.name for option in texts if option.path}.isdisjoint(PLAIN)


def test_only_options_of_a_run_are_taken(bench, tmp_path):
    run = {"checkpoint_folder": str(tmp_path)}
    answer = bench.post("/api/train", json={"method": "skipgram", "name": "x", "source": "root/text.txt", "run": run})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_option")


def test_what_is_made_replaces_no_file(bench, root):
    kept = root / "world-7.txt"
    kept.write_text("mine\n", encoding="utf-8")
    made = {"what": "world", "seed": 7, "sentences": 5}
    answer = bench.post("/api/data/make", json=made)
    assert (answer.status_code, answer.json()["code"]) == (409, "output_exists") and kept.read_text() == "mine\n"
    job = done(bench, bench.post("/api/data/make", json={**made, "name": "other"}).json())
    assert job["status"] == "finished" and job["about"]["source"] == "root/other.txt"
    assert len((root / "other.txt").read_text().splitlines()) == 5 and kept.read_text() == "mine\n"
    for name in ("../x", "a/b", ".x", "other", "other.txt"):
        assert bench.post("/api/data/make", json={**made, "name": name}).status_code in (400, 409), name


@pytest.mark.parametrize("route", ["/api/train", "/api/index"])
def test_nothing_else_is_replaced_either(bench, root, route):
    (root / "taken").mkdir(exist_ok=True)
    (root / "taken" / "notes.txt").write_text("mine\n")
    body = {"name": "taken", "source": "root/text.txt", "method": "skipgram", "model": "words"}
    answer = bench.post(route, json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "output_exists")


def test_a_damaged_data_file_is_refused_with_its_code(bench, root):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"text": ["the sea", "a ship"] * 200, "n": list(range(400))})
    pyarrow.parquet.write_table(table, root / "whole.parquet")
    whole = (root / "whole.parquet").read_bytes()
    damaged = {"cut": whole[: len(whole) // 2], "no-foot": whole[:-4], "empty-ish": b"PAR1", "text": b"not parquet"}
    for place in range(4, len(whole), max(1, len(whole) // 60)):
        damaged[f"at-{place}"] = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
    refused = 0
    for name, content in damaged.items():
        dropped = bench.post("/api/data/drop", params={"name": f"{name}.parquet"}, content=content)
        assert dropped.status_code == 200
        asked = {"source": dropped.json()["id"], "column": "text"}
        for path in ("look", "vocabulary"):
            answer = bench.get(f"/api/data/{path}", params=asked)
            assert answer.status_code in (200, 400), (name, path, answer.text)
            refused += answer.status_code == 400
            assert answer.status_code == 200 or answer.json()["code"] in CODES
    assert refused > 8  # a flipped bit inside a page may go unnoticed
    for name, content in {
        "a.csv": b'a,b\n"1',
        "b.csv.gz": b"\x1f\x8bxxxx",
        "c.jsonl": b"{\n",
        "d.txt.xz": b"x",
    }.items():
        dropped = bench.post("/api/data/drop", params={"name": name}, content=content).json()
        for path in ("look", "vocabulary"):
            answer = bench.get(f"/api/data/{path}", params={"source": dropped["id"]})
            assert answer.status_code in (200, 400), (name, answer.text)
