"""The documentation: builds without a warning, loads nothing from elsewhere, is complete, and its examples run.

In the pages, blocks marked `python` are run in order, one namespace a page. A `text` block right behind one is what
it prints, where … stands for anything. Of a block of the class `sample`, what one run printed, only the number of
lines must be right: threads that race give other numbers each time.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

import firth
from firth.cli.main import cli
from firth.core import registry
from firth.core.errors import CODES
from firth.core.options import options_of
from firth.kernels.blocks import STORAGES
from firth.transformers.families import DECODERS, ENCODER_DECODERS, ENCODERS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "results"} & set(path.relative_to(DOCS).parts))
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```(?:text|(?P<sample>\{code-block\} text\n:class: sample\n))\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
SECTIONS = ("formula", "worked-example", "when-to-use-it", "options", "measured-result")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", f"{folder}/doctrees"]
    environment = {**os.environ, "PYTHONPATH": str(Path(firth.__file__).parents[1])}
    done = subprocess.run([*command, str(DOCS), f"{folder}/html"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_files_lists_the_architectures_that_open() -> None:
    """`python tests/docs/architectures.py` writes the table."""
    from docs.architectures import TABLE, table

    found = TABLE.search((DOCS / "files.md").read_text(encoding="utf-8"))
    assert found is not None and found[0] == table()


class Loaded(HTMLParser):
    """What a browser fetches by itself when it opens a page; links that a reader may follow are not of that kind."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.formulas = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values["id"]} if "id" in values else set()
        self.formulas += tag == "math"
        if tag != "a":
            self.addresses += [values[name] for name in ("src", "href", "srcset", "data", "poster") if name in values]


def parsed(page: Path) -> Loaded:
    found = Loaded()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(PAGES)
    elsewhere = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
    loaded = [(page.name, address) for page in pages for address in parsed(page).addresses]
    assert loaded
    assert [each for each in loaded if elsewhere.match(each[1])] == []


def test_stylesheets_load_nothing_from_elsewhere(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    elsewhere = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*")
    found = {path.name: elsewhere.findall(path.read_text(encoding="utf-8")) for path in styles}
    assert styles
    assert {name: urls for name, urls in found.items() if urls} == {}


@pytest.mark.parametrize("name", sorted(registry.method_classes()))
def test_every_method_has_its_page(site: Path, name: str) -> None:
    page = parsed(site / "methods" / f"{name}.html")
    assert set(SECTIONS) <= page.ids
    assert page.formulas > 0
    text = (site / "methods" / f"{name}.html").read_text(encoding="utf-8")
    for option in options_of(registry.method(name)):
        assert f">{option.name}<" in text, f"the table lacks {option.name}"


def test_every_code_is_on_the_page_of_errors(site: Path) -> None:
    text = (site / "errors.html").read_text(encoding="utf-8")
    assert [code for code in CODES if f">{code}<" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        printed = io.StringIO()
        code = compile("\n" * (line - 1) + block["code"], str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block["output"] is not None:
            found = printed.getvalue()
            right = same_length if block["sample"] else matches
            assert right(block["output"], found), f"{page.name}, line {line} prints:\n{found}"


def matches(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def same_length(expected: str, printed: str) -> bool:
    return len(expected.strip().splitlines()) == len(printed.strip().splitlines())


def test_matching_tells_right_from_wrong() -> None:
    assert matches("river  0.9…\n", "river  0.9871\n")
    assert not matches("river  0.9…\n", "water  0.9871\n")
    assert not matches("1\n", "1\n2\n")
    assert same_length("1\n2\n", "3\n4\n")
    assert not same_length("1\n2\n", "3\n")


def test_every_public_class_has_a_threading_rule() -> None:
    rules = {
        name
        for line in (DOCS / "threads.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    public = {name for name in firth.__all__ if isinstance(getattr(firth, name), type)}
    methods = {name for name in public if issubclass(getattr(firth, name), firth.Method)}  # one rule for all
    models = {name for name in public if issubclass(getattr(firth, name), firth.Model)}  # likewise
    assert len(methods) > 30 and "Method" in rules and public - methods - models <= rules


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md"], ids=lambda page: page.stem)
def test_commands_within_sentences_are_real(page: Path) -> None:
    """Of each `firth …`, the command and its flags exist; arguments may be missing."""
    for line in re.findall(r"`firth ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
        command: click.Command = cli
        for word in shlex.split(line.partition("…")[0]):
            if word.startswith("--"):
                flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts, "--help")}
                assert word.partition("=")[0] in flags, line
            elif isinstance(command, click.Group) and re.fullmatch("[a-z][a-z0-9_-]*", word):
                found = command.get_command(click.Context(command), word)
                assert found is not None, line
                command = found


def test_the_pages_list_every_network_that_opens() -> None:
    text = (DOCS / "files.md").read_text(encoding="utf-8")
    types = {*ENCODERS, *DECODERS, *ENCODER_DECODERS}
    assert len(types) > 15 and [name for name in types if f"`{name}`" not in text] == []
    assert [name for name in STORAGES if name not in text] == []


def test_the_installation_lists_every_extra() -> None:
    text = (DOCS / "install.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = re.findall(r"^(\w+) = ", section, re.MULTILINE)
    assert len(extras) > 5 and [name for name in extras if f"| `{name}` |" not in text] == []


def test_the_road_leads_to_every_method() -> None:
    text = (DOCS / "road.md").read_text(encoding="utf-8")
    assert [name for name in registry.method_classes() if f"](methods/{name}.md" not in text] == []


def test_every_picture_is_on_its_page() -> None:
    text = (DOCS / "pictures.md").read_text(encoding="utf-8")
    assert [name for name in firth.maps.__all__ if name.startswith("plot_") and f"`{name}`" not in text] == []
    kinds = cli.get_command(click.Context(cli), "plot")
    assert isinstance(kinds, click.Group)
    assert [name for name in kinds.commands if f"`firth plot {name}`" not in text] == []


def commands() -> list[str]:
    """Every `$ firth …` line of the pages."""
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").split("\n")]
    return [line[2:] for line in lines if line.startswith("$ firth ")]


@pytest.mark.parametrize("line", commands())
def test_commands_are_real(line: str) -> None:
    """Names, arguments and options parse; nothing is run."""
    command: click.Command = cli
    context = command.make_context("firth", shlex.split(line)[1:])
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        command = found
