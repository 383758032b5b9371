"""The arguments of the evaluation commands, where the models are evaluated, and how their results are printed."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import click

from firth.cli.cluster_options import cluster_flags, given_cluster
from firth.cli.common import choose_report, print_json
from firth.core.errors import FirthError
from firth.core.remote import is_url

CLUSTER = ("cluster", "workers", "gpus_per_worker")


class Evaluated(NamedTuple):
    """The result of one model, as JSON and as text."""

    json: Any
    text: str


_collected: ContextVar[list[Evaluated] | None] = ContextVar("collected", default=None)  # in a worker


def models_and_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments MODEL… and DATA, and the flags of a cluster, whose workers evaluate one model each."""

    @functools.wraps(function)
    def evaluated(models: Sequence[str], **values: Any) -> None:
        cluster = given_cluster(values, has_shards=True)
        own = {name: value for name, value in values.items() if name not in CLUSTER}
        if not cluster.where:
            function(models=models, **own)
            return
        show(models, evaluate_on(function, models, own, cluster), own["as_json"])

    with_flags: Callable[..., Any] = cluster_flags(evaluated)
    with_data: Callable[..., Any] = click.argument("data", metavar="DATA")(with_flags)
    return click.argument("models", nargs=-1, required=True, metavar="MODEL…")(with_data)


def print_results(models: Sequence[str], evaluate: Callable[[str], Any], as_json: bool) -> None:
    """Evaluate and print each model; with --json, one object of all results by the path of the model."""
    collected = _collected.get()
    results: dict[str, Any] = {}
    for path in models:
        result = evaluate(path)
        one = Evaluated(result.to_json(), str(result))
        results[path] = one.json
        if collected is not None:
            collected.append(one)
        elif not as_json:
            click.echo(f"{path}\n{one.text}\n" if len(models) > 1 else one.text)
    if as_json and collected is None:
        print_json(results)


def show(models: Sequence[str], results: Sequence[Evaluated], as_json: bool) -> None:
    """Print results as `print_results` does."""
    if as_json:
        print_json({path: result.json for path, result in zip(models, results, strict=True)})
        return
    for path, result in zip(models, results, strict=True):
        click.echo(f"{path}\n{result.text}\n" if len(models) > 1 else result.text)


def evaluate_on(
    function: Callable[..., Any], models: Sequence[str], values: Mapping[str, Any], cluster: Any
) -> list[Evaluated]:
    """Evaluate one model per task of a cluster."""
    from firth.data import cache
    from firth.data.readers import find_files
    from firth.data.shard_jobs import run_cached
    from firth.work.job import Job, Shard

    if "-" in (values["data"], *models):
        raise FirthError(
            "conflicting_options",
            "Workers cannot read standard input (-). Give a file, or leave out {option}.",
            option="--cluster",
        )
    common = {"module": function.__module__, "values": dict(values), "directory": str(Path.cwd())}
    shards = [Shard(f"{number}", {"number": number, "model": path}, title=path) for number, path in enumerate(models)]
    inputs = [path if is_url(values["data"]) else path.absolute() for path in find_files(values["data"])]
    with cache.job_folder("") as folder:
        job = Job("Evaluation", "models", evaluate_model, common, shards, folder.absolute(), inputs, durable=False)
        run_cached(job, cluster, choose_report())
        return [Evaluated(*json.loads((folder / f"{shard.name}.json").read_text("utf-8"))) for shard in shards]


def evaluate_model(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Evaluate one model in a worker, and write the result."""
    from firth.work.worker import enter

    enter(common["directory"])
    collected: list[Evaluated] = []
    token = _collected.set(collected)
    try:
        command = importlib.import_module(common["module"]).command
        command.callback.__wrapped__(models=(parameters["model"],), **common["values"])
    finally:
        _collected.reset(token)
    (folder / f"{parameters['number']}.json").write_text(json.dumps(collected[0]), "utf-8")
