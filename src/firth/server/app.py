"""`application(settings)`: the routes, put together behind the guard."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from firth.core.errors import FirthError
from firth.server import workbench
from firth.server.errors import RequestError, shaped
from firth.server.guard import Guard
from firth.server.models import Models
from firth.server.settings import Settings
from firth.version import __version__

STATIC = Path(__file__).parent / "static"
PLACEHOLDER = 'name="firth-token" content=""'
NO_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Firth</title></head><body><main>
<h1>Firth is running</h1><p>This installation has no workbench: its pages were not built. The interfaces work:
<a href="/docs">what can be asked</a>.</p></main></body></html>"""


def application(settings: Settings) -> FastAPI:
    """`app.state` has the settings and the models."""
    app = FastAPI(title="Firth", version=__version__, docs_url=None, redoc_url=None)
    app.state.settings, app.state.models = settings, Models(settings)
    app.include_router(workbench.router(), prefix="/api", include_in_schema=False)
    add_errors(app)
    add_pages(app, settings)
    app.add_middleware(Guard, settings=settings)
    return app


def add_errors(app: FastAPI) -> None:
    """Every error is JSON, in the shape that the interface has."""

    @app.exception_handler(FirthError)
    async def firth_error(request: Request, error: FirthError) -> Response:
        found = error if isinstance(error, RequestError) else RequestError(400, str(error))
        return JSONResponse(shaped(request.url.path, found), found.status, found.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        found = RequestError(422, f"{where or 'The body'}: {first['msg']}.", field=where or None)
        return JSONResponse(shaped(request.url.path, found), found.status)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        found = RequestError(
            error.status_code, str(error.detail), kind="not_found" if error.status_code == 404 else "error"
        )
        return JSONResponse(shaped(request.url.path, found), error.status_code, error.headers)


def add_pages(app: FastAPI, settings: Settings) -> None:
    """The workbench: its page with the token of this start in it, and its files."""

    @app.get("/", include_in_schema=False)
    @app.get("/index.html", include_in_schema=False)
    def page() -> Response:
        built = STATIC / "index.html"
        text = built.read_text(encoding="utf-8") if built.is_file() else NO_PAGE
        filled = text.replace(PLACEHOLDER, f'name="firth-token" content="{settings.token}"')
        return HTMLResponse(filled, headers={"cache-control": "no-store"})

    if STATIC.is_dir():
        app.mount("/", StaticFiles(directory=STATIC))
