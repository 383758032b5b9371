"""/api/models: the served models and their abilities."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from firth.core.errors import FirthError
from firth.server.models import Models

router = APIRouter()


@router.get("/models")
def models(request: Request) -> dict[str, Any]:
    """List all models with their method, tables and abilities, or the error why they cannot be loaded."""
    served: Models = request.app.state.models
    return {"models": [description(served, name) for name in served.names()], "indexes": served.index_names()}


def description(served: Models, name: str) -> dict[str, Any]:
    """Describe a model, or say why it cannot be opened."""
    path = str(served.path(name))
    try:
        return served.describe(name) | {"path": path}
    except FirthError as error:
        return {"name": name, "error": str(error), "can": [], "tables": {}, "path": path}


@router.get("/models/{name}")
def model(name: str, request: Request) -> dict[str, Any]:
    """Describe a model."""
    return description(request.app.state.models, name)
