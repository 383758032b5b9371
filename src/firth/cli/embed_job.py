"""`firth embed` to a folder: a job with one shard per file, computed here or by the workers of a cluster."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli import shards
from firth.cli.common import choose_report, does_not_embed, note
from firth.cli.embed_batches import NO_DOCUMENTS, batches, text_batches
from firth.cli.row_writers import writer
from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError, FirthWarning
from firth.core.processes import is_first_process, rank, world_size
from firth.core.remote import AnyPath, as_path
from firth.core.report import Nothing
from firth.core.text_embedder import keep_model, loaded_model
from firth.data.corpus_parts import PieceReader, find_parts
from firth.transformers.pooling import Pooling
from firth.work.executors import Cluster, executor
from firth.work.job import Job, Shard, run_job
from firth.work.worker import tell

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.data.corpus import Corpus


class ShardTask(NamedTuple):
    """What is embedded, and how."""

    model: Model
    path: str
    texts: Corpus
    folder: AnyPath
    settings: dict[str, Any]
    kind: str  # of the files
    rows: int  # per file


class Prepared(NamedTuple):
    """A job for the unfinished shards, and what is recorded of the finished ones."""

    job: Job
    recorded: dict[int, shards.Counts]
    finished: bool
    notes: Sequence[tuple[str, str]]


def embed_to_shards(task: ShardTask, cluster: Cluster) -> Counter[str]:
    """Embed the missing shards and return the counts; a task of a job array returns those of its own shards."""
    if task.rows < 1:
        raise FirthError("too_few", "--shard-rows must be at least 1; got {got}.", got=task.rows)
    if world_size() > 1:
        return embed_in_processes(task)
    with shards.locked(task.folder, shared=cluster.part is not None), executor(cluster):
        prepared = prepare(task, cluster)
        for code, text in prepared.notes:
            note(text, code)
        counts = numbered(run_job(prepared.job, cluster, choose_report()))
        if cluster.part:
            own = {int(shard.name) for shard in cluster.own(prepared.job.shards)}
            return shards.total_counts(counts[number] for number in counts if number in own)
        return finish(prepared, counts)


def embed_in_processes(task: ShardTask) -> Counter[str]:
    """Embed the missing shards in the processes of torchrun. The first one opens and finishes the folder."""
    from firth.training.network_options import networks

    with networks():
        from firth.training.device import broadcast, gathered, join
    join()
    if not is_first_process():
        job = broadcast(None)
        if job is None:  # the first process reports the error
            raise click.exceptions.Exit(1)
        remember(task, job.common["identity"]["model"])
        run_job(job, Cluster(part=(rank() + 1, world_size())), Nothing())
        gathered(None)
        return Counter()
    job = None
    try:
        with shards.locked(task.folder, shared=False):
            prepared = prepare(task, Cluster())
            for code, text in prepared.notes:
                note(text, code)
            job = broadcast(prepared.job)
            run_job(job, Cluster(part=(1, world_size())), choose_report())
            gathered(None)
            return finish(prepared, numbered(job.finished()))
    finally:
        if job is None:
            broadcast(None)


def numbered(counts: Mapping[str, shards.Counts]) -> dict[int, shards.Counts]:
    """Return counts by the number of their shard instead of its name."""
    return {int(name): each for name, each in counts.items()}


def prepare(task: ShardTask, cluster: Cluster) -> Prepared:
    """Divide the texts into shards, and read which of them the folder has."""
    if not isinstance(task.model, EmbedsTexts):
        raise does_not_embed(task.model, task.path)
    folder = task.folder.absolute()
    parts = find_parts(task.texts, folder, cluster, choose_report())
    settings = json_settings(task.settings, cluster)
    options = {name: value for name, value in settings.items() if name != "device"}
    model = shards.model_fingerprint(task.path)
    identity = {
        "model": model,
        "data": parts.fingerprint,
        "options": options,
        "kind": task.kind,
        "rows per shard": task.rows,
    }
    remember(task, model)
    pieces = list(parts.parts(task.rows))
    if not pieces:
        raise FirthError("empty_data", NO_DOCUMENTS)
    recorded = shards.read_record(folder, identity)
    common = {
        "model": model_path(task),
        "identity": identity,
        "settings": settings,
        "reading": parts.settings,
        "kind": task.kind,
    }
    missing = [
        Shard(f"{number:05d}", {"number": number, "pieces": each}, sum(piece.rows for piece in each))
        for number, each in enumerate(pieces)
        if number not in recorded.shards
    ]
    inputs = [*shards.model_files(as_path(task.path).absolute()), *(file.path.absolute() for file in parts.files)]
    job = Job("embedding", "rows", embed_shard, common, missing, folder, inputs)
    return Prepared(job, recorded.shards, recorded.finished, resume_notes(job, recorded))


def model_path(task: ShardTask) -> str:
    """Return the path of the model as workers open it."""
    return str(as_path(task.path).absolute())


def remember(task: ShardTask, fingerprint: str) -> None:
    """Let shards that are computed in this process use the model that is open."""
    keep_model(model_path(task), fingerprint, task.model)


def resume_notes(job: Job, recorded: shards.Recorded) -> list[tuple[str, str]]:
    """Return notes on the shards that exist, with their codes."""
    if recorded.finished:
        return [("already_finished", f"{job.folder} is already finished; nothing was computed.")]
    notes = []
    if recorded.lost:
        names = ", ".join(recorded.lost)
        notes.append(("lost_shards", f"Missing or damaged shards are embedded again: {names}."))
    if done := len(recorded.shards) + len(job.finished()):
        notes.append(("resumed", f"{done:,} shards are already finished; embedding the others."))
    return notes


def finish(prepared: Prepared, counts: Mapping[int, shards.Counts]) -> Counter[str]:
    """Record all shards, and return the sum of their counts."""
    job = prepared.job
    everything = {**prepared.recorded, **counts}
    if not prepared.finished:
        shards.finish(job.folder, job.common["identity"], everything)
    shards.remove_leftovers(job.folder, job.common["kind"], everything)
    job.clear()
    return shards.total_counts(everything.values())


def json_settings(settings: Mapping[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Return the settings as JSON, with the precision that all workers have to use."""
    given = dict(settings)
    if "pooling" not in given:
        return given
    from firth.transformers.text_encoder import resolve_engine

    device, precision = given.get("device", "auto"), given.get("precision", "auto")
    if cluster.gpus_per_worker and device == "cpu":
        raise FirthError(
            "conflicting_options", "{options} cannot be combined.", options="--gpus-per-worker and --device cpu"
        )
    if cluster.gpus_per_worker:  # this process may have no GPU
        given |= {"device": "cuda", "precision": "bf16" if precision == "auto" else precision}
    else:
        given["precision"] = resolve_engine(device, precision)[1]
    pooling = asdict(given["pooling"])
    return {**given, "pooling": {**pooling, "layers": list(pooling["layers"])}}


def embed_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> Counter[str]:
    """Embed the documents of a shard, write their vectors, and return the counts: the function of the job."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirthWarning)  # the driver has reported them
        model = loaded_model(common["model"], common["identity"]["model"])
    settings = dict(common["settings"])
    if "pooling" in settings:
        pooling = settings["pooling"]
        settings["pooling"] = Pooling(**{**pooling, "layers": tuple(pooling["layers"])})
    reader = PieceReader(common["reading"], parameters["pieces"])
    rows = sum(piece.rows for piece in reader.pieces)
    total = Counter[str]()
    documents = text_batches((document for document, _ in reader.walk()), reader)
    with writer(str(folder / shards.shard_name(parameters["number"], common["kind"]))) as write:
        for batch, counts in batches(model, documents, common["model"], settings):
            write(batch)
            total.update(counts)
            tell(total["rows"] / rows)
    return total
