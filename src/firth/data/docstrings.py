"""Docstrings of the installed Python packages as documents: real English text that is available on every machine.

Source files are parsed and never imported, so none of their code runs. Objects written in C have no source. Their
docstrings come from the `add_newdoc` calls of numpy and scipy, and from modules that are safe to import: parts of the
standard library, and numpy, which Firth depends on.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import stat
import sys
import sysconfig
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from firth.core.errors import FirthError
from firth.core.report import Report, default_report
from firth.data.namespaces import Module, Namespaces, is_private_part_of

LEAST_WORDS = 5
MOST_BYTES = 4_000_000  # larger files are generated data, and parsing needs a hundred times their size in memory
# Test code and vendored packages.
EXCLUDED = re.compile(
    r"tests?|test_.*|.*_tests?|conftest|_vendor|_vendored|vendored|vendor|extern|externals|__pycache__"
)
SIGNATURE = re.compile(r"\A\w+\(.*?\)\n--\n\n", re.DOTALL)  # the signature that C functions store for `inspect`
C_MODULES = (
    *("builtins", "sys", "math", "cmath", "itertools", "time", "gc", "array", "zlib", "binascii", "unicodedata"),
    *("mmap", "select", "marshal", "errno", "atexit", "_thread", "_io", "_collections", "_functools", "_operator"),
    *("_struct", "_random", "_datetime", "_decimal", "_bisect", "_heapq", "_json", "_csv", "_pickle", "_socket"),
    *("_sqlite3", "_statistics", "_weakref", "_abc", "_codecs", "_hashlib", "_ssl", "_bz2", "_lzma", "_queue"),
    *("numpy", "numpy.random"),
)


def python_docstrings(
    packages: Sequence[str] | None = None,
    *,
    folders: Sequence[str | os.PathLike[str]] | None = None,
    report: Report | None = None,
) -> Iterator[tuple[str, str]]:
    """Return (qualified name, docstring) pairs of modules, classes, functions and methods, sorted by name.

    `packages` restricts the result to these top-level packages. `folders` are searched instead of the standard library
    and site-packages. Objects have their public names: `numpy.median`, not `numpy.lib._function_base_impl.median`.
    Unreadable files, docstrings of fewer than five words and duplicate docstrings are left out; a note counts them.
    """
    report = report or default_report()
    folders_and_names = _standard_folders() if folders is None else [(Path(folder), None) for folder in folders]
    files = _source_files(folders_and_names, packages, C_MODULES if folders is None else ())
    counts: Counter[str] = Counter()
    modules = _parse_all(files, counts, report)
    if folders is None:
        selected = [name for name in C_MODULES if _is_selected(name.partition(".")[0], packages)]
        modules.append(
            Module("", is_package=False, added=[entry for name in selected for entry in _imported_docstrings(name)])
        )
    documents = _without_duplicates(_documents_by_name(modules, counts), counts)
    if +counts:
        summary = ", ".join(f"{count:,} {what}" for what, count in sorted((+counts).items()))
        report.note(f"{len(documents):,} docstrings; left out: {summary}.", "docstrings_left_out")
    return iter(sorted(documents.items()))


def _standard_folders() -> list[tuple[Path, frozenset[str] | None]]:
    """Return the folders to search, and for the standard library the module names that belong to it."""
    paths = sysconfig.get_paths()
    sites = dict.fromkeys(Path(paths[name]) for name in ("purelib", "platlib"))  # often the same
    return [(Path(paths["stdlib"]), sys.stdlib_module_names), *((site, None) for site in sites)]


def _source_files(
    folders_and_names: Iterable[tuple[Path, frozenset[str] | None]],
    packages: Sequence[str] | None,
    preloaded: Iterable[str],
) -> dict[str, tuple[Path, bool]]:
    """Return each module's source file by name, and whether it is the `__init__` of a package.

    If two folders have the same module, the first one counts. `preloaded` packages need no file.
    """
    files: dict[str, tuple[Path, bool]] = {}
    found_packages = set(preloaded)
    for folder, names in folders_and_names:
        seen: set[tuple[int, int]] = set()
        for name, path in _children(folder):
            if (names is None or name in names) and _is_selected(name, packages):
                found_packages.add(name)
                for module, file, is_package in _sources(name, path, seen):
                    files.setdefault(module, (file, is_package))
    missing = sorted(set(packages or ()) - found_packages)
    if missing:
        raise FirthError(
            "not_found",
            "The Python package {package!r} is not installed; `pip list` shows the installed ones.",
            package=missing[0],
        )
    return files


def _is_selected(name: str, packages: Sequence[str] | None) -> bool:
    """Whether a top-level name is one of the packages, or a private part of one."""
    return packages is None or any(name == package or is_private_part_of(name, package) for package in packages)


def _children(folder: Path) -> list[tuple[str, Path]]:
    """Return the modules and packages in a folder by name, without the excluded ones."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    named = [(entry.name.removesuffix(".py"), entry) for entry in entries if "." not in entry.name.removesuffix(".py")]
    return [(name, path) for name, path in named if name.isidentifier() and not EXCLUDED.fullmatch(name)]


def _sources(name: str, path: Path, seen: set[tuple[int, int]]) -> Iterator[tuple[str, Path, bool]]:
    """Yield (module name, file, whether it is a package's `__init__`) of a module or package."""
    if path.suffix == ".py":
        package = path.name == "__init__.py"
        yield name.removesuffix(".__init__"), path, package
        return
    try:
        status = path.stat()
    except OSError:  # a broken link
        return
    if not path.is_dir() or (status.st_dev, status.st_ino) in seen:  # a link to a parent folder
        return
    seen.add((status.st_dev, status.st_ino))
    for child, child_path in _children(path):
        yield from _sources(f"{name}.{child}", child_path, seen)


def _parse_all(files: dict[str, tuple[Path, bool]], counts: Counter[str], report: Report) -> list[Module]:
    modules = []
    report.begin("docstrings", len(files), "files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escape sequences in the parsed files
        for done, (name, (path, is_package)) in enumerate(files.items(), 1):
            try:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):
                    raise OSError("not a plain file")  # reading a pipe would block
                if status.st_size > MOST_BYTES:
                    counts[f"files over {MOST_BYTES // 10**6} MB"] += 1
                else:
                    modules.append(_parse(name, is_package, path.read_bytes()))
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                counts["files that could not be read or parsed"] += 1
            if done % 100 == 0 or done == len(files):
                report.step(done)
    report.end()
    return modules


def _parse(name: str, is_package: bool, source: bytes) -> Module:
    tree = ast.parse(source)
    module = Module(name, is_package)
    text = ast.get_docstring(tree)
    if text:
        module.texts.append(("", text))
    _read_body(module, tree.body)
    return module


def _read_body(module: Module, body: Sequence[ast.AST]) -> None:
    """Collect the definitions, imports and exports at module level, including those inside `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            module.defined.add(node.name)
            module.texts.extend(_docstrings(node, node.name))
        elif isinstance(node, ast.ImportFrom):
            module.add_import(node)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            module.add_exports(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            module.added.extend(_newdoc_docstrings(module, node.value))
        else:
            for field in ("body", "handlers", "orelse", "finalbody"):
                _read_body(module, getattr(node, field, ()))


def _docstrings(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield name, text
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _docstrings(child, f"{name}.{child.name}")


def _newdoc_docstrings(module: Module, call: ast.Call) -> Iterator[tuple[str, str, str]]:
    """Yield (module, name, docstring) of an `add_newdoc` call.

    numpy calls `add_newdoc(module, name, doc)`, where doc may be (method, text) or a list of such pairs. scipy calls
    `add_newdoc(name, doc)` for the current package.
    """
    if getattr(call.func, "id", "") != "add_newdoc" or len(call.args) not in (2, 3):
        return
    *name_nodes, doc = call.args
    if not all(isinstance(node, ast.Constant) for node in name_nodes):
        return  # a name computed at run time
    names = [_first_string(node) for node in name_nodes]
    home = names[0] if len(names) == 2 else module.name.rpartition(".")[0]
    for item in doc.elts if isinstance(doc, ast.List) else [doc]:
        name = names[-1]
        if isinstance(item, ast.Tuple) and len(item.elts) == 2:
            name, item = f"{name}.{_first_string(item.elts[0])}", item.elts[1]
        yield home, name, inspect.cleandoc(_first_string(item))


def _first_string(node: ast.AST) -> str:
    """Return the first string in an expression, such as "…".format(x) or dedent("…")."""
    values = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return next((value for value in values if isinstance(value, str)), "")


def _imported_docstrings(module: str) -> Iterator[tuple[str, str, str]]:
    """Yield (module, name, docstring) of the members of an importable module that are written in C."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            members = vars(importlib.import_module(module))
    except ImportError:
        return
    for key, value in list(members.items()):
        if key.startswith("__") or isinstance(value, (types.FunctionType, types.ModuleType)) or not callable(value):
            continue
        inside = vars(value).items() if isinstance(value, type) else ()
        for part, of in ((key, value), *((f"{key}.{child}", of) for child, of in inside if not child.startswith("__"))):
            text = None if isinstance(of, types.FunctionType) else getattr(of, "__doc__", None)
            # An instance inherits the docstring of its class, which does not describe it.
            if isinstance(text, str) and (isinstance(of, type) or text != type(of).__doc__):
                yield module, part, inspect.cleandoc(text)


def _documents_by_name(modules: list[Module], counts: Counter[str]) -> dict[str, str]:
    """Return the docstrings by public name; the longest one if a name has several (two definitions, a C version)."""
    documents: dict[str, str] = {}
    public = Namespaces(modules).public_names()
    for module in modules:
        own_docstrings = [(module.name, name, text) for name, text in module.texts]
        for home, name, text in own_docstrings + module.added:
            head, dot, rest = name.partition(".")
            key = public.get((home, head), f"{home}.{head}") + dot + rest if name else home
            text = SIGNATURE.sub("", text).strip()
            if len(text.split()) < LEAST_WORDS:
                counts[f"shorter than {LEAST_WORDS} words"] += 1
            elif documents.setdefault(key, text) != text:
                counts["alternative docstrings"] += 1
                documents[key] = max(documents[key], text, key=lambda one: (len(one), one))
    return documents


def _without_duplicates(documents: dict[str, str], counts: Counter[str]) -> dict[str, str]:
    """Keep one name per docstring: the most public one."""
    owner: dict[str, str] = {}
    for key in sorted(documents, key=Namespaces.rank):
        owner.setdefault(documents[key], key)
    counts["duplicate docstrings"] += len(documents) - len(owner)
    return {key: text for text, key in owner.items()}
