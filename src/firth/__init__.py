"""Firth turns text, tables, graphs and who-used-what into vectors.

    import firth
    model = firth.SkipGram(dim=100).fit(firth.Corpus("wiki/*.txt.gz"))
    model.vectors.neighbors("river")

Everything is imported at its first use, so that `import firth` is quick. `__init__.pyi` lists what there is.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from firth.version import __version__ as __version__


@cache
def _public() -> dict[str, tuple[str, str]]:
    """Public name -> module and name there, from the lines `from MODULE import NAME as PUBLIC` of the stub. The module
    of a package is "firth"."""
    from pathlib import Path

    lines = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]
    return {public: (module, name) for _, module, _, name, _, public in words}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(public for public, (module, _) in _public().items() if module != __name__)
    if not name.startswith("_") and name in _public():
        module, original = _public()[name]
        if module == __name__:
            return importlib.import_module(f"{module}.{original}")
        return getattr(importlib.import_module(module), original)
    if not name.startswith("_"):
        from firth.core.registry import class_named

        method = class_named(name)  # of another package
        if method is not None:
            return method
    raise AttributeError(f"module 'firth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_public())
