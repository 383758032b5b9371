"""`compare` on a cluster: each worker embeds all texts with one model, or trains one of the models again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.report import default_report
from firth.core.run import Run
from firth.core.saved import load
from firth.core.vectors import Matrix, Vectors
from firth.data import cache
from firth.data.corpus import Corpus
from firth.data.corpus_shards import corpus_files, corpus_settings, shard_corpus
from firth.data.shard_jobs import run_cached
from firth.studies.alignment import vectors_of
from firth.studies.compared_models import ComparedModel, compared_model
from firth.work.executors import Cluster
from firth.work.job import Job, Shard
from firth.work.worker import enter

Embedded = tuple[Matrix, int, int]  # rows; words with a vector, words without


@dataclass(frozen=True)
class EmbeddedModel(ComparedModel):
    """A model whose vectors of the compared texts workers have computed."""

    results: Mapping[tuple[str, ...], Embedded] = field(default_factory=dict)
    speed: float = math.nan  # texts per second of the first list

    def embedded(self, texts: Sequence[str]) -> Embedded:
        return self.results[tuple(texts)]

    def timed(self, texts: Sequence[str]) -> tuple[Matrix, float, float]:
        rows, known, unknown = self.embedded(texts)
        return rows, known / (known + unknown) if known + unknown else np.nan, self.speed


def embedded_models(
    models: Sequence[ComparedModel], lists: Sequence[Sequence[str]], cluster: Cluster
) -> list[ComparedModel]:
    """Return the models with the vectors of lists of texts; the speed is that of the first list."""
    embedders = [each for each in models if each.embed is not None]
    if not embedders or not lists:
        return list(models)
    with cache.job_folder("") as job_folder:
        folder = job_folder.absolute()
        texts = folder / "texts.json"
        texts.write_text(json.dumps([list(each) for each in lists]), "utf-8")
        common = {"texts": str(texts), "directory": str(Path.cwd())}
        shards = [shard_of(number, each) for number, each in enumerate(embedders)]
        job = Job("Comparison", "models", embed_lists, common, shards, folder, [texts], durable=False)
        run_cached(job, cluster, default_report())
        done = {each.name: read_lists(each, folder, number, lists) for number, each in enumerate(embedders)}
    return [done.get(each.name, each) for each in models]


def shard_of(number: int, model: ComparedModel, **more: Any) -> Shard:
    """Return the task of a model, which workers open by its path."""
    if not model.source:
        raise FirthError(
            "unsupported_cluster",
            "Workers of a cluster read files, but {source} is in the memory of this process. Write it to a file, or "
            "leave out cluster.",
            source=model.name,
        )
    return Shard(f"{number}", {"number": number, "name": model.name, "path": model.source, **more}, title=model.name)


def embed_lists(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Embed lists of texts with one model in a worker, and write rows, counts of words, and the speed."""
    enter(common["directory"])
    model = compared_model(parameters["name"], parameters["path"])
    lists, counts = json.loads(Path(common["texts"]).read_text("utf-8")), []
    _, _, speed = model.timed(lists[0])
    for number, texts in enumerate(lists):
        rows, known, unknown = model.embedded(texts)
        np.save(folder / f"{parameters['number']}-{number}.npy", rows, allow_pickle=False)
        counts.append((known, unknown))
    (folder / f"{parameters['number']}.json").write_text(json.dumps({"counts": counts, "speed": speed}))


def read_lists(model: ComparedModel, folder: Path, number: int, lists: Sequence[Sequence[str]]) -> EmbeddedModel:
    """Return a model with what a worker has computed."""
    record = json.loads((folder / f"{number}.json").read_text())
    results = {
        tuple(texts): (np.load(folder / f"{number}-{position}.npy", allow_pickle=False), *record["counts"][position])
        for position, texts in enumerate(lists)
    }
    return EmbeddedModel(**vars(model), results=results, speed=record["speed"])


def retrained(
    models: Sequence[ComparedModel], corpus: Corpus, trainings: int, seed: int, cluster: Cluster
) -> dict[str, list[Vectors]]:
    """Train the method of each model several times with different seeds, and return the vectors by its name."""
    files = [file.path for file in corpus_files(corpus)]
    parts = [(number, str(path.absolute()), 0, 0) for number, path in enumerate(files)]
    common = {"corpus": corpus_settings(corpus), "parts": parts, "directory": str(Path.cwd())}
    tasks = [(each, turn) for each in models for turn in range(trainings)]
    shards = [shard_of(number, each, seed=seed + turn) for number, (each, turn) in enumerate(tasks)]
    vectors: dict[str, list[Vectors]] = {each.name: [] for each in models}
    with cache.job_folder("") as job_folder:
        folder = job_folder.absolute()
        job = Job("Training", "models", train_again, common, shards, folder, files, durable=False)
        run_cached(job, cluster, default_report())
        for number, (each, _) in enumerate(tasks):
            keys = json.loads((folder / f"{number}.json").read_text("utf-8"))
            vectors[each.name].append(Vectors(keys, np.load(folder / f"{number}.npy", allow_pickle=False)))
    return vectors


def train_again(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Train the method of a model in a worker, and write its vectors."""
    enter(common["directory"])
    corpus = shard_corpus(common["corpus"], common["parts"])
    vectors = vectors_of(load(parameters["path"]).method.fit(corpus, run=Run(seed=parameters["seed"])))
    np.save(folder / f"{parameters['number']}.npy", vectors.matrix, allow_pickle=False)
    (folder / f"{parameters['number']}.json").write_text(json.dumps(list(vectors.keys)), "utf-8")
