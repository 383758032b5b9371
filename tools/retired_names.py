"""Rejects retired names: part of `make check`.

    python tools/retired_names.py          # fails where one is used
    python tools/retired_names.py --count  # how many there are in each package

Retired are the old names of `tools/renames.py` (classes, modules, methods) anywhere in the project, and in the source
generic names for things that have a proper one: `neighbor_ids` says more than `found`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from renames import METHODS, MODULES, NAMES, ROOT, TEXT

GENERIC = {"asked", "chosen", "facts", "figures", "found", "kept", "place", "places", "taken", "told"}
GENERIC_CLASSES = {"Rows"}
HISTORY = ("CHANGELOG.md", "benchmarks/LOG.md", "src/firth/core/renamed.py", "tools/", "tests/golden/", "docs/results/")


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a file gives to things: variables, parameters, functions, classes, attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def generic(file: str, text: str) -> Iterator[str]:
    if file.startswith("src/firth/") and file.endswith(".py"):
        for name, line in names_in(ast.parse(text)):
            if name.lower() in GENERIC or name in GENERIC_CLASSES:
                yield f"{file}:{line}: {name} is too generic; name the thing itself"


def renamed(file: str, text: str) -> Iterator[str]:
    old_names = {
        f"firth.{name.old}": f"firth.{name.new}" for name in NAMES if name.old[0].isupper() and name.files == ("*",)
    }
    old_names |= {f"firth.{old}": f"firth.{new}" for old, new in MODULES.items()}
    old_names |= {f"firth {verb} {old}": new for old, new in METHODS.items() for verb in ("train", "finetune", "sweep")}
    for old, new in old_names.items():
        for match in re.finditer(rf"(?<![\w.]){re.escape(old)}(?![\w-])", text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{file}:{line}: {old} is now {new}"


def main() -> None:
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split(
        "\n"
    )
    problems = []
    for file in listed:
        path = ROOT / file
        if path.suffix in TEXT and path.is_file() and not file.startswith(HISTORY) and "/static/" not in file:
            text = path.read_text(encoding="utf-8")
            problems += [*generic(file, text), *renamed(file, text)]
    if "--count" in sys.argv:
        for package, count in sorted(Counter("/".join(Path(each).parts[:3]) for each in problems).items()):
            print(f"{count:5} {package}")
    elif problems:
        print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
