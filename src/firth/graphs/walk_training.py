"""Training of node vectors on random walks: each walk is a sentence, each node a word (Perozzi et al. 2014).

Walks are generated in chunks in memory, passed to the skip-gram kernel and discarded. A walk depends only on the seed,
the epoch and its start node, so a resumed run generates the same walks as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.walks import Links, NativeWalks, Walked
from firth.training.epoch_loop import Loop, Progress, SliceResult
from firth.training.gpu_choice import on_gpu
from firth.training.network_options import networks
from firth.words.window_training import LEAST_RATE, MOST_STREAMS, MOST_WINDOWS, PROBED

NEGATIVE_EXPONENT = 0.75  # as in word2vec
CHUNK_STEPS = 1 << 18  # steps of walks trained in one kernel call
WINDOWS_PER_GROUP = 2  # adjacent windows of a walk that share negative samples
MIN_NODES_TO_GROUP = 5000  # in smaller graphs windows are not grouped
NODES_PER_STREAM = 1000  # of deterministic runs: with fewer nodes, streams would often change the same rows


class NodeModel(Model):
    """Node vectors. `tables["contexts"]` has the output vectors, unless the loss is hierarchical."""

    def __init__(
        self, method: Method, keys: list[str] | Parts, nodes: Matrix, outputs: Matrix, training: Mapping[str, Any]
    ) -> None:
        self.method, self.training, self.outputs = method, training, outputs
        self._keys = keys  # stored keys are read on first use
        self.vectors = Vectors(self._names, nodes, missing="the graph has no such node")

    def _names(self) -> list[str]:
        keys = self._keys
        if isinstance(keys, Parts):
            with keys.reading():
                self._keys = keys = check_texts_of(keys.documents["nodes"]["keys"], "keys of nodes.json")
        return keys

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The node vectors and, unless the loss is hierarchical, the output vectors."""
        if len(self.outputs) != len(self.vectors):  # rows of a Huffman tree's inner nodes, not of graph nodes
            return {"nodes": self.vectors}
        return {"nodes": self.vectors, "contexts": Vectors(self._names, self.outputs)}

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        return Parts({"nodes": self.vectors.matrix, "outputs": self.outputs}, {"nodes": {"keys": self._names()}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> NodeModel:
        """Return the saved model, checked."""
        check_arrays(parts.arrays, nodes="float nodes dim", outputs="float outputs dim")
        return cls(method, parts, parts.arrays["nodes"], parts.arrays["outputs"], training)

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.vectors):,} nodes × {self.vectors.dim}"


Walks = TypeVar("Walks", bound="WalkingMethod")


@dataclass(frozen=True, kw_only=True)
class WalkingMethod(Method):
    """Options and `fit` of DeepWalk and Node2Vec."""

    limits: ClassVar[tuple[str, ...]] = (
        "Nodes and edges added after training are unknown: a new node has no vector.",
        "Only the edges are known, not attributes of nodes or edges other than weights.",
    )
    model: ClassVar[type[NodeModel]] = NodeModel
    data = Graph
    distributed: ClassVar[str] = "walks and training, where each worker has a copy of the tables and the graph"
    trains_copies: ClassVar[bool] = True

    dim: int = option(128, "length of the vectors", low=1, high=65536)
    walks_per_node: int = option(10, "walks that start at each node", low=1, high=1_000_000)
    walk_length: int = option(80, "nodes in a walk", low=2, high=1_000_000)
    window: int = option(10, "nodes each side", low=1, high=kernel.MAX_WINDOW)
    loss: str = option(
        "negative", "negative sampling, or hierarchical softmax (Huffman tree)", choices=("negative", "hierarchical")
    )
    negatives: int | None = option(
        None,
        "negative samples per window, or per pair (loss=negative); none = 10 per window, 5 per pair",
        low=1,
        high=1000,
    )
    share_negatives: bool | None = option(
        None, "share negative samples within a window; off: draw them per pair; none = on from 5,000 nodes"
    )
    subsample: float = option(
        0.0, "subsample nodes that make up more than this share of the steps; 0 = off", low=0, high=1
    )
    epochs: int = option(1, "passes, each with new walks", low=1)
    learning_rate: float = option(0.025, "initial learning rate; decays linearly to almost 0", low=1e-9, high=100)

    def check_run(self, run: Run) -> None:
        """Refuse a device on which this method cannot run."""
        if run.cluster:
            from firth.training.replicas import check_replicas

            check_replicas(run)
        else:
            on_gpu(self, run, 0)

    def bias(self) -> tuple[float, float]:
        """Return p and q of the walks."""
        return 1.0, 1.0

    def sized(self: Walks, nodes: int, device: str) -> Walks:
        """Return this method with unset options chosen by the size of the graph.

        In a small graph, negative samples shared by a window update the same few nodes too often, and labels are
        predicted worse from the vectors (benchmarks/small_data.py). Ten shared samples are worth five per pair.
        """
        method = self.resolved(share_negatives=nodes >= MIN_NODES_TO_GROUP or device == "cuda")
        return method.resolved(negatives=10 if method.share_negatives else 5)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> NodeModel:
        """Train on a graph, or on anything `Graph` accepts: a file, edges, a sparse matrix, a networkx graph.

        With `start`, training continues from that model: its nodes begin with their vectors, and new nodes are added.
        """
        name = type(self).__name__
        if start is not None and not (isinstance(start, NodeModel) and start.vectors.dim == self.dim):
            raise FirthError(
                "incompatible_start",
                "start must be a node model with dim={dim}; got {got!r}.",
                dim=self.dim,
                got=start,
            )
        began = time.monotonic()
        graph = Graph.of(data)
        isolated = int(graph.isolated().sum())
        if len(graph) - isolated < 2:
            raise FirthError(
                "too_few", "{method} needs at least two nodes that have an edge; got {got!r}.", method=name, got=graph
            )
        for note in graph.notes():
            run.report.note(*note)
        if isolated:
            run.report.note(f"{isolated:,} nodes have no edges; their vectors are zero.", "isolated_nodes")
        method, training_class = self.sized(len(graph), run.device), Training
        if run.cluster:
            from firth.graphs.walk_replicas import ReplicatedTraining

            training_class = ReplicatedTraining
        elif on_gpu(method, run, self.epochs * self.walks_per_node * self.walk_length * len(graph)):
            with networks():
                from firth.graphs.walk_training_gpu import CudaTraining
            training_class = CudaTraining
        training = training_class(method, graph, run, start)
        preparing = time.monotonic() - began
        metrics = training.go() | {
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
        return NodeModel(method, training.keys, nodes, outputs, metrics)


@dataclass
class WalkProgress(Progress):
    """Progress within an epoch."""

    chunk: int = 0  # finished chunks


class WalksInChunks:
    """The walks of an epoch in chunks, and the kernel for each: for the training loop and for workers of a cluster."""

    method: WalkingMethod
    run: Run
    walker: Any  # `NativeWalks`
    start_nodes: NDArray[np.int32]
    walks_per_node: int  # an epoch
    chunk: int  # walks
    permuted: tuple[tuple[int, int], NDArray[np.int32]]  # seed and number of a permutation of the start nodes
    task: kernel.Task  # without walks

    def walk(self, start_nodes: NDArray[np.int32], number: NDArray[np.int32], seed: int) -> Walked:
        """Generate one walk per start node."""
        p, q = self.method.bias()
        walks: Walked = self.walker.walk(
            start_nodes, number, walk_length=self.method.walk_length, p=p, q=q, seed=seed, threads=self.run.cores
        )
        return walks

    def chunk_starts(self, chunk: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the start node and number of each walk of a chunk: one random permutation of all nodes per round."""
        begin, end = chunk * self.chunk, min(self.walks_per_node, (chunk + 1) * self.chunk)
        nodes = len(self.start_nodes)
        start_nodes, number = [], []
        for round_number in range(begin // nodes, -(-end // nodes)):
            if self.permuted[0] != (seed, round_number):
                self.permuted = (
                    (seed, round_number),
                    np.random.default_rng([seed, round_number]).permutation(self.start_nodes),
                )
            start_nodes.append(self.permuted[1][max(0, begin - round_number * nodes) : end - round_number * nodes])
            number.append(np.full(len(start_nodes[-1]), round_number, np.int32))
        return np.concatenate(start_nodes), np.concatenate(number)

    def trainer(self, walked: Walked) -> Trainer:
        """Return the skip-gram kernel for these walks."""
        return kernel.native_trainer(replace(self.task, ids=walked.ids, starts=walked.starts))


def chunk_seed(seed: int, chunk: int) -> int:
    """Return the seed of a chunk, in which positions count from 0."""
    return mix((seed + (chunk + 1) * GOLDEN) & MASK)


class Training(WalksInChunks, Loop):
    """The training loop: tables, walks and their chunks."""

    unit: ClassVar[str] = "steps"
    chunk_steps: ClassVar[int] = CHUNK_STEPS
    progress: WalkProgress
    method: WalkingMethod

    def __init__(self, method: WalkingMethod, graph: Graph, run: Run, start: NodeModel | None) -> None:
        self.continued = start is not None
        #: Nodes with outgoing edges; other nodes occur only on walks that start elsewhere.
        self.start_nodes = np.flatnonzero(np.diff(graph.starts)).astype(np.int32)
        self.walks_per_node = len(self.start_nodes) * method.walks_per_node  # an epoch
        super().__init__(method, graph.fingerprint(), run, self.walks_per_node * method.walk_length)
        self.chunk = max(1, self.chunk_steps // method.walk_length)  # walks
        self.links = Links(graph.starts, graph.neighbors, graph.weights, graph.directed)
        self.walker = self.new_walker(self.links)
        #: The nodes of the graph, then those that only `start` has.
        self.keys = list(dict.fromkeys([*graph.keys, *start.vectors.keys])) if start else graph.keys
        self.counts = counts = np.zeros(len(self.keys), np.int64)
        counts[: len(graph)] = np.maximum(self.visits(len(graph)), ~graph.isolated())
        self.inputs, self.outputs = first_tables(method, self.keys, counts, run.seed, start)
        assert method.negatives is not None and method.share_negatives is not None
        self.task = kernel.Task(
            ids=np.zeros(0, np.int32),
            starts=np.zeros(1, np.int64),
            inputs=self.inputs,
            outputs=self.outputs,
            keep=kernel.keep_thresholds(counts, method.subsample),
            noise=kernel.alias_table(kernel.noise_weights(counts, NEGATIVE_EXPONENT)),
            paths=kernel.huffman_paths(counts) if method.loss == "hierarchical" else kernel.no_paths(),
            loss=method.loss,
            window=method.window,
            negatives=method.negatives,
            shared=method.share_negatives,
            group=WINDOWS_PER_GROUP if method.share_negatives and len(self.keys) >= MIN_NODES_TO_GROUP else 1,
        )
        self.streams = max(1, min(MOST_STREAMS, len(graph) // NODES_PER_STREAM))
        self.permuted: tuple[tuple[int, int], NDArray[np.int32]] = (0, -1), self.start_nodes
        self.progress = WalkProgress()
        if run.budget and run.deterministic:
            run.report.note(
                "A run with a time budget is not deterministic: the number of walks it completes varies.",
                "nondeterministic_budget",
            )

    @property
    def tables(self) -> dict[str, kernel.Table]:
        """The input and output vectors."""
        return {"inputs": self.inputs, "outputs": self.outputs}

    def position(self) -> int:
        """Return the number of steps finished in this epoch."""
        done: int = self.progress.chunk * self.chunk * self.method.walk_length
        return min(self.size, done)

    def is_inside(self) -> bool:
        """Return whether the current chunk is within the epoch."""
        return self.progress.chunk * self.chunk < self.walks_per_node

    def new_walker(self, links: Links) -> Any:
        """Return the generator of random walks."""
        return NativeWalks(links, self.run.cores)

    def visits(self, nodes: int) -> NDArray[np.int64]:
        """Count the visits of each node by one walk from every node, for negative sampling and the Huffman tree.

        Degrees give the visit frequencies only for p = q = 1; one extra walk per node estimates them for any p and q.
        """
        counts = np.zeros(nodes, np.int64)
        for begin in range(0, len(self.start_nodes), self.chunk):
            start_nodes = self.start_nodes[begin : begin + self.chunk]
            walked = self.walk(start_nodes, np.full(len(start_nodes), -1, np.int32), self.run.seed)
            counts += np.bincount(walked.ids, minlength=nodes)
        return counts

    # ---- training ----

    def train(self, units: float, seed: int) -> SliceResult:
        """Generate and train on whole chunks of walks."""
        tally, chunks = kernel.Tally(0.0, 0, 0), -(-self.walks_per_node // self.chunk)
        for _ in range(max(1, round(units / (self.chunk * self.method.walk_length)))):
            tally += self.train_chunk(self.progress.chunk, seed)
            self.progress.chunk += 1
            if self.progress.chunk == chunks:
                break
        return SliceResult(tally.loss, tally.pairs, self.progress.chunk == chunks)

    def probe_loss(self) -> float | None:
        """Return the loss on some extra walks without training, or None when continuing from a model."""
        if self.continued:
            return None  # the loss of a trained model need not fall further
        start_nodes = self.start_nodes[:: -(-len(self.start_nodes) * self.method.walk_length // PROBED)]
        walked = self.walk(start_nodes, np.full(len(start_nodes), -1, np.int32), self.run.seed)
        loss, pairs, _ = self.trainer(walked).racing(0, len(walked.ids), self.run.seed, 0.0, 0.0, 1)
        return loss / max(1, pairs)

    def train_chunk(self, chunk: int, seed: int) -> tuple[float, int, int]:
        """Generate and train on one chunk; return its loss and counts."""
        walked = self.walk(*self.chunk_starts(chunk, seed), seed)
        trainer = self.trainer(walked)
        seed = chunk_seed(seed, chunk)
        if not self.run.deterministic:
            return trainer.racing(0, len(walked.ids), seed, *self.rates(), self.run.cores)
        starts = trainer.stream_starts(self.streams)
        rounds = -(-int(np.diff(starts).max()) // MOST_WINDOWS)
        cursors = np.array(starts[:-1], np.int64)
        return trainer.ordered(cursors, MOST_WINDOWS, rounds, seed, *self.rates(), self.run.cores)

    def rates(self, chunks: int = 1) -> tuple[float, float]:
        """Return the learning rate at the first and the last step of the next chunks.

        Under a time budget the rate follows the share of time or of steps, whichever is larger.
        """
        total, length = self.method.epochs * self.size, chunks * self.chunk * self.method.walk_length
        shares = [min(1.0, (self.done() + steps) / total) for steps in (0, length)]
        if self.run.budget:
            shares = [max(share, min(1.0, self.progress.seconds / self.run.budget)) for share in shares]
        first, last = (self.method.learning_rate * (1 - (1 - LEAST_RATE) * share) for share in shares)
        return first, last

    def end_epoch(self) -> dict[str, float]:
        """Reset the position for the next epoch."""
        self.progress.chunk = 0
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of training, with the speed in steps per second."""
        progress = self.progress
        speed = progress.words / progress.seconds if progress.seconds else 0.0
        return super().metrics() | {"steps_per_second": speed}


def first_tables(
    method: WalkingMethod, keys: list[str], counts: NDArray[np.int64], seed: int, start: NodeModel | None
) -> tuple[kernel.Table, kernel.Table]:
    """Return the initial tables: inputs uniform in ±1/(2·dim), or zero for unvisited nodes; outputs zero.

    Nodes of `start` begin with its vectors.
    """
    nodes, dim = len(keys), method.dim
    inputs = kernel.new_table(nodes, dim)
    inputs[:, :dim] = (np.random.default_rng(seed).random((nodes, dim), dtype=np.float32) - 0.5) / dim
    inputs[counts == 0] = 0
    outputs = kernel.new_table(max(1, nodes - 1) if method.loss == "hierarchical" else nodes, dim)
    if start is not None:
        rows = {key: row for row, key in enumerate(keys)}
        start_rows = [rows[key] for key in start.vectors.keys]
        inputs[start_rows, :dim] = start.vectors.matrix
        if len(start.outputs) == len(start.vectors) and method.loss != "hierarchical":
            outputs[start_rows, :dim] = start.outputs  # inner nodes of a Huffman tree differ between graphs
    return inputs, outputs
