"""The peer of serving.py: sentence-transformers behind FastAPI, with dynamic batches, as one would write it.

    python benchmarks/serving_peer.py MODEL PORT THREADS

POST /v1/embeddings has OpenAI's format. Requests wait in a queue; a thread takes all waiting ones, up to 256 texts, and
encodes them in batches of 32 sorted by length (the library's defaults), without gradients.
"""

from __future__ import annotations

import asyncio
import base64
import queue
import sys
import threading
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel
from pydantic_core import to_json
from sentence_transformers import SentenceTransformer

MOST = 256  # texts at once


class Asked(BaseModel):
    input: str | list[str]
    model: str
    encoding_format: str = "float"


Waiting = tuple[list[str], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


def settle(future: asyncio.Future[Any], encoded: Any) -> None:
    if not future.done():
        future.set_result(encoded)


def work(model: SentenceTransformer, waiting: queue.Queue[Waiting]) -> None:
    while True:
        jobs = [waiting.get()]
        while sum(len(job[0]) for job in jobs) < MOST and not waiting.empty():  # the only consumer
            jobs.append(waiting.get())
        rows = model.encode([text for job in jobs for text in job[0]], show_progress_bar=False)
        first = 0
        for texts, future, loop in jobs:
            loop.call_soon_threadsafe(settle, future, rows[first : first + len(texts)])
            first += len(texts)


def application(folder: str) -> FastAPI:
    model, waiting = SentenceTransformer(folder, device="cpu"), queue.Queue[Waiting]()
    threading.Thread(target=work, args=(model, waiting), daemon=True).start()
    app = FastAPI()

    @app.post("/v1/embeddings")
    async def embeddings(request: Asked) -> Response:
        texts = [request.input] if isinstance(request.input, str) else request.input
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        waiting.put((texts, future, loop))
        rows = await future
        if request.encoding_format == "base64":
            vectors: Any = [base64.b64encode(row.tobytes()).decode() for row in rows]
        else:
            vectors = rows.tolist()
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        answer = {"object": "list", "data": data, "model": request.model, "usage": usage}
        return Response(to_json(answer), media_type="application/json")

    return app


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    uvicorn.run(application(sys.argv[1]), port=int(sys.argv[2]), log_level="warning", access_log=False)
