"""Types of data: options are declared once, with the defaults of the constructor."""

from __future__ import annotations

from typing import Any

import pytest
from refusing import refuses

import firth
from firth.core import registry
from firth.core.data import ROLES, Data, FileOption
from firth.core.notebook import html_lines

TYPES = sorted({registry.method(name).data for name in registry.method_classes()}, key=lambda data: data.__name__)
every_type = pytest.mark.parametrize("data", TYPES)


class Pages(Data):
    """A type with an option of each role."""

    noun = "book"
    file_options = (
        FileOption("title", "The title column.", flag="title-column"),
        FileOption("notes", "Columns of notes.", "columns"),
        FileOption("layout", "What a line is.", "choice", ("page", "chapter")),
        FileOption("numbered", "Pages have no numbers.", "flag", flag="unnumbered"),
        FileOption("dev", "Other pages.", "source", several=True),
    )

    def __init__(
        self,
        source: Any,
        *,
        title: str | None = "name",
        notes: Any = (),
        layout: str = "page",
        numbered: bool = True,
        dev: Any = None,
    ) -> None:
        self.values = (source, title, notes, layout, numbered, dev)

    def fingerprint(self) -> str | None:
        return None


def test_values_of_flags_become_keywords():
    assert Pages.from_files(["a"], {}).values == ("a", "name", (), "page", True, None)
    unset = {"title_column": None, "notes": "", "layout": None, "unnumbered": False, "dev": None}
    assert Pages.from_files(["a"], unset).values == ("a", "name", (), "page", True, None)
    values = {"title_column": "t", "notes": "x,y", "layout": "chapter", "unnumbered": True, "dev": "b,c"}
    assert Pages.from_files(["a"], values).values == ("a", "t", ["x", "y"], "chapter", False, ["b", "c"])
    with refuses("wrong_input", detail="book", got=2):
        Pages.from_files(["a", "b"], {})


def test_data_that_shows_no_rows_shows_its_repr():
    pages = Pages("a book")
    assert pages._repr_html_() == html_lines(repr(pages))


def test_a_method_that_declares_no_data_reads_no_files():
    assert firth.Method.data is Data
    with refuses("wrong_input", detail="Data"):
        firth.Method.data.from_files(["a"], {})


def test_defaults_are_those_of_the_constructor():
    assert [option.default for option in Pages.file_options] == ["name", (), "page", True, None]
    assert [option.needed for option in Pages.file_options] == [True, False, False, False, False]
    assert not Pages.several_files and firth.Corpus.several_files


def test_a_declaration_that_contradicts_the_constructor_is_refused():
    with pytest.raises(TypeError, match="the keyword colour"):
        type("Painted", (Pages,), {"file_options": (FileOption("colour", "The colour column."),)})
    with pytest.raises(TypeError, match="role must be one of"):
        FileOption("colour", "The colour column.", "colum")


@every_type
def test_every_option_is_described(data):
    for option in data.file_options:
        assert option.role in ROLES and option.help[0].isupper() and option.help.endswith(".")
        assert bool(option.choices) == (option.role == "choice")
        assert not option.choices or option.default == option.choices[0]
    flags = [option.flag for option in data.file_options]
    assert len(flags) == len(set(flags)) and getattr(firth, data.__name__) is data
