"""Search: vectors with keys and attributes, exactly or approximately, in memory, in a folder or in PostgreSQL."""

from __future__ import annotations

from firth.index.folder import is_index, verify_index
from firth.index.hits import Hit, Hits, fused, snippet
from firth.index.index import Index

__all__ = ["Hit", "Hits", "Index", "fused", "is_index", "snippet", "verify_index"]
