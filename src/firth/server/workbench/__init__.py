"""What the page asks under /api: a file for each view, with its `router`. A new file is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

from fastapi import APIRouter


def router() -> APIRouter:
    """The routes of all files of this package."""
    combined = APIRouter()
    for file in sorted(pkgutil.iter_modules(__path__), key=lambda file: file.name):
        module_router = getattr(importlib.import_module(f"{__name__}.{file.name}"), "router", None)
        if module_router is not None:
            combined.include_router(module_router)
    return combined
