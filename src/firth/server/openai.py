"""OpenAI's API: POST /v1/embeddings, GET /v1/models."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from firth.core.vectors import Matrix
from firth.server.bodies import (
    PROMPT,
    PROMPT_NAME,
    Body,
    Direct,
    Input,
    Integer,
    error_responses,
    inputs_of,
    json_response,
    parse_body,
    route_docs,
)
from firth.server.embedding import Embedding, finite_lists
from firth.server.models import Models

router = APIRouter(prefix="/v1", tags=["OpenAI"])
direct = APIRouter(route_class=Direct)


class EmbeddingsBody(Body):
    """Texts to embed, as OpenAI's API takes them."""

    input: Input
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Integer | None = Field(None, ge=1)
    user: str | None = None
    prompt_name: str | None = PROMPT_NAME
    prompt: str | None = PROMPT


class OneEmbedding(BaseModel):
    """The embedding of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """The number of tokens of a request."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(BaseModel):
    """The embeddings of a request, in the order of the texts."""

    object: Literal["list"]
    data: list[OneEmbedding]
    model: str
    usage: Usage


class OneModel(BaseModel):
    """A model of the server."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    """The models of the server."""

    object: Literal["list"]
    data: list[OneModel]


@direct.post("/embeddings", **route_docs(EmbeddingsBody, Embeddings, 400, 404, 413, 429, 503, 504))
async def embeddings(request: Request) -> Response:
    """Embed texts, or lists of token ids."""
    body = await parse_body(request, EmbeddingsBody, 400)
    embed: Embedding = request.app.state.embedding
    embedded = await embed(
        body.model,
        inputs_of(body.input),
        dimensions=body.dimensions,
        prompt_name=body.prompt_name,
        prompt=body.prompt,
    )
    usage = {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens}
    rows = finite_lists(embedded.matrix) if body.encoding_format == "float" else in_base64(embedded.matrix)
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return json_response(
        to_json({"object": "list", "data": data, "model": body.model, "usage": usage}), embedded.truncated
    )


def in_base64(matrix: Matrix) -> list[str]:
    """Return each row as base64 of little-endian float32."""
    rows = np.ascontiguousarray(matrix, "<f4")
    return [base64.b64encode(row.data).decode() for row in rows]


@router.get("/models", response_model=ModelList)
async def models(request: Request) -> dict[str, Any]:
    """List the models."""
    served: Models = request.app.state.models
    return {"object": "list", "data": [model_entry(served, name) for name in served.names()]}


@router.get("/models/{model}", response_model=OneModel, responses=error_responses(404))
async def model(model: str, request: Request) -> dict[str, Any]:
    """Describe a model."""
    return model_entry(request.app.state.models, model)


@router.get("/models/{owner}/{model}", response_model=OneModel, include_in_schema=False)
async def owned_model(owner: str, model: str, request: Request) -> dict[str, Any]:
    """Describe a model with a name such as sentence-transformers/all-MiniLM-L6-v2."""
    return model_entry(request.app.state.models, f"{owner}/{model}")


def model_entry(served: Models, name: str) -> dict[str, Any]:
    """Describe a model as OpenAI's API does."""
    return {"id": name, "object": "model", "created": served.created(name), "owned_by": "firth"}


router.include_router(direct)
