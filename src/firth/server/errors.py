"""What a request can do wrong, and what the server can't do, each with its status."""

from __future__ import annotations

from collections.abc import Mapping

from firth.core.errors import FirthError


class RequestError(FirthError):
    """An answer other than the one that was asked for."""

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
    """As OpenAI says it under /v1/, elsewhere as text-embeddings-inference does."""
    if path.startswith("/v1/"):
        return {"error": {"message": str(error), "type": error.kind, "param": error.field, "code": error.code}}
    return {"error": str(error), "error_type": error.kind, "code": error.code}
