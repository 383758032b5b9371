"""Text vectors with Ray Serve: `serve run ray_serve:app model=/shared/model replicas=4`.

A request is {"inputs": ["text", …]}, as for /embed of `firth serve`; the answer is a list of vectors. Each replica
loads the model once, and texts of concurrent requests are embedded together.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ray import serve
from starlette.requests import Request

import firth


@serve.deployment(ray_actor_options={"num_cpus": 1})  # with GPUs: {"num_gpus": 1}
class Embedder:
    """A replica with a model."""

    def __init__(self, model: str) -> None:
        self.embedder = firth.TextEmbedder(model)

    @serve.batch(max_batch_size=512, batch_wait_timeout_s=0.002)
    async def vectors(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of a batch, in a thread, so that the next requests are accepted meanwhile."""
        rows: Any = await asyncio.to_thread(self.embedder, texts)
        return list(rows.tolist())

    async def __call__(self, request: Request) -> list[list[float]]:
        """Answer a request."""
        inputs = (await request.json())["inputs"]
        return list(await asyncio.gather(*(self.vectors(text) for text in inputs)))


def app(settings: dict[str, str]) -> serve.Application:
    """Return the application; Ray Serve passes the settings of the command line."""
    return Embedder.options(num_replicas=int(settings.get("replicas", "1"))).bind(settings["model"])
