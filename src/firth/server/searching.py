"""POST /search: indexes that `firth index build` made, by meaning, by words or both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from firth.server.bodies import Body, Direct, Whole, described, json_answer, parsed
from firth.server.embedding import Embedding
from firth.server.errors import RequestError
from firth.server.models import Models
from firth.server.settings import Settings

router = APIRouter(tags=["search"], route_class=Direct)


class SearchBody(Body):
    query: Annotated[str, Field(min_length=1)] | Annotated[list[float], Field(min_length=1)] = Field(
        description="A text, or a vector of the index's length (mode vector)."
    )
    index: str | None = Field(None, description="Of several indexes, which; else the first.")
    k: Whole = Field(10, ge=1, le=1000)
    where: str | None = Field(
        None,
        description='Only such rows, as in year >= 2020 and language in ("en", "de"); at most 65,536 characters.',
    )
    mode: Literal["vector", "words", "both"] | None = Field(None, description="both for a text, vector for a vector.")
    truncate: bool | None = Field(None, description="Of a text longer than the model reads, take the beginning.")


class OneHit(BaseModel):
    rank: int
    key: str
    score: float
    attributes: dict[str, Any]


class Found(BaseModel):
    index: str
    hits: list[OneHit]


@router.post("/search", **described(SearchBody, Found, 400, 404, 413, 422, 503, 504))
async def search(request: Request) -> Response:
    """The nearest rows, best first."""
    body = await parsed(request, SearchBody)
    return await run_in_threadpool(hits, request, body)


def hits(request: Request, body: SearchBody) -> Response:
    served: Models = request.app.state.models
    names = served.index_names()
    if body.index is None and not names:
        raise RequestError(404, "No index is served; `firth serve INDEX` serves one.", field="index")
    name = names[0] if body.index is None else body.index
    index = served.index(name)
    mode = body.mode or ("both" if isinstance(body.query, str) else "vector")
    query, cut = body.query, 0
    if isinstance(query, str) and mode != "words" and index.model is not None:
        run: Embedding = request.app.state.embedding
        settings: Settings = request.app.state.settings
        reader = run.reads(f"the model of the index {name}", index.model)
        cut = reader.read([query], settings.on_long(body.truncate)).cut
        query = reader.shortened(query) if cut else query
    found = index.search(query, body.k, where=body.where, mode=mode)
    rows = [
        {"rank": rank, "key": hit.key, "score": float(hit.score), "attributes": dict(hit.attributes)}
        for rank, hit in enumerate(found, 1)
    ]
    # Bytes, of which columns of Parquet may be made, are not always UTF-8.
    content = to_json({"index": name, "hits": rows}, inf_nan_mode="null", bytes_mode="base64", fallback=str)
    return json_answer(content, cut)
