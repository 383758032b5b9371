"""Node vectors trained by several workers (`training.replicas`): each generates and trains walks of ranges of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.report import Nothing
from firth.core.run import Run
from firth.core.storage import read_arrays, write_arrays
from firth.data.graph import Graph
from firth.graphs.walk_training import LEAST_RATE, NodeModel, Training, WalkingMethod, WalksInChunks, chunk_seed
from firth.kernels import predict as kernel
from firth.kernels.walks import Links, NativeWalks
from firth.training.replicas import ReplicaLoop, Step, new_tables, rate_factor, row_frequencies, train_round
from firth.training.task_files import read_task, write_task

CHUNK_STEPS = 1 << 16  # steps of walks that a worker trains between two exchanges
ROUND_STEPS = 64  # chunks of each worker between two exchanges of all rows


# ---- in a worker ----


class WalkReplica(WalksInChunks):
    """A copy of the tables, trained on walks; a worker generates the walks of its chunks."""

    def __init__(self, common: Mapping[str, Any]) -> None:
        folder = Path(common["folder"])
        self.method = registry.method(common["method"])(**common["options"])  # type: ignore[assignment]
        self.run = Run(report=Nothing())
        arrays = read_arrays(folder / "graph.safetensors")
        links = Links(arrays["starts"], arrays["neighbors"], arrays.get("weights"), common["directed"])
        self.walker = NativeWalks(links, self.run.cores)
        self.start_nodes, self.walks_per_node, self.chunk = arrays["start_nodes"], common["walks"], common["chunk"]
        self.permuted = (0, -1), self.start_nodes
        self.tables = new_tables(common["tables"])
        nothing = {"ids": np.zeros(0, np.int32), "starts": np.zeros(1, np.int64)}
        self.task = read_task(folder / "task.safetensors", common["task"], **self.tables, **nothing)

    def train(self, step: Step, seed: int, threads: int) -> kernel.Tally:
        """Train chunks of walks."""
        tally = kernel.Tally(0.0, 0, 0)
        for chunk in range(step.first, step.last):
            walked = self.walk(*self.chunk_starts(chunk, seed), seed)
            trainer = self.trainer(walked)
            tally += trainer.racing(0, len(walked.ids), chunk_seed(seed, chunk), *step.rates, threads)
        return tally


_replicas: dict[str, WalkReplica] = {}  # the replica of the current job


def train_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Train a worker's part of a round; a job's function."""
    if common["folder"] not in _replicas:
        _replicas.clear()
        _replicas[common["folder"]] = WalkReplica(common)
    return train_round(_replicas[common["folder"]], common, parameters, folder)


# ---- in the driver ----


class ReplicatedTraining(ReplicaLoop, Training):
    """The training loop of DeepWalk and Node2Vec on a cluster."""

    function: ClassVar[Any] = staticmethod(train_shard)
    chunk_steps: ClassVar[int] = CHUNK_STEPS
    part_units = 1
    round_steps = ROUND_STEPS

    def __init__(self, method: WalkingMethod, graph: Graph, run: Run, start: NodeModel | None) -> None:
        self.run = run
        self.check_room(2 * len(graph), method.dim)
        super().__init__(method, graph, run, start)

    def write_task(self, folder: Path) -> dict[str, Any]:
        """Write what workers need."""
        links = self.links
        arrays = {"starts": links.starts, "neighbors": links.neighbors, "start_nodes": self.start_nodes}
        write_arrays(
            folder / "graph.safetensors", arrays | ({} if links.weights is None else {"weights": links.weights})
        )
        return {
            "method": self.method.method_name(),
            "options": self.method.options(),
            "directed": links.directed,
            "walks": self.walks_per_node,
            "chunk": self.chunk,
            "tables": {name: table.shape for name, table in self.arrays.items()},
            "task": write_task(self.task, folder / "task.safetensors"),
        }

    def frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return how often each row is updated."""
        return row_frequencies(self.counts, self.task)

    def units_between(self, first: int, last: int) -> float:
        """Return the steps of walks in chunks."""
        return (last - first) * self.chunk * self.method.walk_length

    def rates_of(self, first: int, last: int) -> tuple[float, float]:
        """Return the learning rates at the first and last step of these chunks."""
        total = self.epochs * self.size
        shares = [(self.progress.epoch * self.size + self.units_between(0, chunk)) / total for chunk in (first, last)]
        rate = self.method.learning_rate * rate_factor(self.workers)
        begin, end = (rate * (1 - (1 - LEAST_RATE) * min(1.0, share)) for share in shares)
        return begin, end

    def next_part(self) -> int:
        """Return the next chunk."""
        return self.progress.chunk

    def last_part(self) -> int:
        """Return the number of chunks."""
        return -(-self.walks_per_node // self.chunk)

    def move_to(self, part: int) -> None:
        """Record the position."""
        self.progress.chunk = part

    def identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on; its position counts the chunks of a cluster."""
        return super().identity() | {"cluster": True}
