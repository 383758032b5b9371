"""Errors of requests, with their HTTP status."""

from __future__ import annotations

from collections.abc import Mapping

from firth.core.errors import FirthError


class RequestError(FirthError):
    """An error response. `kind` is the type of the error in the API, `field` the field of the request at fault."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        field: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code or ("invalid_request" if kind == "invalid_request_error" else kind), message)
        self.status, self.kind, self.field, self.headers = status, kind, field, dict(headers or {})


def error_body(path: str, error: RequestError) -> dict[str, object]:
    """Return the JSON of an error: in OpenAI's format under /v1/, else in that of text-embeddings-inference."""
    if path.startswith("/v1/"):
        return {"error": {"message": str(error), "type": error.kind, "param": error.field, "code": error.code}}
    return {"error": str(error), "error_type": error.kind, "code": error.code}
