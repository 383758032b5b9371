"""Docstrings of installed packages as documents: which are read, their names, and unreadable files."""

from __future__ import annotations

import inspect
import os
import pydoc
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

from firth.core.report import Silence
from firth.data import docstrings
from firth.data.docstrings import python_docstrings


class Notes(Silence):
    """Records notes and progress."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.steps: list[float] = []

    def step(self, done: float, **metrics: float) -> None:
        self.steps.append(done)

    def note(self, text: str, code: str = "note") -> None:
        self.notes.append((code, text))


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def documents(root: Path, report: Notes | None = None, packages: list[str] | None = None) -> dict[str, str]:
    pairs = list(python_docstrings(packages, folders=[root], report=report or Notes()))
    assert pairs == sorted(pairs)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def function(name: str, text: str) -> str:
    return f"def {name}():\n    '''{text}'''\n"


def test_objects_have_their_public_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "shop/__init__.py": '"""A shop that sells all things."""\n'
            "if True:\n    from ._till import pay as pay_now, _open\n"
            "from .goods import *\nfrom shop._deep.chain import middle\nfrom os import path\n",
            "shop/_till.py": function("pay", "Pays for what is in the basket.")
            + function("_open", "Opens the till for the clerk."),
            "shop/goods.py": "__all__ = ['Apple']\n"
            "class Apple:\n    '''A round fruit that one can eat.'''\n"
            "    def peel(self):\n        '''\n        Takes off the skin with a knife.\n\n"
            "          Slowly.\n        '''\n" + function("hidden", "Not given to those who import everything."),
            "shop/_deep/chain.py": "from .end import middle\n",
            "shop/_deep/end.py": "async " + function("middle", "Stands at the end of a chain."),
            "shop/public.py": "from ._till_of_public import twin\nfrom .goods import Apple\n",
            "shop/_till_of_public.py": function("twin", "Kept in a private neighbour of its module."),
            "single.py": function("alone", "Stands in a module without any package."),
        },
    )
    assert documents(tmp_path) == {
        "shop": "A shop that sells all things.",
        "shop.pay_now": "Pays for what is in the basket.",
        "shop._till._open": "Opens the till for the clerk.",
        "shop.Apple": "A round fruit that one can eat.",
        "shop.Apple.peel": "Takes off the skin with a knife.\n\n  Slowly.",
        "shop.goods.hidden": "Not given to those who import everything.",
        "shop.middle": "Stands at the end of a chain.",
        "shop.public.twin": "Kept in a private neighbour of its module.",
        "single.alone": "Stands in a module without any package.",
    }
    assert list(documents(tmp_path, packages=["single"])) == ["single.alone"]


def test_circular_imports_are_resolved(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ring/__init__.py": "from .a import *\nfrom .a import lost\n",
            "ring/a.py": "from .b import *\nfrom .b import lost\n",
            "ring/b.py": "from .a import *\nfrom .a import lost\nfrom . import *\n"
            + function("found", "Reached through a circle of imports."),
        },
    )
    assert documents(tmp_path) == {"ring.found": "Reached through a circle of imports."}


def test_docstrings_of_add_newdoc_calls(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "grid/__init__.py": "from .core import cells\n",
            "grid/core.py": "from ._c import cells\n",
            "grid/docs/_add.py": "add_newdoc('grid._c', 'cells', '''\n    All the cells of a grid.\n    ''')\n"
            "add_newdoc('grid._c', 'cells', ('count', '''count($self, /)\n--\n\nHow many cells there are now.'''))\n"
            "add_newdoc('grid._c', 'cells', [('first', 'The first of all the cells.'), ('no', 'short')])\n"
            "add_newdoc('gamma', dedent('''A function of the docs package.'''))\n"
            "add_newdoc(computed, 'x', 'A name that nobody can know here.')\n",
        },
    )
    assert documents(tmp_path) == {
        "grid.cells": "All the cells of a grid.",
        "grid.cells.count": "How many cells there are now.",
        "grid.cells.first": "The first of all the cells.",
        "grid.docs.gamma": "A function of the docs package.",
    }


def test_no_code_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    write(
        tmp_path / "lib",
        {"evil.py": f'"""Would leave a trace when run."""\nopen({str(marker)!r}, "w")\nraise SystemExit\n'},
    )
    assert documents(tmp_path / "lib") == {"evil": "Would leave a trace when run."}
    assert not marker.exists()


def test_tests_vendored_short_and_duplicate_docstrings_are_left_out(tmp_path: Path) -> None:
    same = "Said in two places with one text."
    write(
        tmp_path,
        {
            "pkg/__init__.py": function("tiny", "Only four words here."),
            "pkg/a.py": function("better", same),
            "pkg/_b.py": function("worse", same),
            "pkg/c.py": "if 1:\n    def f(): 'Says a few words less.'\n"
            "else:\n    def f(): 'Says a few words more than that.'\n",
            "pkg/tests/helpers.py": function("helper", "A helper of the tests only."),
            "pkg/test_it.py": function("test", "A test that shows something true."),
            "pkg/_vendor/other.py": function("other", "A copy of another package here."),
            "pkg/testing.py": function("check", "Given to users for their tests."),
            "pkg-1.0.dist-info/odd.py": function("odd", "Not a module that one could import."),
        },
    )
    report = Notes()
    assert documents(tmp_path, report) == {
        "pkg.a.better": same,
        "pkg.c.f": "Says a few words more than that.",
        "pkg.testing.check": "Given to users for their tests.",
    }
    text = "3 docstrings; left out: 1 alternative docstrings, 1 duplicate docstrings, 1 shorter than 5 words."
    assert report.notes == [("docstrings_left_out", text)]


def test_unreadable_files_are_counted_and_the_others_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {
            "pkg/good.py": function("good", "This one can be read well."),
            "pkg/latin.py": "# -*- coding: latin-1 -*-\n'''Caf\xe9 in an old encoding here.'''\n".encode("latin-1"),
            "pkg/escape.py": "'''A text with \\d an odd escape.'''\n",
            "pkg/syntax.py": "def broken(:\n",
            "pkg/python2.py": "print 'hello'\n",
            "pkg/bytes.py": b"'''\xff\xfe not UTF-8 at all, is it'''\n",
            "pkg/null.py": b"x = 1\0\n",
            "pkg/deep.py": "(" * 20_000 + ")" * 20_000,
            "pkg/unknown.py": "# coding: no-such-encoding\n'''Words in an encoding nobody knows.'''\n",
            "pkg/large.py": "'''A file that is too large.'''\n" + "#" * 200_000,
            "pkg/empty.py": "",
        },
    )
    (tmp_path / "pkg/folder.py").mkdir()
    (tmp_path / "pkg/nowhere.py").symlink_to(tmp_path / "missing")
    (tmp_path / "pkg/gone").symlink_to(tmp_path / "missing")
    (tmp_path / "pkg/loop").symlink_to(tmp_path / "pkg")
    os.mkfifo(tmp_path / "pkg/pipe.py")
    monkeypatch.setattr(docstrings, "MOST_BYTES", 100_000)
    report = Notes()
    assert documents(tmp_path, report) == {
        "pkg.good.good": "This one can be read well.",
        "pkg.latin": "Café in an old encoding here.",
        "pkg.escape": "A text with \\d an odd escape.",
    }
    ((code, text),) = report.notes
    assert code == "docstrings_left_out" and "1 files over " in text
    # syntax, python2, bytes, null, deep, unknown, folder, nowhere, pipe
    assert "9 files that could not be read or parsed" in text
    assert report.steps[-1] == 14


def test_unknown_package_is_refused(tmp_path: Path) -> None:
    with refuses("not_found", package="nosuchthing"):
        python_docstrings(["json", "nosuchthing"], report=Notes())
    assert documents(tmp_path) == {}


def test_docstrings_of_the_standard_library_equal_those_of_inspect() -> None:
    docstrings_by_name = dict(python_docstrings(["json", "statistics"], report=Notes()))
    assert {"json", "json.dumps", "json.JSONDecoder.decode", "statistics.median"} <= set(docstrings_by_name)
    assert len(docstrings_by_name) > 50
    for key, text in docstrings_by_name.items():
        assert inspect.cleandoc(pydoc.locate(key).__doc__ or "").strip() == text, key


def test_objects_written_in_c_are_included() -> None:
    packages = ["numpy", "builtins", "math", "datetime", "collections"]
    by_name = dict(python_docstrings(packages, report=Notes()))
    # Defined in `_datetime` and `_collections`.
    assert {"datetime.date.today", "collections.deque.appendleft"} <= set(by_name)
    for name in ("median", "arange", "sin", "ndarray.sort", "linalg.svd", "random.normal"):
        member = pydoc.locate(f"numpy.{name}")
        assert by_name[f"numpy.{name}"].split() == (inspect.getdoc(member) or "").split(), name
    assert by_name["math.sqrt"] == "Return the square root of x."
    assert by_name["builtins.str.split"].startswith("Return a list of the substrings")
    texts = set(by_name.values())
    for name in np.__all__:  # every function of numpy's own namespace, under its name or that of an alias
        member = getattr(np, name)
        text = (inspect.getdoc(member) or "").strip()
        if isinstance(member, np.ufunc) or (inspect.isfunction(member) and len(text.split()) >= 5):
            assert text in texts or f"numpy.{name}" in by_name, name
