"""The example of Ray Serve in the docs: it runs, and gives the vectors of the model."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from types import ModuleType

import httpx
import numpy as np
import pytest

import firth
from firth.data.world import World

pytest.importorskip("ray.serve", reason="needs ray[serve]")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    specification = importlib.util.spec_from_file_location("ray_serve", DOCS / "ray_serve.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "ray_serve", module)
    specification.loader.exec_module(module)
    return module


def test_the_example_answers(ray_cluster, example, tmp_path):
    import ray
    import ray.cloudpickle
    from ray import serve

    from firth.work.ray_cluster import connection

    texts = list(World(seed=2).sentences(300))
    model = firth.SkipGram(dim=8, epochs=1, min_count=1).fit(texts)
    model.save(tmp_path / "model")
    ray.cloudpickle.register_pickle_by_value(example)  # the machines of a real cluster have the file
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with connection("ray"):
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": port})
            serve.run(example.app({"model": str(tmp_path / "model"), "replicas": "2"}))
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                answers = [client.post("/", json={"inputs": texts[first : first + 5]}) for first in (0, 5, 10)]
            vectors = np.concatenate([answer.json() for answer in answers])
            status = serve.status().applications["default"].deployments["Embedder"]
            assert status.replica_states == {"RUNNING": 2}
        finally:
            serve.shutdown()
    np.testing.assert_allclose(vectors, model.embed(texts[:15]), rtol=1e-5, atol=1e-6)
