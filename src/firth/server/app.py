"""`application(settings)`: all routes behind the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from firth.core.errors import FirthError
from firth.server import inference, logs, metrics, openai, searching, workbench
from firth.server.embedding import Embedding
from firth.server.errors import RequestError, error_body
from firth.server.guard import Guard
from firth.server.metrics import Metrics, resident_bytes
from firth.server.models import Models
from firth.server.settings import Settings
from firth.server.workbench.earlier import restore
from firth.server.workspace import Workspace
from firth.version import __version__

STATIC = Path(__file__).parent / "static"
PAGES = Path(__file__).parent / "pages"
PLACEHOLDER = 'name="firth-token" content=""'
NO_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Firth</title></head><body><main>
<h1>Firth is running</h1><p>This installation has no workbench: its pages were not built. The API works:
<a href="/docs">API reference</a>.</p></main></body></html>"""
REPLICAS_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Firth</title></head><body><main>
<h1>Firth is running</h1><p>Several replicas answer requests, so there is no workbench here: <code>firth studio</code>
starts it. <a href="/docs">API reference</a>.</p></main></body></html>"""


def application(settings: Settings) -> FastAPI:
    """Create the application. `app.state` has settings, models, embedding, workspace, metrics and stopping."""
    app = FastAPI(title="Firth", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    metrics_store = Metrics()
    app.state.settings, app.state.models, app.state.metrics = settings, Models(settings), metrics_store
    app.state.embedding = Embedding(app.state.models, settings, metrics_store)
    app.state.workspace = Workspace(settings, app.state.models)
    if settings.replicas == 1:
        restore(app.state.workspace)
    app.state.stopping = False
    metrics_store.gauges["firth_models_loaded"] = lambda: len(app.state.models.loaded())
    metrics_store.gauges["process_resident_memory_bytes"] = resident_bytes
    for module in (openai, inference, searching, metrics):
        app.include_router(module.router)
    if settings.replicas == 1:
        app.include_router(workbench.router(), prefix="/api", include_in_schema=False)
    add_errors(app)
    add_pages(app, settings)

    def record_response(scope: Scope, status: int, seconds: float, size: int) -> None:
        route = route_pattern(scope)
        metrics_store.count_response(route, status, seconds)
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
        logs.event("request", method=method, route=route, status=status, ms=round(1000 * seconds, 2), bytes=size)

    app.add_middleware(Guard, settings=settings, on_response=record_response, stopping=lambda: app.state.stopping)
    return app


def route_pattern(scope: Scope) -> str:
    """Return the pattern of a request's route with its router's prefix, which newer versions of FastAPI omit."""
    route = scope.get("route")
    if not getattr(route, "methods", None):
        return "other"
    path: str = getattr(route, "path", "")
    prefix = scope["path"].split("/")[: 1 + max(0, scope["path"].count("/") - path.count("/"))]
    return "/".join(prefix) + path


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the batchers when the server ends."""
    yield
    app.state.embedding.close()


def add_errors(app: FastAPI) -> None:
    """Return every error as JSON, in the format of the API."""

    @app.exception_handler(FirthError)
    async def firth_error(request: Request, error: FirthError) -> Response:
        refusal = error if isinstance(error, RequestError) else RequestError(400, str(error), code=error.code)
        return JSONResponse(error_body(request.scope["path"], refusal), refusal.status, refusal.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body")
        refusal = RequestError(422, f"{field or 'The body'}: {first['msg']}.", field=field or None)
        return JSONResponse(error_body(request.scope["path"], refusal), refusal.status)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        error_type, text = "invalid_request_error", f"{error.detail}."
        if error.status_code == 404:
            error_type, text = "not_found", "There is nothing at this address; /docs lists all routes."
        elif error.status_code == 405:
            text = f"{request.method} is not allowed at this address; /docs lists all routes."
        refusal = RequestError(error.status_code, text, kind=error_type)
        return JSONResponse(error_body(request.scope["path"], refusal), error.status_code, error.headers)


def add_pages(app: FastAPI, settings: Settings) -> None:
    """Add the workbench and the API reference.

    Files are listed when the server starts, so that no request can name a path. The page contains the token of this
    server process only if a key protects it; otherwise any user of the machine could read the token there.
    """

    @app.get("/", include_in_schema=False)
    @app.get("/index.html", include_in_schema=False)
    def page() -> Response:
        if settings.replicas > 1:
            return HTMLResponse(REPLICAS_PAGE, headers={"cache-control": "no-store"})
        built = STATIC / "index.html"
        text = built.read_text(encoding="utf-8") if built.is_file() else NO_PAGE
        if settings.key is not None:
            text = text.replace(PLACEHOLDER, f'name="firth-token" content="{settings.token}"')
        return HTMLResponse(text, headers={"cache-control": "no-store"})

    add_file(app, "/docs", PAGES / "docs.html")
    for name in ("docs.css", "docs.js"):
        add_file(app, f"/docs/{name}", PAGES / name)
    for file in sorted(STATIC.iterdir()) if STATIC.is_dir() else ():
        if file.is_dir():
            app.mount(f"/{file.name}", Revalidated(directory=file))
        elif file.name != "index.html" and not file.name.startswith("."):
            add_file(app, f"/{file.name}", file)


class Revalidated(StaticFiles):
    """Static files that a browser must revalidate, because their names do not change between versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Answer with a file that browsers check for changes before each use."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def add_file(app: FastAPI, address: str, file: Path) -> None:
    """Serve one file at an address."""

    @app.get(address, include_in_schema=False)
    def get() -> Response:
        return FileResponse(file)
