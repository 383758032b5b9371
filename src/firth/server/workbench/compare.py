"""/api/compare: comparison of several models on data."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.server.workbench.asking import MAX_MODELS
from firth.server.workspace import Workspace

router = APIRouter()


class CompareBody(BaseModel):
    """The options of `firth compare models`."""

    models: list[str] = Field(min_length=1, max_length=MAX_MODELS)
    source: str | None = None
    unit: str = "line"
    column: str = ""
    title: str = ""
    label: str = ""
    analogies: str | None = None
    similarity: str | None = None
    texts: int = Field(2000, ge=10, le=100_000)
    seed: int = Field(1, ge=0)


@router.post("/compare")
def compare(request: Request, body: CompareBody) -> dict[str, Any]:
    """Start a comparison; the result of the job is the output of `firth compare models --json`."""
    workspace: Workspace = request.app.state.workspace
    if len(set(body.models)) < 2 and not body.source:
        raise FirthError("too_few", "Choose two models, or data to evaluate one on.")
    paths = {name: str(workspace.models.path(name)) for name in body.models}
    arguments = ["compare", "models"]
    arguments += [path if {"=", "/"} & {*name} else f"{name}={path}" for name, path in paths.items()]
    if body.source:
        arguments += [
            "--data",
            str(workspace.source(body.source)),
            f"--unit={body.unit}",
            f"--sample-size={body.texts}",
        ]
        columns = {name: getattr(body, name) for name in ("column", "title", "label")}
        arguments += [f"--{name}={value}" for name, value in columns.items() if value]
    tests = {name: getattr(body, name) for name in ("analogies", "similarity")}
    arguments += [f"--{name}={workspace.source(value)}" for name, value in tests.items() if value]
    title = " · ".join(dict.fromkeys(body.models))
    started = workspace.jobs.start(
        [*arguments, f"--seed={body.seed}", "--json"], title, body.model_dump(), lambda _: {}
    )
    return started.to_json()
