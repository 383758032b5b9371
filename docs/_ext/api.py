"""`{api} Data`: the reference of a group of public names, from `firth/__init__.pyi` and the docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import firth
from firth.core.method import Method

STUB = Path(firth.__file__).with_suffix(".pyi")


def groups() -> dict[str, list[str]]:
    """Public names by the comments of the stub: `# Data` and the imports below it."""
    found: dict[str, list[str]] = {}
    for line in STUB.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            names = found.setdefault(line.removeprefix("# "), [])
        elif line.startswith("from ") and "__version__" not in line:
            names.append(line.split()[-1])
    return found


def signature(value: Any) -> str:
    """Parameters and defaults, without annotations; defaults that are objects are abbreviated."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters if parameter.name != "self"
    ]
    text = str(inspect.Signature(plain))
    return re.sub(r"Run\([^)]*\)", "Run()", re.sub(r"<[^>]*>", "…", text))


def docstring(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def members(kind: type) -> list[str]:
    """Public methods and properties with the first sentence of their docstrings; inherited ones too."""
    lines = []
    for name, value in inspect.getmembers_static(kind):
        if name.startswith("_") or isinstance(value, (str, int, float, bool, tuple, dict, type)):
            continue
        call = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        about = docstring(call.fget if isinstance(call, property) else call).split("\n\n")[0].replace("\n", " ")
        shown = (
            name if isinstance(call, property) else name + signature(call).replace("(cls, ", "(").replace("(cls)", "()")
        )
        if about and (isinstance(call, property) or callable(call)):
            lines.append(f"- `{shown}`: {about}")
    return lines


class Api(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for name in groups()[self.arguments[0]]:
            value = getattr(firth, name)
            section = nodes.section(ids=[nodes.make_id(f"firth-{name}")], names=[f"firth.{name}"])
            section += nodes.title(text=f"firth.{name}")
            is_method = isinstance(value, type) and issubclass(value, Method) and value is not Method
            if is_method:
                text = (
                    f"{docstring(value)}\n\nFormula, example and options: [{name}](methods/{value.method_name()}.md)."
                )
            else:
                text = f"`{name}{signature(value)}`\n\n{docstring(value)}"
                text += "\n\n" + "\n".join(members(value)) if isinstance(value, type) else ""
            section += self.parse_text_to_nodes(text)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
