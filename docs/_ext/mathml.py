"""Formulas become MathML when the site is built, so that a page needs no script, no font and no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
# MathML sets no space between a function's name and its argument; TeX does, unless a bracket follows.
FUNCTION = re.compile(r"((?<!<msub>)<mi>(?:log|exp|cos)</mi>|<msub><mi>log</mi><mn>2</mn></msub>)(?!<mo stretchy|</m)")


def to_mathml(node: nodes.Element, display: str) -> str:
    """The formula as a <math> element; one that can't be read is a warning, which the build makes an error."""
    latex = " ".join(node.astext().split())
    try:
        return FUNCTION.sub(r'\1<mspace width="0.17em" />', convert(latex, display=display))
    except Exception as error:  # latex2mathml raises a dozen kinds
        logger.warning("cannot turn into MathML (%r): %s", error, latex, location=node)
        return f"<code>{latex}</code>"


def visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(to_mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{to_mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
