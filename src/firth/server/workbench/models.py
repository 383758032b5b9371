"""/api/models: what is open here and what it can do."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from firth.core.errors import FirthError
from firth.server.models import Models

router = APIRouter()


@router.get("/models")
def models(request: Request) -> dict[str, Any]:
    """Each model with its method, its tables and its abilities, or with the reason why it can't be opened."""
    served: Models = request.app.state.models
    return {"models": [told(served, name) for name in served.names()], "indexes": served.index_names()}


def told(served: Models, name: str) -> dict[str, Any]:
    try:
        return served.describe(name) | {"path": str(served.path(name))}
    except FirthError as error:
        return {"name": name, "error": str(error), "can": []}


@router.get("/models/{name}")
def model(name: str, request: Request) -> dict[str, Any]:
    served: Models = request.app.state.models
    return served.describe(name) | {"path": str(served.path(name))}
