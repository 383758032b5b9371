"""/api/compare: several models on one's own data."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.server.workbench.asking import MOST_MODELS
from firth.server.workspace import Workspace

router = APIRouter()


class Comparing(BaseModel):
    """As `firth compare models` has it."""

    models: list[str] = Field(min_length=1, max_length=MOST_MODELS)
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
def compare(request: Request, asked: Comparing) -> dict[str, Any]:
    """Begins it; the job's result is what `firth compare models --json` prints."""
    workspace: Workspace = request.app.state.workspace
    if len(set(asked.models)) < 2 and not asked.source:
        raise FirthError("too_few", "Choose two models, or data to measure one on.")
    paths = {name: str(workspace.models.path(name)) for name in asked.models}
    arguments = ["compare", "models"]
    arguments += [path if {"=", "/"} & {*name} else f"{name}={path}" for name, path in paths.items()]
    if asked.source:
        arguments += [
            "--data",
            str(workspace.source(asked.source)),
            f"--unit={asked.unit}",
            f"--sample-size={asked.texts}",
        ]
        columns = {name: getattr(asked, name) for name in ("column", "title", "label")}
        arguments += [f"--{name}={value}" for name, value in columns.items() if value]
    tests = {name: getattr(asked, name) for name in ("analogies", "similarity")}
    arguments += [f"--{name}={workspace.source(value)}" for name, value in tests.items() if value]
    title = " · ".join(dict.fromkeys(asked.models))
    started = workspace.jobs.start(
        [*arguments, f"--seed={asked.seed}", "--json"], title, asked.model_dump(), lambda _: {}
    )
    return started.to_json()
