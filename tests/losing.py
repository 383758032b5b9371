"""A Ray cluster that loses a node while it works."""

from __future__ import annotations

from typing import Any

from firth.core.report import Nothing


class Losing(Nothing):
    """Removes a node of the cluster at the first progress, and adds another one."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.lost = cluster, False

    def step(self, done: float, **metrics: float) -> None:
        if done and not self.lost:
            self.lost = True
            self.cluster.remove_node(next(iter(self.cluster.worker_nodes)), allow_graceful=False)
            self.cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
