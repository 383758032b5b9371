"""Training of node vectors on a GPU, where the walks are generated too; only the graph and the tables are copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from firth.core.run import Run
from firth.data.graph import Graph
from firth.graphs.walk_training import NEGATIVE_EXPONENT, NodeModel, Training, WalkingMethod
from firth.kernels import predict as kernel
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.walks import Links, Walked
from firth.nets.walks_cuda import CudaWalks
from firth.training.epoch_loop import SliceResult
from firth.training.gpu_tables import GPULoop, GPUTables, device, seconds_between

STEPS_PER_LAUNCH = 1 << 23  # steps generated and trained per kernel launch


class CudaTraining(GPULoop, Training):
    """The training loop with walks and tables on the GPU."""

    def __init__(self, method: WalkingMethod, graph: Graph, run: Run, start: NodeModel | None) -> None:
        super().__init__(method, graph, run, start)
        chunk = self.chunk * method.walk_length
        self.chunks_per_launch = max(1, STEPS_PER_LAUNCH // chunk)  # chunks
        noise = kernel.noise_weights(self.counts, NEGATIVE_EXPONENT)
        self.gpu_tables = GPUTables(
            self.task, min(self.size, self.chunks_per_launch * chunk), self.counts, noise, method.learning_rate
        )
        self.walk_seconds = 0.0

    def new_walker(self, links: Links) -> Any:
        """Return the generator of random walks on the GPU."""
        return CudaWalks(links, device())

    def walks_on_device(self, first: NDArray[np.int32], number: NDArray[np.int32], seed: int) -> tuple[Tensor, Tensor]:
        """Generate one walk per start node; return ids and starts on the device."""
        p, q = self.method.bias()
        ids, starts = self.walker.walk(first, number, walk_length=self.method.walk_length, p=p, q=q, seed=seed)
        return ids, starts

    def walk(self, first: NDArray[np.int32], number: NDArray[np.int32], seed: int) -> Walked:
        """Generate walks and copy them to host memory."""
        ids, starts = self.walks_on_device(first, number, seed)
        return Walked(ids.cpu().numpy(), starts.cpu().numpy(), 0)

    def train(self, units: float, seed: int) -> SliceResult:
        """Train on the next `chunks_per_launch` chunks, regardless of `units`."""
        begin, chunks = self.progress.chunk, -(-self.walks_per_node // self.chunk)
        end = min(chunks, begin + self.chunks_per_launch)
        first, number = map(np.concatenate, zip(*(self.chunk_starts(c, seed) for c in range(begin, end)), strict=True))
        times = [self.gpu_tables.mark()]
        ids, starts = self.walks_on_device(first, number, seed)
        times.append(self.gpu_tables.mark())
        sampling_seed = mix((seed + (begin + 1) * GOLDEN) & MASK)
        tally = self.gpu_tables.train(ids, starts, 0, 0, len(ids), sampling_seed, self.rates(end - begin))
        self.walk_seconds += seconds_between(*times)
        self.progress.chunk = end
        return SliceResult(tally.loss, tally.pairs, end == chunks)

    def probe_loss(self) -> float | None:
        """Return None: the tables are on the GPU."""
        return None  # the tables are on the GPU

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of training, including those of the GPU."""
        return super().metrics() | self.gpu_tables.metrics() | {"walk_seconds": self.walk_seconds}
