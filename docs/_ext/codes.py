"""`{codes}`: the table of all error codes, from `firth.core.errors.CODES`."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from firth.core.errors import CODES
from firth.evaluate.layout import markdown_table


class Codes(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        rows = [[f"`{code}`", meaning] for code, meaning in sorted(CODES.items())]
        return self.parse_text_to_nodes(markdown_table(("code", "meaning"), rows))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("codes", Codes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
