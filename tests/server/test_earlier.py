"""What was made under --root before the start: it is there again, and nothing is opened until it is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from serving import Client, serving, until

import firth
from firth.core.checkpoint import STATE
from firth.core.train import COMMAND, UNFINISHED
from firth.data.world import World
from firth.server.jobs import ACTIVE

LONG = {"method": "skipgram", "name": "long", "source": "root/sea.txt", "options": {"epochs": 100_000, "min_count": 1}}


def ask(client: Client, path: str, **body):
    client.headers["X-Firth-Token"] = client.settings.token
    answer = client.post(path, json=body) if body else client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ended(client, job):
    """Return the job once it has ended."""
    assert until(lambda: state(client, job) not in ACTIVE, 120)
    return ask(client, f"/api/jobs/{job['id']}")


def begun(client, job):
    """Wait until the run has made progress."""
    assert until(lambda: ask(client, f"/api/jobs/{job['id']}")["curve"]["x"] or state(client, job) not in ACTIVE, 120)
    assert state(client, job) == "running", ask(client, f"/api/jobs/{job['id']}")


def state(client, job):
    return ask(client, f"/api/jobs/{job['id']}")["status"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root in which a first server created a model, an index, a corpus and a stopped run."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "sea.txt").write_text("\n".join(World(seed=3).sentences(400)) + "\n", encoding="utf-8")
    with serving(root=folder) as client:
        train = {"method": "skipgram", "name": "sea", "source": "root/sea.txt", "options": {"dim": 8, "epochs": 2}}
        assert ended(client, ask(client, "/api/train", **train))["status"] == "finished"
        index = {"model": "sea", "source": "root/sea.txt", "name": "texts"}
        assert ended(client, ask(client, "/api/index", **index))["status"] == "finished"
        made = ended(client, ask(client, "/api/data/make", what="world", sentences=10))
        assert made["status"] == "finished"
        client.post("/api/data/drop?name=uploaded.txt", content=b"the sea\n").raise_for_status()
        job = ask(client, "/api/train", **LONG, run={"checkpoint_every": 0.1})
        begun(client, job)
        assert until((folder / "long" / UNFINISHED / STATE).exists, 60)
        ask(client, f"/api/jobs/{job['id']}/stop", now=False)
        assert ended(client, job)["status"] == "stopped"
    firth.SkipGram(dim=4, epochs=1, min_count=1).fit(["a b c d"] * 20).save(folder / "deep" / "small")
    (folder / "page").mkdir()
    (folder / "page" / "config.json").write_text("{}")  # of some other program
    return folder


@pytest.fixture(scope="module")
def again(root):
    """Another server with the same root."""
    with serving(root=root) as client:
        yield client


def test_models_indexes_and_data_are_restored_without_being_loaded(again, root):
    found = ask(again, "/api/models")
    models = {model["name"]: model for model in found["models"]}
    assert set(models) == {"sea", "deep/small"} and found["indexes"] == ["texts"]
    assert models["sea"]["method"] == "skipgram" and models["sea"]["tables"]["words"]["dim"] == 8
    assert {"embeds", "vectors"} <= set(models["sea"]["can"]) and models["sea"]["path"] == str(root.resolve() / "sea")
    (index,) = ask(again, "/api/indexes")["indexes"]
    assert (index["rows"], index["dim"], index["modes"]) == (400, 8, ["both", "vector", "words"])
    spaces = {space["of"] for space in ask(again, "/api/map/spaces")["spaces"]}
    assert {"model/sea/words", "model/deep/small/words", "index/texts"} <= spaces
    files = {source["id"] for source in ask(again, "/api/data")["sources"]}
    assert {"root/sea.txt", "root/world-1.txt", "root/uploaded.txt"} <= files
    served = again.app.state.models
    assert served.loaded() == [] and not any(entry.resource for entry in served._indexes.values())


def test_restored_models_and_indexes_can_be_used(again):
    hits = ask(again, "/api/search", index="texts", query="the king", mode="both")["hits"]
    assert len(hits) == 10 and "sea" in again.app.state.models.loaded()
    assert ask(again, "/api/map/about?of=model/deep/small/words")["rows"] == 4
    taken = again.post("/api/train", json={**LONG, "name": "sea"})
    assert (taken.status_code, taken.json()["code"]) == (409, "output_exists")


def test_runs_are_restored_from_their_folders(again):
    jobs = {job["title"]: job for job in ask(again, "/api/jobs")["jobs"]}
    assert set(jobs) == {"sea", "long"}
    done, stopped = jobs["sea"], jobs["long"]
    assert (done["status"], done["verb"], done["details"]["method"]) == ("finished", "train", "skipgram")
    assert (
        done["details"]["earlier"]
        and done["curve"]["x"] == [1, 2]
        and done["metrics"]["loss"] > 0
        and done["speed"] is None
    )
    assert (stopped["status"], stopped["details"]["method"], stopped["resumes"]) == ("stopped", "skipgram", True)
    going = ask(again, f"/api/jobs/{stopped['id']}/resume", now=True)
    begun(again, going)
    ask(again, f"/api/jobs/{stopped['id']}/stop", now=False)
    assert ended(again, going)["status"] == "stopped"
    assert again.delete(f"/api/jobs/{done['id']}").status_code == 200 and "sea" in again.app.state.models.names()


COMMANDS = (
    "firth train skipgram /etc/passwd -o FOLDER --json",
    "firth train skipgram ROOT/sea.txt -o /tmp/elsewhere --json",
    "firth train skipgram ROOT/sea.txt --overwrite -o FOLDER --json",
    "firth train bert ROOT/sea.txt --tokenizer=/etc -o FOLDER --json",
    "firth train skipgram ROOT/sea.txt --start /etc -o FOLDER --json",
    "firth train skipgram ROOT/sea.txt ROOT/sea.txt -o FOLDER --json",
    "firth convert ROOT/sea ROOT/x.txt",
    "firth train skipgram sea.txt -o FOLDER",
    "rm -r ROOT",
    "firth train nothing ROOT/sea.txt -o FOLDER",
    "'",
)


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_run_can_only_be_resumed_if_its_paths_are_inside_the_root(root, tmp_path, typed):
    own = tmp_path / "root"
    (own / "run" / UNFINISHED).mkdir(parents=True)
    (own / "sea.txt").write_text("a b c\n" * 50)
    command = typed.replace("FOLDER", str(own / "run")).replace("ROOT", str(own))
    record = {"identity": {"method": "skipgram"}, "typed": command}
    (own / "run" / UNFINISHED / COMMAND).write_text(json.dumps(record))
    with serving(root=own) as client:
        (job,) = ask(client, "/api/jobs")["jobs"]
        assert job["status"] == "stopped" and not job["resumes"] and job["command"] == ""
        answer = client.post(f"/api/jobs/{job['id']}/resume")
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_names_of_the_command_line_take_precedence(root, places):
    with serving(models={"sea": places["words"], "mine": root / "deep" / "small"}, root=root) as client:
        paths = {model["name"]: model["path"] for model in ask(client, "/api/models")["models"]}
    assert paths["sea"] == str(places["words"]) and Path(paths[f"{root.name}/sea"]) == root.resolve() / "sea"
    assert set(paths) == {"sea", "mine", f"{root.name}/sea"}  # the same folder is not there twice
