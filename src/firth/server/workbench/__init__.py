"""The private API of the workbench under /api: one file per view, each with a `router`, which is found
automatically."""

from __future__ import annotations

import importlib
import pkgutil

from fastapi import APIRouter


def router() -> APIRouter:
    """Return the routes of all files of this package."""
    combined = APIRouter()
    for file in sorted(pkgutil.iter_modules(__path__), key=lambda file: file.name):
        module_router = getattr(importlib.import_module(f"{__name__}.{file.name}"), "router", None)
        if module_router is not None:
            combined.include_router(module_router)
    return combined
