"""How to install what is optional: said in one place, in a form that works from a checkout."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import firth
from firth.core.extras import how_to_install, install_command

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(firth.__file__).parent
TEXTS = [
    *(path for path in SOURCE.rglob("*.py")),
    *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
    *(path for suffix in ("ts", "svelte") for path in (ROOT / "web" / "src").rglob(f"*.{suffix}")),
    *(path for path in (SOURCE / "server" / "static").rglob("*") if path.suffix in (".js", ".html")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
]
INSTALL = re.compile(r"pip install (?P<flags>(?:-\S+ )*)(?P<what>[^\n`]*)")
CALLS = {"how_to_install": 0, "missing_package": 2}  # where the extra stands
EXTRA = re.compile(r"firth\s*\[|\[(?:neural|server|scale|maps|onnx|sklearn|tokenizers)[\],]")


def extras() -> set[str]:
    """Of pyproject.toml; Python 3.10 has no parser for it."""
    section = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", section, re.MULTILINE))


def test_no_text_asks_for_a_published_firth():
    """`"firth[neural]"` does not work before Firth is published; `".[neural]"` in a checkout does."""
    assert len(TEXTS) > 400
    for path in TEXTS:
        for found in INSTALL.finditer(path.read_text(encoding="utf-8")):
            what = found["what"]
            assert not re.match(r"""['"]?firth\b""", what), f"{path}: pip install {what}"
            if path != ROOT / "Makefile" and EXTRA.search(what):
                assert re.match(r'"\.\[[\w,]+\]"', what), f"{path}: pip install {what}"


def test_code_names_it_in_one_place():
    others = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if "pip install" in path.read_text("utf-8")}
    assert others == {Path("core/extras.py")}


def test_every_extra_that_is_named_exists():
    named = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                asked = node.args[CALLS[node.func.id] :]
                assert all(isinstance(each, ast.Constant) for each in asked) or path.name == "extras.py", path
                named |= {each.value for each in asked if isinstance(each, ast.Constant)}
    assert named <= extras() and {"neural", "server", "scale", "maps", "sklearn", "onnx"} <= named


def test_the_command():
    assert install_command("neural") == 'pip install ".[neural]"'
    assert install_command("server", "neural") == 'pip install ".[server,neural]"'
    assert install_command("neural") in how_to_install("neural") and "checkout" in how_to_install("neural")
