"""Bodies of requests: parsed from bytes in one go, described for /openapi.json."""

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
    """In JSON 5.0 is a whole number too."""
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


class Body(BaseModel):
    """What is not known is refused, not passed by; a number is no text."""

    inputs_help: ClassVar[str] = "a text, a list of texts, or ids of tokens"  # as inputs

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Kind = TypeVar("Kind", bound=Body)


class Direct(APIRoute):
    """A route whose function takes the request and gives the response, with nothing of FastAPI's between."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


async def parse_body(request: Request, body_type: type[Kind], status: int = 422) -> Kind:
    """The body as `kind`, or what is wrong with it and where."""
    try:
        return body_type.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else None
        message = f"{field}: {first['msg']}" if field else first["msg"]
        if field in ("input", "inputs"):
            message = f"{field} must be {body_type.inputs_help}, none of them empty."
        raise RequestError(status, f"{message.rstrip('.')}.", field=field) from None


def route_docs(body_type: type[Body], response: Any, *statuses: int) -> dict[str, Any]:
    """What a route's decorator says of its body and its answers."""
    schema = body_type.model_json_schema()
    schema = inline_references(schema, schema.pop("$defs", {}))
    return {
        "openapi_extra": {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}},
        "responses": {200: {"model": response}, **error_responses(*statuses)},
    }


def inline_references(schema: Any, parts: dict[str, Any]) -> Any:
    """With its parts where they are referred to."""
    if isinstance(schema, list):
        return [inline_references(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inline_references(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {name: inline_references(each, parts) for name, each in schema.items()}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    meanings = {
        400: "What is asked can't be done",
        401: "No key",
        403: "Not from here",
        404: "No such model",
        413: "Too much",
        422: "Not what is expected",
        429: "Too many wait; see Retry-After",
        503: "Not available now",
        504: "It took too long",
    }
    content = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    return {status: {"description": meanings[status], "content": content} for status in statuses}


def inputs_of(inputs: Any) -> Any:
    """One or several, as a list: texts, or lists of ids."""
    return [inputs] if isinstance(inputs, str) or isinstance(inputs[0], int) else inputs


def json_response(content: bytes, truncated: int = 0) -> Response:
    """Says how many inputs were cut, where any were."""
    headers = {"x-firth-truncated": str(truncated)} if truncated else None
    return Response(content, media_type="application/json", headers=headers)
