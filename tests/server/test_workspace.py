"""What the workbench may read, what it runs, and what it says of data."""

from __future__ import annotations

import inspect
import io
import json
import re
import shlex
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from refusing import refuses
from serving import serving, until

import firth
from firth.cli.train import train_command
from firth.core import registry
from firth.core.errors import CODES
from firth.core.options import options_of
from firth.core.run import Run
from firth.server.workbench.earlier import own_arguments
from firth.server.workbench.training import TrainBody, arguments


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
    """Return the job once it has ended."""
    jobs = [job]

    def has_ended():
        jobs.append(client.get(f"/api/jobs/{job['id']}").json())
        return jobs[-1]["status"] in ("finished", "failed", "stopped")

    assert until(has_ended, 120), jobs[-1]
    return jobs[-1]


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
def test_paths_outside_the_root_are_refused(bench, name):
    for path in ("look", "vocabulary"):
        answer = bench.get(f"/api/data/{path}", params={"source": name})
        assert answer.status_code == 404 and "secret" not in answer.text
    body = {"method": "skipgram", "name": "x", "source": name}
    assert bench.post("/api/train", json=body).status_code == 404


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "x" * 65, "a b", "-o"])
def test_invalid_names_of_models_are_refused(bench, name):
    answer = bench.post("/api/train", json={"method": "skipgram", "name": name, "source": "root/text.txt"})
    assert answer.status_code == 400 and answer.json()["code"] == "invalid_value"


def test_a_damaged_table_is_refused(bench, root):
    """Invalid, truncated and modified Parquet files; a carriage return in csv."""
    sink = io.BytesIO()
    table = pyarrow.table({"text": [f"text {n}" for n in range(50)], "year": list(range(50))})
    pyarrow.parquet.write_table(table, sink)
    data = sink.getvalue()
    flipped = [data[:offset] + b"\xff" + data[offset + 1 :] for offset in range(4, len(data), len(data) // 25)]
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


def test_rows_and_words_are_returned(bench):
    look = bench.get("/api/data/look", params={"source": "root/rows.csv"}).json()
    assert look["columns"] == ["id", "text", "year"] and look["text"] == "text" and look["rows"][1][1] == "a ship"
    found = bench.get("/api/data/vocabulary", params={"source": "root/text.txt"}).json()
    assert (found["documents"], found["tokens"], found["vocabulary"]) == (400, 1600, 5)
    assert {word["word"] for word in found["words"][:3]} == {"is", "sea", "the"}
    assert found["curve"]["count"] == [400, 400, 400, 200, 200]


def test_an_uploaded_file_gets_a_safe_name(bench, root):
    stored = bench.post("/api/data/drop", params={"name": "../../my file.txt"}, content=b"a b c\n").json()
    assert stored["id"] == "root/my-file.txt" and Path(stored["path"]).read_bytes() == b"a b c\n"
    other = bench.post("/api/data/drop", params={"name": "my file.txt"}, content=b"other\n").json()
    assert other["id"] == "root/my-file-2.txt"
    again = bench.post("/api/data/drop", params={"name": "my file.txt"}, content=b"other\n").json()
    assert again["id"] == other["id"]  # the same file is not stored twice
    (root / "outside.txt").symlink_to("/etc/hostname")
    linked = bench.post("/api/data/drop", params={"name": "outside.txt"}, content=b"a b\n").json()
    assert linked["id"] == "root/outside-2.txt" and (root / "outside.txt").is_symlink()
    for name in ("my-file.txt", "my-file-2.txt", "outside.txt", "outside-2.txt"):
        (root / name).unlink()
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


def test_a_failed_run_reports_its_error(bench):
    body = {"method": "als", "name": "bad", "source": "root/text.txt"}
    job = done(bench, bench.post("/api/train", json=body).json())
    assert job["status"] == "failed" and "Traceback" not in job["error"]
    assert "status 1" not in job["error"] and not job["error"].startswith(("{", "firth:"))


@pytest.mark.parametrize(
    ("change", "code", "part"),
    [
        ({"method": "nothing"}, "unknown_method", "nothing"),
        ({"options": {"dim": 0}}, "invalid_value", "dim"),
        ({"options": {"colour": 1}}, "unknown_option", "colour"),
        ({"method": "rating-factors", "options": {"colour": 1}}, "unknown_option", "RatingFactors"),
        ({"run": {"threads": -1}}, "invalid_value", "threads"),
        ({"data": {"label": "x"}}, "unknown_option", "'label'"),
        ({"method": "text_classifier"}, "missing_start", "text_classifier"),
    ],
)
def test_invalid_runs_are_refused_before_they_start(bench, change, code, part):
    answer = bench.post("/api/train", json={"method": "skipgram", "name": "x", "source": "root/text.txt", **change})
    assert (answer.status_code, answer.json()["code"]) == (400, code) and part in answer.json()["error"]


def test_forms_have_the_flags_of_the_command_line(bench):
    """Every field of a form is a flag of `firth train`, and a keyword of a class that Python code can import."""
    for form in bench.get("/api/methods").json()["methods"]:
        method = registry.method(form["name"])
        flags = {flag for param in train_command(form["name"], method).params for flag in param.opts}
        assert {f"--{field['name']}" for field in form["fields"]} <= flags
        assert form["data"]["module"] == "firth"
        data = getattr(firth, form["data"]["class"])
        keywords = inspect.signature(data).parameters
        assert data is method.data and {field["keyword"] for field in form["fields"]} <= set(keywords)


def test_fields_become_flags(bench, root):
    workspace = bench.app.state.workspace
    start = str(workspace.models.path("words"))

    def flags(method, source, data):
        body = TrainBody(method=method, name="m", source=source, start="words", data=data)
        return [word for word in arguments(workspace, body)[2:] if word not in (start, "--start")][1:]

    assert flags("node2vec", "root/text.txt", {"directed": True, "unweighted": False}) == ["--directed"]
    pairs = {"source": "text", "target": "id", "dev": "root/rows.csv,root/deep/rows.jsonl"}
    paths = f"{root.resolve() / 'rows.csv'},{root.resolve() / 'deep' / 'rows.jsonl'}"
    assert flags("seq2seq", "root/rows.csv", pairs) == ["--source=text", "--target=id", f"--dev={paths}"]
    assert flags("token_classifier", "root/text.txt", {}) == []  # CoNLL has no columns
    with refuses("unknown_option", detail="token_classifier needs: column, tags."):
        flags("token_classifier", "root/rows.csv", {})


def test_lists_of_files_stay_inside_the_root(bench, root):
    """A comma in a path would give the command a path that was not checked."""
    workspace = bench.app.state.workspace
    (root / "x,").mkdir(exist_ok=True)
    (root / "x," / "dev.csv").write_text("source,target\na,b\n", encoding="utf-8")
    (root / "dev.csv").symlink_to(root / "x," / "dev.csv")
    for dev in ("root/x,/dev.csv", "root/dev.csv", "root/rows.csv,../outside.txt"):
        data = {"source": "id", "target": "text", "dev": dev}
        body = {"method": "seq2seq", "name": "m", "source": "root/rows.csv", "data": data}
        assert bench.post("/api/train", json=body).status_code in (400, 404), dev
    folder, rows = root.resolve() / "m", root.resolve() / "rows.csv"
    inside, outside = f"{rows},{rows}", f"{rows},{root.parent.resolve() / 'outside.txt'}"
    for dev, allowed in ((inside, True), (outside, False)):
        typed = f"firth train seq2seq {rows} --dev={dev} -o {folder} --json"
        assert bool(own_arguments(workspace, folder, typed)) == allowed


def test_an_index_is_created_and_searched(bench):
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
    body = {"index": "rows", "query": "the ship", "mode": "words", "where": "year > 2020"}
    (hit,) = bench.post("/api/search", json=body).json()["hits"]
    assert hit["key"] == "b" and hit["spans"] == [{"start": 2, "end": 6, "kind": "same"}]
    bad = bench.post("/api/search", json={**body, "where": "__import__('os')"})
    assert bad.status_code == 400 and bad.json()["code"] == "invalid_filter"


def test_models_are_compared(bench):
    job = done(bench, bench.post("/api/compare", json={"models": ["words", "counts"]}).json())
    assert job["status"] == "finished", job["error"]
    assert set(job["result"]["models"]) == {"words", "counts"} and "recommendation" in json.dumps(job["result"])
    alone = bench.post("/api/compare", json={"models": ["words"]})
    assert alone.status_code == 400 and alone.json()["code"] == "too_few"


def test_models_are_compared_under_their_served_names(places):
    with serving(models={"mine": places["words"], "yours": places["counts"]}) as client:
        client.headers["X-Firth-Token"] = client.settings.token
        job = done(client, client.post("/api/compare", json={"models": ["mine", "yours"]}).json())
    assert list(job["result"]["models"]) == ["mine", "yours"], job["error"]


# ---- what options may name ----


@pytest.mark.parametrize(
    "path", ["OUTSIDE", "../outside.txt", "link.txt", "away/outside.txt", "/etc/passwd", "deep/../../outside.txt"]
)
def test_path_options_outside_the_root_are_refused(bench, root, path):
    given = path.replace("OUTSIDE", str(root.parent / "outside.txt"))
    body = {"method": "bert", "name": "spy", "source": "root/text.txt", "options": {"tokenizer": given}}
    answer = bench.post("/api/train", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), answer.text


def test_path_options_are_relative_to_the_root(bench, root):
    workspace = bench.app.state.workspace
    body = TrainBody(method="bert", name="ok", source="root/text.txt", options={"tokenizer": "deep/rows.jsonl"})
    assert f"--tokenizer={root.resolve() / 'deep' / 'rows.jsonl'}" in arguments(workspace, body)


def test_fine_tuning_and_distillation_take_the_base_model_first(bench, root):
    workspace = bench.app.state.workspace
    base, data = str(workspace.models.path("words")), str(workspace.source("root/rows.csv"))
    columns: dict[str, bool | str] = {"column": "text", "label": "year"}
    tuned = TrainBody(method="text_classifier", name="m", source="root/rows.csv", data=columns, start="words")
    assert arguments(workspace, tuned)[:4] == ["finetune", "text_classifier", base, data]
    small = TrainBody(method="distil", name="m", source="root/rows.csv", start="words")
    assert arguments(workspace, small) == ["train", "distil", base, data]
    further = TrainBody(method="skipgram", name="m", source="root/rows.csv", start="words")
    assert arguments(workspace, further) == ["train", "skipgram", data, "--start", base]
    folder = root.resolve() / "m"
    for training in (tuned, small, further):
        words = [*arguments(workspace, training), "-o", str(folder), "--json"]
        assert own_arguments(workspace, folder, shlex.join(["firth", *words])) == words
    assert own_arguments(workspace, folder, f"firth train text_classifier {data} -o {folder} --json") == []


#: Options of free text that name no file: what they are is decided here, when one is added.
PLAIN = {"tune", "learning_rates", "hidden_sizes", "matryoshka_dims", "memory", "cluster"}


def test_every_text_option_declares_whether_it_is_a_path():
    found = [option for name in registry.method_classes() for option in options_of(registry.method(name))]
    texts = [option for option in [*found, *options_of(Run)] if option.kind is str and not option.choices]
    assert {option.name for option in texts if not option.path} <= PLAIN
    assert {option.name for option in texts if option.path}.isdisjoint(PLAIN)


def test_only_options_of_a_run_are_accepted(bench, tmp_path):
    run = {"checkpoint_folder": str(tmp_path)}
    answer = bench.post("/api/train", json={"method": "skipgram", "name": "x", "source": "root/text.txt", "run": run})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_option")


def test_generated_files_replace_no_existing_file(bench, root):
    stored = root / "world-7.txt"
    stored.write_text("mine\n", encoding="utf-8")
    made = {"what": "world", "seed": 7, "sentences": 5}
    answer = bench.post("/api/data/make", json=made)
    assert (answer.status_code, answer.json()["code"]) == (409, "output_exists") and stored.read_text() == "mine\n"
    job = done(bench, bench.post("/api/data/make", json={**made, "name": "other"}).json())
    assert job["status"] == "finished" and job["details"]["source"] == "root/other.txt"
    assert len((root / "other.txt").read_text().splitlines()) == 5 and stored.read_text() == "mine\n"
    for name in ("../x", "a/b", ".x", "other", "other.txt"):
        assert bench.post("/api/data/make", json={**made, "name": name}).status_code in (400, 409), name


@pytest.mark.parametrize("route", ["/api/train", "/api/index"])
def test_models_and_indexes_replace_no_existing_file(bench, root, route):
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
    for offset in range(4, len(whole), max(1, len(whole) // 60)):
        damaged[f"at-{offset}"] = whole[:offset] + bytes([whole[offset] ^ 0xFF]) + whole[offset + 1 :]
    refused = 0
    for name, content in damaged.items():
        dropped = bench.post("/api/data/drop", params={"name": f"{name}.parquet"}, content=content)
        assert dropped.status_code == 200
        body = {"source": dropped.json()["id"], "column": "text"}
        for path in ("look", "vocabulary"):
            answer = bench.get(f"/api/data/{path}", params=body)
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


def test_the_page_names_every_family():
    source = (Path(firth.__file__).parents[2] / "web" / "src" / "lib" / "training.ts").read_text(encoding="utf-8")
    families = re.findall(r'^  (\w+): "', source.partition("const FAMILIES:")[2].partition("};")[0], re.M)
    assert set(families) == {registry.family_of(name) for name in registry.method_classes()}
