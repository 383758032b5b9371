"""Flags of commands whose work is divided into shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import Flags, add_flags
from firth.core.errors import FirthError
from firth.core.processes import refuse_processes

if TYPE_CHECKING:
    from firth.work.executors import Cluster


CLUSTER_FLAGS: Flags = (
    ("--cluster", {"metavar": "WHERE", "help": "Where workers run: processes, ray, or ray://HOST:PORT."}),
    ("--workers", {"type": click.IntRange(1), "help": "Number of workers; by default one per core or GPU."}),
    ("--gpus-per-worker", {"type": click.FloatRange(0), "help": "GPUs of each worker, such as 1 or 0.5."}),
)
cluster_flags = add_flags(CLUSTER_FLAGS)
shard_flag = click.option("--shard", metavar="I/N", help="Compute only part I of N, for a job array, as in 3/64.")


def given_cluster(values: Mapping[str, Any], has_shards: bool) -> Cluster:
    """Return where the work runs. Output that is not written in shards is written by this process."""
    from firth.work.executors import Cluster, parse_part

    given = [name for name in ("cluster", "workers", "gpus_per_worker", "shard") if values.get(name) is not None]
    if given and not has_shards:
        raise FirthError(
            "conflicting_options",
            "{option} needs a folder as output, which is written in shards.",
            option=flag(given[0]),
        )
    if given:
        refuse_processes(flag(given[0]))
    if not values["cluster"] and (workers := [name for name in given if name not in ("cluster", "shard")]):
        raise FirthError(
            "missing_option",
            "{option} needs {missing} too, which says where the workers run: processes or ray.",
            option=flag(workers[0]),
            missing="--cluster",
        )
    return Cluster(
        values["cluster"] or "",
        values["workers"] or 0,
        values["gpus_per_worker"] or 0,
        parse_part(values["shard"]) if "shard" in given else None,
    )


def flag(name: str) -> str:
    """Return the flag of a parameter."""
    return "--" + name.replace("_", "-")
