"""`firth index`: indexes for search."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Build and maintain indexes, which `firth search` searches and `firth serve` serves.""",
    {"build": "Embed texts and index them for search."},
    "COMMAND …",
)
