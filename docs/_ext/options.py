"""`{options} skipgram`: the option table of a method, from the fields that state them; also of `run` and tokenizers."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from firth.core import registry
from firth.core.options import Option, options_of
from firth.core.run import Run
from firth.data.subwords import BPE, Characters, WordPiece
from firth.evaluate.layout import markdown_table

HEADER = ("option", "default", "values", "meaning")
OTHERS = {"run": Run, "bpe": BPE, "wordpiece": WordPiece, "characters": Characters}


class Options(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        options = options_of(OTHERS[name] if name in OTHERS else registry.method(name))
        rows = [[f"`{item.name}`", shown(item.default), values(item), item.help] for item in options]
        return self.parse_text_to_nodes(markdown_table(HEADER, rows))


def values(item: Option) -> str:
    """What an option takes: its choices or its range."""
    if item.choices:
        return ", ".join(f"`{choice}`" for choice in item.choices)
    if item.kind is bool:
        return "`true`, `false`"
    if item.kind is str:
        return "text"
    kind = "whole number" if item.kind is int else "number"
    low, high = (None if bound is None else number(bound) for bound in (item.low, item.high))
    if low and high:
        return f"{kind}, {low} to {high}"
    return f"{kind}, at least {low}" if low else f"{kind}, at most {high}" if high else kind


def shown(value: Any) -> str:
    if value is None:
        return "none"
    if value == "":
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{number(value) if isinstance(value, (int, float)) else value}`"


def number(value: float) -> str:
    if value == 2**63 - 1:
        return "2⁶³ − 1"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else f"{value:g}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("options", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
