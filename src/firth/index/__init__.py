"""Exact and approximate search over vectors with keys and attributes: in memory, in a folder or in PostgreSQL."""

from __future__ import annotations

from firth.index.folder import is_index, verify_index
from firth.index.hits import Hit, Hits, reciprocal_rank_fusion, snippet
from firth.index.index import Index
from firth.index.postgres import PostgresIndex

__all__ = ["Hit", "Hits", "Index", "PostgresIndex", "is_index", "reciprocal_rank_fusion", "snippet", "verify_index"]
