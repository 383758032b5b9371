"""Request bodies: parsing, and their description for /openapi.json."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, ClassVar, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.responses import Response

from firth.server.errors import RequestError

MAX_ID = 1 << 31


def to_integer(value: Any) -> Any:
    """Convert floats such as 5.0 to integers, because JSON does not distinguish them."""
    if isinstance(value, list):
        return [to_integer(each) for each in value] if value and not isinstance(value[0], str) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


Texts = Annotated[list[str], Field(min_length=1)]
Ids = Annotated[list[Annotated[int, Field(ge=0, lt=MAX_ID)]], Field(min_length=1)]
Input = Annotated[
    Annotated[str, Field(min_length=1)] | Texts | Ids | Annotated[list[Ids], Field(min_length=1)],
    BeforeValidator(to_integer),
]
Integer = Annotated[int, BeforeValidator(to_integer)]
PROMPT_NAME: Any = Field(
    None, description="Name of a prompt of the model, such as query; by default that of the server, or of the model."
)
PROMPT: Any = Field(None, description="A text that is put before each input, instead of a prompt of the model.")


class Body(BaseModel):
    """Base of request bodies. Unknown fields are refused, and types are not converted."""

    inputs_help: ClassVar[str] = "a text, a list of texts, or lists of token ids"

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Kind = TypeVar("Kind", bound=Body)


class Direct(APIRoute):
    """A route whose function takes the request and returns the response, without FastAPI's conversions."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint itself, which reads the request without FastAPI."""
        return self.endpoint


async def parse_body(request: Request, body_type: type[Kind], status: int = 422) -> Kind:
    """Parse and validate the body of a request."""
    try:
        return body_type.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else None
        message = f"{field}: {first['msg']}" if field else first["msg"]
        if field in ("input", "inputs"):
            message = f"{field} must be {body_type.inputs_help}, and not empty."
        raise RequestError(status, f"{message.rstrip('.')}.", field=field) from None


def route_docs(body_type: type[Body], response: Any, *statuses: int) -> dict[str, Any]:
    """Return the arguments of a route's decorator that describe its body and its responses."""
    schema = body_type.model_json_schema()
    schema = inline_references(schema, schema.pop("$defs", {}))
    return {
        "openapi_extra": {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}},
        "responses": {200: {"model": response}, **error_responses(*statuses)},
    }


def inline_references(schema: Any, parts: dict[str, Any]) -> Any:
    """Return a JSON schema with its references replaced by their definitions."""
    if isinstance(schema, list):
        return [inline_references(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inline_references(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {name: inline_references(each, parts) for name, each in schema.items()}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI descriptions of error statuses."""
    meanings = {
        400: "The request is invalid",
        401: "The API key is missing or wrong",
        403: "This origin or host is not allowed",
        404: "No such model",
        413: "The request or the response is too large",
        422: "The body does not match the schema",
        429: "The queue is full; see Retry-After",
        503: "The model is not available",
        504: "Timeout",
    }
    content = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    return {status: {"description": meanings[status], "content": content} for status in statuses}


def inputs_of(inputs: Any) -> Any:
    """Return one or several inputs as a list of texts, or of lists of ids."""
    return [inputs] if isinstance(inputs, str) or isinstance(inputs[0], int) else inputs


def json_response(content: bytes, truncated: int = 0) -> Response:
    """Return a JSON response, with a header for the number of truncated inputs if there are any."""
    headers = {"x-firth-truncated": str(truncated)} if truncated else None
    return Response(content, media_type="application/json", headers=headers)
