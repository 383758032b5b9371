"""For all tests: one thread for networks; small networks (tiny.py); models trained by the fasttext package, for the
tests of its files; a Ray cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# pytest runs on all cores already: networks with a thread for each of them would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))  # for `import tiny`

#: Words without n-grams, emoji, combining marks: each stands often enough to be in the vocabulary.
ODD_WORDS = ("a", "🙂", "👨‍👩‍👧", "e\u0301t\u0301", "naïve", "日本語", "x_y", "</s>")
#: Options of each model of words, by the name of its file.
WORD_MODELS: dict[str, dict[str, Any]] = {
    "skipgram": {"model": "skipgram"},
    "cbow_tree": {"model": "cbow", "loss": "hs"},
    "softmax": {"model": "skipgram", "loss": "softmax", "minn": 2, "maxn": 3, "dim": 7},
    "whole_words": {"model": "cbow", "maxn": 0},
}
LABEL_MODELS: dict[str, dict[str, Any]] = {
    "labels": {"minn": 2, "maxn": 4},
    "labels_tree": {"loss": "hs", "wordNgrams": 2},
    "labels_ova": {"loss": "ova"},
}


@pytest.fixture(scope="session")
def fasttext_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files written by fastText: models of words and of labels (.bin), and of labels in codes (.ftz)."""
    import fasttext

    from firth.data.world import World

    folder = tmp_path_factory.mktemp("fasttext")
    sentences = list(World(seed=3).sentences(600))
    odd = " ".join(word for word in ODD_WORDS if word != "</s>")
    text, labelled = folder / "text.txt", folder / "labelled.txt"
    text.write_text("\n".join([*sentences, odd, odd]) + "\n", encoding="utf-8")
    labels = [f"__label__{ord(line[0]) % 3} " + "__label__king " * ("king" in line) for line in sentences]
    lines = [label + line for label, line in zip(labels, sentences, strict=True)]
    labelled.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # 12 threads: with fewer than 11 this fastText leaves a part of its table as it found the memory.
    common = {"dim": 10, "epoch": 1, "minCount": 2, "bucket": 3000, "thread": 12, "verbose": 0}
    files = {name: folder / f"{name}.bin" for name in (*WORD_MODELS, *LABEL_MODELS)}
    for name, options in WORD_MODELS.items():
        fasttext.train_unsupervised(str(text), **{**common, **options}).save_model(str(files[name]))
    for name, options in LABEL_MODELS.items():
        learned = fasttext.train_supervised(str(labelled), **{**common, "epoch": 10, "lr": 0.5, **options})
        learned.save_model(str(files[name]))
    ways = {
        "codes": {},
        "codes_norms": {"qnorm": True, "dsub": 3},
        "codes_pruned": {"qnorm": True, "cutoff": 1000},
        "codes_few": {"cutoff": 300, "dsub": 5},
    }
    for name, options in ways.items():
        model = fasttext.load_model(str(files["labels"]))
        model.quantize(**options)
        files[name] = folder / f"{name}.ftz"
        model.save_model(str(files[name]))
    return files


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A head with a logical GPU and two more nodes, of one CPU each, to which `--cluster ray` connects.

    Workers import the tests of jobs. A test that removes a node adds another one.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent / "work"), *sys.path]))
        node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "num_gpus": 1, "include_dashboard": False})
        cluster.add_node(**node)
        cluster.add_node(**node)
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


#: Folders in which each test has a cache of its own. Commands, servers and pages share one, as they do at a user's.
OWN_CACHE = {"data", "documents", "finetuning", "graphs", "recommenders", "tables", "training", "transformers", "words"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test has a cache of its own."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def own_cache(request: pytest.FixtureRequest) -> None:
    if request.path.parent.name in OWN_CACHE:
        request.getfixturevalue("cache")


@pytest.fixture(scope="session")
def s3_server() -> Any:
    """A real S3 server (moto) in this process."""
    from stores import Server

    return Server()


@pytest.fixture
def bucket(s3_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A new bucket of the S3 server, with the environment that a user sets, and an empty cache."""
    from stores import new_bucket, use_server

    use_server(monkeypatch, s3_server)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    s3_server.requests.clear()
    return new_bucket(s3_server)


@pytest.fixture(params=["s3", "memory"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A new bucket of the S3 server, and a folder in the memory of fsspec."""
    from stores import Store

    if request.param == "s3":
        return request.getfixturevalue("bucket")
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    return Store(f"memory://{tmp_path.parent.name}-{tmp_path.name}")
