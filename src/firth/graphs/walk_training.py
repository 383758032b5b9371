"""Learning vectors of nodes from random walks: each walk is a sentence, each node a word (Perozzi et al. 2014).

Walks are made chunk by chunk in memory and go straight to the skip-gram kernel; none is kept. Which walks a chunk
holds and how each of them goes depends on seed, epoch and node alone, so a run that goes on from a checkpoint makes the
walks that an unbroken one would have made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_texts_of
from firth.core.vectors import Matrix, Vectors
from firth.data.graph import Graph
from firth.kernels import predict as kernel
from firth.kernels._native import Trainer
from firth.kernels.predict_twin import GOLDEN, MASK, mix
from firth.kernels.walks import Links, NativeWalks, Walked
from firth.training.epoch_loop import Loop, Progress, Slice
from firth.training.gpu_choice import on_gpu
from firth.training.network_options import learner
from firth.words.window_training import LEAST_RATE, MOST_STREAMS, MOST_WINDOWS, PROBED

NOISE_EXPONENT = 0.75  # as in word2vec
CHUNK = 1 << 18  # steps of walks trained in one go
GROUP, GROUPED = 2, 5000  # steps of a walk whose windows share negative samples, from so many nodes on
NODES_A_STREAM = 1000  # of deterministic runs: with fewer nodes two streams would change the same rows all the time


class NodeModel(Model):
    """Nodes with their vectors; `tables["contexts"]` are the output vectors, where the loss gives one to each node."""

    def __init__(
        self, method: Method, keys: list[str] | Parts, nodes: Matrix, outputs: Matrix, training: Mapping[str, Any]
    ) -> None:
        self.method, self.training, self.outputs = method, training, outputs
        self._keys = keys  # stored parts are read at the first use
        self.vectors = Vectors(self._names, nodes, missing="the graph did not have this node")

    def _names(self) -> list[str]:
        found = self._keys
        if isinstance(found, Parts):
            with found.reading():
                self._keys = found = check_texts_of(found.documents["nodes"]["keys"], "keys of nodes.json")
        return found

    @property
    def tables(self) -> Mapping[str, Vectors]:
        if len(self.outputs) != len(self.vectors):  # inner nodes of a tree are nobody's vectors
            return {"nodes": self.vectors}
        return {"nodes": self.vectors, "contexts": Vectors(self._names, self.outputs)}

    def parts(self) -> Parts:
        return Parts({"nodes": self.vectors.matrix, "outputs": self.outputs}, {"nodes": {"keys": self._names()}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> NodeModel:
        check_arrays(parts.arrays, nodes="float nodes dim", outputs="float outputs dim")
        return cls(method, parts, parts.arrays["nodes"], parts.arrays["outputs"], training)

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.vectors):,} nodes × {self.vectors.dim}"


Walks = TypeVar("Walks", bound="WalkingMethod")


@dataclass(frozen=True, kw_only=True)
class WalkingMethod(Method):
    """What DeepWalk and Node2Vec have in common."""

    model: ClassVar[type[Model]] = NodeModel
    kind: ClassVar[str] = "graph"

    dim: int = option(128, "length of the vectors", low=1, high=65536)
    walks_per_node: int = option(10, "walks that start at each node", low=1, high=1_000_000)
    walk_length: int = option(80, "nodes in a walk", low=2, high=1_000_000)
    window: int = option(10, "nodes each side", low=1, high=kernel.MAX_WINDOW)
    loss: str = option("negative", "noise nodes, or a Huffman tree", choices=("negative", "hierarchical"))
    negatives: int | None = option(
        None,
        "negative samples for each window, or each pair (loss=negative); none = 10 a window, 5 a pair",
        low=1,
        high=1000,
    )
    share_negatives: bool | None = option(
        None, "one draw of negative samples for a whole window; off: for each pair; none = on from 5,000 nodes"
    )
    subsample: float = option(
        0.0, "often visited nodes are thinned out above this share of the steps; 0 = off", low=0, high=1
    )
    epochs: int = option(1, "passes, each with walks of its own", low=1)
    learning_rate: float = option(0.025, "at the start; it falls to nothing linearly", low=1e-9, high=100)

    def check_run(self, run: Run) -> None:
        on_gpu(self, run, 0)

    def bias(self) -> tuple[float, float]:
        """p and q of the walks."""
        return 1.0, 1.0

    def sized(self: Walks, nodes: int, device: str) -> Walks:
        """This method with the options that were left out chosen by the size of the graph. In a small one, a negative
        sample shared by a whole window hits the same few nodes again and again: labels are read worse from the vectors
        (benchmarks/small_data.py). Where samples are shared, ten do what five for each pair do."""
        method = self.resolved(share_negatives=nodes >= GROUPED or device == "cuda")
        return method.resolved(negatives=10 if method.share_negatives else 5)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> NodeModel:
        """Learns from a graph (or a file, edges, a sparse matrix, a networkx graph). With `start`, goes on from that
        model: its nodes keep their vectors, new nodes are added."""
        name = type(self).__name__
        if start is not None and not (isinstance(start, NodeModel) and start.vectors.dim == self.dim):
            raise FirthError(
                "incompatible_start",
                "start must be a model of nodes with dim={dim}; got {got!r}.",
                dim=self.dim,
                got=start,
            )
        began = time.monotonic()
        graph = Graph.of(data)
        isolated = int(graph.isolated().sum())
        if len(graph) - isolated < 2:
            raise FirthError(
                "too_few", "{name} needs at least two nodes with an edge; got {got!r}.", name=name, got=graph
            )
        for note in graph.notes():
            run.report.note(note)
        if isolated:
            run.report.note(f"{isolated:,} nodes have no edge; their vectors are zero.")
        method, chosen = self.sized(len(graph), run.device), Training
        if on_gpu(method, run, self.epochs * self.walks_per_node * self.walk_length * len(graph)):
            chosen = learner("graphs.walk_training_gpu").CudaTraining
        training = chosen(method, graph, run, start)
        preparing = time.monotonic() - began
        figures = training.go() | {
            "preparing_seconds": preparing,
            "nodes": len(graph),
            "edges": graph.edges,
            "isolated": isolated,
            "data": graph.fingerprint(),
            "seed": run.seed,
            "deterministic": run.deterministic,
            "threads": run.cores,
        }
        nodes, outputs = (np.ascontiguousarray(table[:, : self.dim]) for table in (training.inputs, training.outputs))
        return NodeModel(method, training.keys, nodes, outputs, figures)


@dataclass
class Walking(Progress):
    """Where in an epoch a run stands."""

    chunk: int = 0  # chunks done


class Training(Loop):
    """The tables, the walks and the loop over them."""

    unit: ClassVar[str] = "steps"
    progress: Walking

    def __init__(self, method: WalkingMethod, graph: Graph, run: Run, start: NodeModel | None) -> None:
        #: Where walks start: a node that no link leads away from is met by walks of others alone.
        self.continued = start is not None
        self.first = np.flatnonzero(np.diff(graph.starts)).astype(np.int32)
        self.walks_per_node = len(self.first) * method.walks_per_node  # an epoch
        super().__init__(method, graph.fingerprint(), run, self.walks_per_node * method.walk_length)
        self.chunk = max(1, CHUNK // method.walk_length)  # walks
        self.walker = self.new_walker(Links(graph.starts, graph.neighbors, graph.weights, graph.directed))
        #: The graph's nodes, then those that only the model to go on from had.
        self.keys = list(dict.fromkeys([*graph.keys, *start.vectors.keys])) if start else graph.keys
        self.counts = counts = np.zeros(len(self.keys), np.int64)
        counts[: len(graph)] = np.maximum(self.visits(len(graph)), ~graph.isolated())
        self.inputs, self.outputs = first_tables(method, self.keys, counts, run.seed, start)
        self.sampling: dict[str, Any] = {
            "keep": kernel.keep_thresholds(counts, method.subsample),
            "noise": kernel.alias_table(kernel.noise_weights(counts, NOISE_EXPONENT)),
            "paths": kernel.huffman_paths(counts) if method.loss == "hierarchical" else kernel.no_paths(),
        }
        self.streams = max(1, min(MOST_STREAMS, len(graph) // NODES_A_STREAM))
        self.permuted: tuple[tuple[int, int], NDArray[np.int32]] = (0, -1), self.first
        self.progress = Walking()
        if run.budget and run.deterministic:
            run.report.note("A budget of seconds ends a run at another walk each time: it can't be deterministic.")

    @property
    def tables(self) -> dict[str, kernel.Table]:
        return {"inputs": self.inputs, "outputs": self.outputs}

    def position(self) -> int:
        done: int = self.progress.chunk * self.chunk * self.method.walk_length
        return min(self.size, done)

    def is_inside(self) -> bool:
        return self.progress.chunk * self.chunk < self.walks_per_node

    # ---- walks ----

    def new_walker(self, links: Links) -> Any:
        return NativeWalks(links, self.run.cores)

    def walk(self, first: NDArray[np.int32], number: NDArray[np.int32], seed: int) -> Walked:
        p, q = self.method.bias()
        found: Walked = self.walker.walk(
            first, number, walk_length=self.method.walk_length, p=p, q=q, seed=seed, threads=self.run.cores
        )
        return found

    def visits(self, nodes: int) -> NDArray[np.int64]:
        """How often each node is met by one walk from every node: what noise nodes and the tree go by. Degrees would
        tell it for p = q = 1 alone; one walk more a node tells it for all."""
        counts = np.zeros(nodes, np.int64)
        for begin in range(0, len(self.first), self.chunk):
            first = self.first[begin : begin + self.chunk]
            walked = self.walk(first, np.full(len(first), -1, np.int32), self.run.seed)
            counts += np.bincount(walked.ids, minlength=nodes)
        return counts

    def chunk_starts(self, chunk: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Start node and number of each walk of a chunk: all nodes in random order, then all in another, …"""
        begin, end = chunk * self.chunk, min(self.walks_per_node, (chunk + 1) * self.chunk)
        nodes = len(self.first)
        first, number = [], []
        for turn in range(begin // nodes, -(-end // nodes)):
            if self.permuted[0] != (seed, turn):
                self.permuted = (seed, turn), np.random.default_rng([seed, turn]).permutation(self.first)
            first.append(self.permuted[1][max(0, begin - turn * nodes) : end - turn * nodes])
            number.append(np.full(len(first[-1]), turn, np.int32))
        return np.concatenate(first), np.concatenate(number)

    # ---- training ----

    def train(self, units: float, seed: int) -> Slice:
        """Whole chunks: each is made, trained on and forgotten."""
        tally, chunks = kernel.Tally(0.0, 0, 0), -(-self.walks_per_node // self.chunk)
        for _ in range(max(1, round(units / (self.chunk * self.method.walk_length)))):
            tally += self.train_chunk(self.progress.chunk, seed)
            self.progress.chunk += 1
            if self.progress.chunk == chunks:
                break
        return Slice(tally.loss, tally.pairs, self.progress.chunk == chunks)

    def trainer(self, walked: Walked) -> Trainer:
        method = self.method
        task = kernel.Task(
            ids=walked.ids,
            starts=walked.starts,
            inputs=self.inputs,
            outputs=self.outputs,
            loss=method.loss,
            window=method.window,
            negatives=method.negatives,
            shared=method.share_negatives,
            group=GROUP if method.share_negatives and len(self.keys) >= GROUPED else 1,
            **self.sampling,
        )
        return kernel.native_trainer(task)

    def probe_loss(self) -> float | None:
        if self.continued:
            return None  # a trained model may have nothing more to learn
        first = self.first[:: -(-len(self.first) * self.method.walk_length // PROBED)]
        walked = self.walk(first, np.full(len(first), -1, np.int32), self.run.seed)
        loss, pairs, _ = self.trainer(walked).racing(0, len(walked.ids), self.run.seed, 0.0, 0.0, 1)
        return loss / max(1, pairs)

    def train_chunk(self, chunk: int, seed: int) -> tuple[float, int, int]:
        walked = self.walk(*self.chunk_starts(chunk, seed), seed)
        trainer = self.trainer(walked)
        seed = mix((seed + (chunk + 1) * GOLDEN) & MASK)  # positions count from 0 in each chunk
        if not self.run.deterministic:
            return trainer.racing(0, len(walked.ids), seed, *self.rates(), self.run.cores)
        starts = trainer.stream_starts(self.streams)
        rounds = -(-int(np.diff(starts).max()) // MOST_WINDOWS)
        cursors = np.array(starts[:-1], np.int64)
        return trainer.ordered(cursors, MOST_WINDOWS, rounds, seed, *self.rates(), self.run.cores)

    def rates(self, chunks: int = 1) -> tuple[float, float]:
        """The learning rate at the first and the last step of the next chunks. Under a budget that binds, the share of
        time spent takes the place of the share of steps."""
        total, length = self.method.epochs * self.size, chunks * self.chunk * self.method.walk_length
        shares = [min(1.0, (self.done() + more) / total) for more in (0, length)]
        if self.run.budget:
            shares = [max(share, min(1.0, self.progress.seconds / self.run.budget)) for share in shares]
        first, last = (self.method.learning_rate * (1 - (1 - LEAST_RATE) * share) for share in shares)
        return first, last

    def end_epoch(self) -> dict[str, float]:
        self.progress.chunk = 0
        return {}

    def figures(self) -> dict[str, Any]:
        progress = self.progress
        speed = progress.words / progress.seconds if progress.seconds else 0.0
        return super().figures() | {"steps_per_second": speed}


def first_tables(
    method: WalkingMethod, keys: list[str], counts: NDArray[np.int64], seed: int, start: NodeModel | None
) -> tuple[kernel.Table, kernel.Table]:
    """Inputs drawn from ±1/(2·dim), zero for nodes that are never met; outputs zero; the rows of `start` where there
    are any."""
    nodes, dim = len(keys), method.dim
    inputs = kernel.new_table(nodes, dim)
    inputs[:, :dim] = (np.random.default_rng(seed).random((nodes, dim), dtype=np.float32) - 0.5) / dim
    inputs[counts == 0] = 0
    outputs = kernel.new_table(max(1, nodes - 1) if method.loss == "hierarchical" else nodes, dim)
    if start is not None:
        rows = {key: row for row, key in enumerate(keys)}
        places = [rows[key] for key in start.vectors.keys]
        inputs[places, :dim] = start.vectors.matrix
        if len(start.outputs) == len(start.vectors) and method.loss != "hierarchical":
            outputs[places, :dim] = start.outputs  # a tree's nodes mean something else in a new tree
    return inputs, outputs
