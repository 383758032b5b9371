"""POST /search: search in indexes by similarity, by words or both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from firth.server.bodies import PROMPT, Body, Direct, Integer, json_response, parse_body, route_docs
from firth.server.embedding import Embedding
from firth.server.errors import RequestError
from firth.server.models import Models
from firth.server.reading import EncoderReader
from firth.server.settings import Settings

router = APIRouter(tags=["search"], route_class=Direct)


class SearchBody(Body):
    """A query, a filter and the way of searching."""

    query: Annotated[str, Field(min_length=1)] | Annotated[list[float], Field(min_length=1)] = Field(
        description="A text, or a vector with the dimension of the index (mode vector)."
    )
    index: str | None = Field(None, description="Name of the index; the first by default.")
    k: Integer = Field(10, ge=1, le=1000)
    where: str | None = Field(
        None,
        description='Filter, such as year >= 2020 and language in ("en", "de"); at most 65,536 characters.',
    )
    mode: Literal["vector", "words", "both"] | None = Field(
        None, description="Default: both for a text, vector for a vector."
    )
    truncate: bool | None = Field(None, description="Truncate a text that exceeds the model's maximum length.")
    prompt_name: str | None = Field(
        None, description="Name of a prompt of the model; by default the model's prompt for queries."
    )
    prompt: str | None = PROMPT


class OneHit(BaseModel):
    """A row that was found, with its rank."""

    rank: int
    key: str
    score: float
    attributes: dict[str, Any]


class SearchResponse(BaseModel):
    """The nearest rows, best first."""

    index: str
    hits: list[OneHit]


@router.post("/search", **route_docs(SearchBody, SearchResponse, 400, 404, 413, 422, 503, 504))
async def search(request: Request) -> Response:
    """Return the nearest rows, best first."""
    body = await parse_body(request, SearchBody)
    return await run_in_threadpool(hits, request, body)


def hits(request: Request, body: SearchBody) -> Response:
    """Search, in a thread."""
    served: Models = request.app.state.models
    names = served.index_names()
    if body.index is None and not names:
        raise RequestError(404, "The server has no indexes; start it with `firth serve INDEX`.", field="index")
    name = names[0] if body.index is None else body.index
    index = served.index(name)
    mode = body.mode or ("both" if isinstance(body.query, str) else "vector")
    query, truncated, prompts = body.query, 0, dict[str, Any]()
    if isinstance(query, str) and mode != "words" and index.model is not None:
        run: Embedding = request.app.state.embedding
        settings: Settings = request.app.state.settings
        reader = run.reader_for(f"the model of the index {name}", index.model)
        prompt = reader.prompt(body.prompt_name, body.prompt, "query")
        prompts = {"prompt_text": prompt} if isinstance(reader, EncoderReader) else {}
        truncated = reader.read([query], settings.on_long(body.truncate), prompt).truncated
        query = reader.shortened(prompt + query).removeprefix(prompt) if truncated else query
    results = index.search(query, body.k, where=body.where, mode=mode, **prompts)
    rows = [
        {"rank": rank, "key": hit.key, "score": float(hit.score), "attributes": dict(hit.attributes)}
        for rank, hit in enumerate(results, 1)
    ]
    # Parquet columns may contain bytes, which are not always UTF-8.
    content = to_json({"index": name, "hits": rows}, inf_nan_mode="null", bytes_mode="base64", fallback=str)
    return json_response(content, truncated)
