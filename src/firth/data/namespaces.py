"""Finds the public names of the objects in a package, from the imports in its source."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

Location = tuple[str, str]  # module, name in it


@dataclass
class Module:
    """The names and docstrings in the source of one module."""

    name: str
    is_package: bool
    texts: list[tuple[str, str]] = field(default_factory=list)  # name in the module ("": the module), docstring
    added: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # module, name, docstring of objects in other modules
    defined: set[str] = field(default_factory=set)
    imported: dict[str, Location] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)  # modules of `from x import *`
    exports: set[str] | None = None  # `__all__`, if it is a literal
    computed: bool = False  # whether `__all__` is computed at run time, and therefore unknown

    def add_import(self, node: ast.ImportFrom) -> None:
        """Record the names of a `from … import …` statement."""
        source = self._absolute(node)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                self.imported[alias.asname or alias.name] = (source, alias.name)

    def _absolute(self, node: ast.ImportFrom) -> str:
        parts = self.name.split(".")
        up = node.level - self.is_package  # in a package, `.` is the package itself
        base = parts[: len(parts) - up] if node.level else []
        return ".".join([*base, *([node.module] if node.module else [])])

    def add_exports(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
        """Record an assignment to `__all__`."""
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or target.id != "__all__":
            return
        if isinstance(node.value, (ast.List, ast.Tuple)):
            names = {item.value for item in node.value.elts if isinstance(item, ast.Constant)}
            self.exports = (self.exports or set()) | {name for name in names if isinstance(name, str)}
        else:
            self.computed = True

    def is_public(self, name: str) -> bool:
        """Whether the module exports `name`."""
        return not name.startswith("_") if self.exports is None or self.computed else name in self.exports


class Namespaces:
    """The modules of several packages, and the names under which each exports its objects."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        for module in list(self._modules.values()):
            for home_name, name, _ in module.added:  # C objects, of which only the docstrings are known
                home, head = self._modules.setdefault(home_name, Module(home_name, False)), name.partition(".")[0]
                if head not in home.imported:
                    home.defined.add(head)
        self._listed: dict[str, set[str]] = {}

    def public_names(self) -> dict[Location, str]:
        """Return the best public name of each object that a module re-exports."""
        best: dict[Location, str] = {}
        for module in self._modules.values():
            for name in self._names(module):
                home = self._find(module.name, name, set())
                if home and module.is_public(name) and re_exports(module, home[0]):
                    candidates = (best.get(home, ".".join(home)), f"{module.name}.{name}")
                    best[home] = min(candidates, key=self.rank)
        return best

    @staticmethod
    def rank(key: str) -> tuple[int, int, int, str]:
        """Return a sort key: the best name has the fewest private parts, then the fewest parts, then characters."""
        parts = key.split(".")
        return sum(part.startswith("_") for part in parts), len(parts), len(key), key

    def _names(self, module: Module) -> set[str]:
        """Return all names of a module, including those of its `import *`."""
        if module.name not in self._listed:
            names = self._listed[module.name] = module.defined | set(
                module.imported
            )  # stored first, because imports may be circular
            for source in module.stars:
                if source in self._modules:
                    other = self._modules[source]
                    names |= {name for name in self._names(other) if other.is_public(name)}
        return self._listed[module.name]

    def _find(self, module_name: str, name: str, visited: set[Location]) -> Location | None:
        """Return where the object with this name in `module_name` is defined, or None."""
        module = self._modules.get(module_name)
        if module is None or (module_name, name) in visited:
            return None
        if name in module.defined:
            return module_name, name
        visited.add((module_name, name))
        if name in module.imported:
            return self._find(*module.imported[name], visited)
        candidates = (self._find(source, name, visited) for source in module.stars)
        return next((candidate for candidate in candidates if candidate), None)


def re_exports(module: Module, home: str) -> bool:
    """Whether `module` re-exports what it imports from `home`.

    Packages, modules with `__all__`, and modules whose code is in a private sibling do; other modules import for their
    own use. Only names of the same distribution count: a package may rename its own objects and those of its private
    package (`_pytest` for `pytest`).
    """
    folder, _, last = home.rpartition(".")
    twin = last.startswith("_") and folder == module.name.rpartition(".")[0]
    top, own = home.partition(".")[0], module.name.partition(".")[0]
    related = top == own or is_private_part_of(top, own)
    return related and (module.is_package or module.exports is not None or twin)


def is_private_part_of(private: str, package: str) -> bool:
    """Whether `private` implements `package`, as `_pytest`, `_pydatetime` and `_collections_abc` do."""
    inside = private.lstrip("_")
    return private.startswith("_") and (package in (inside, inside[2:]) or inside.startswith(f"{package}_"))
