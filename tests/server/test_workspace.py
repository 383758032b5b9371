"""What the workbench may read, what it runs, and what it says of data."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from serving import serving

from firth.cli.kinds import KINDS
from firth.core import registry
from firth.server.workbench.training import FIELDS


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
    assert again.status_code == 400 and "already" in again.json()["error"]
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
        ({"method": "classify"}, "choose one to begin with"),
    ],
)
def test_what_can_be_told_before_the_start_is_told(bench, change, said):
    answer = bench.post("/api/train", json={"method": "skipgram", "name": "x", "source": "root/text.txt", **change})
    assert answer.status_code == 400 and said in answer.json()["error"]


def test_forms_ask_what_the_command_line_asks():
    """Every field of a form is a flag of `firth train` for that kind of data, and every kind has a form."""
    for kind, fields in FIELDS.items():
        flags = {name.removeprefix("--") for names, _ in KINDS[kind].flags for name in names.split(", ")}
        assert {field.name for field in fields} <= flags, kind
    assert {registry.method(name).kind for name in registry.method_modules()} <= set(FIELDS)


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
