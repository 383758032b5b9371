"""A workbench with small models, and a browser that a person could sit at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from web.bench import TOKENS, firth_command, running, with_token
from web.tickets import write_tickets

import firth
from firth.data.world import World, write_analogies

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),  # WebGL without a GPU
)
# Told by the page itself: what its policy refused.
WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(event.violatedDirective + " " + event.blockedURI));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if CHROMIUM is None else ():
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="did not run: no browser"))


class Studio(NamedTuple):
    """What runs, and the folder it was given as --root."""

    address: str
    root: Path


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data that can be picked."""
    folder = tmp_path_factory.mktemp("root")
    world = World(seed=5)
    (folder / "world.txt").write_text("\n".join(world.sentences(6000)) + "\n", encoding="utf-8")
    write_analogies(folder / "analogies.txt", world.analogies(200))
    write_tickets(folder / "tickets.csv")
    return folder


@pytest.fixture(scope="session")
def studio(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """`firth studio` with two models of words and an index of tickets, in a process of its own."""
    folder = tmp_path_factory.mktemp("models")
    for method in (firth.SkipGram(dim=24, epochs=3, min_count=3), firth.GloVe(dim=24, epochs=6, min_count=3)):
        method.fit(firth.Corpus(root / "world.txt")).save(folder / method.method_name())
    tickets = firth.Corpus(root / "tickets.csv", column="text")
    firth.LSA(dim=16).fit(tickets).save(folder / "lsa")
    arguments = ["index", "build", folder / "lsa", root / "tickets.csv", "--column=text", "--key=id"]
    firth_command(*arguments, "--attributes=year,priority,kind", "-o", folder / "tickets")
    with running(*sorted(folder.iterdir()), "--root", root) as address:
        yield Studio(address, root)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


def is_wrong(said: Any) -> bool:
    """Errors, but for the browser's own note that the server refused something, which the page tells the person."""
    return said.type == "error" and not ("status of 4" in said.text and "/api/" in said.location["url"])


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(address, **settings)`: a page at 1280 × 860, with its server's token unless `known` is False. At the
    end nothing may have gone wrong in any of them."""
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)  # a busy machine is no fault of the page
    contexts, wrong = [], list[str]()

    def opened(address: str, known: bool = True, **settings: Any) -> Any:
        plain = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**plain, **settings})
        contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(with_token(address) if known else address)
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            wrong += page.evaluate("window.refused")
        context.close()
    assert wrong == []


@pytest.fixture
def page(open_page: Callable[..., Any], studio: Studio) -> Any:
    """The workbench, light, as a person first sees it."""
    return open_page(studio.address, color_scheme="light")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model for each view that looks into models, and a table to walk in."""
    from gallery import gallery, people
    from serving import serving

    root = tmp_path_factory.mktemp("tables")
    columns = people().to_dict()
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (root / "people.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    with serving(models=gallery(tmp_path_factory.mktemp("gallery")), root=root) as client:
        yield known(client)


@pytest.fixture(scope="session")
def bare() -> Iterator[str]:
    """A server without any model."""
    from serving import serving

    with serving() as client:
        yield known(client)


def known(client: Any) -> str:
    """The address of a server in this process."""
    address = str(client.base_url).rstrip("/")
    TOKENS[address] = client.settings.token
    return address


@pytest.fixture
def view(open_page: Callable[..., Any], address: str) -> Callable[..., Any]:
    """`view("senses?word=bank")`"""
    return lambda where, **settings: open_page(f"{address}/#/{where}", **{"color_scheme": "light", **settings})


@pytest.fixture
def shot(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Any, str], Path]:
    """`shot(page, name)` keeps a picture of the page: in $FIRTH_SHOTS, where that is set."""
    folder = Path(os.environ.get("FIRTH_SHOTS") or tmp_path)

    def taken(page: Any, name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(folder / f"{name}.png"))
        return folder / f"{name}.png"

    return taken


@pytest.fixture
def accessible() -> Callable[..., None]:
    """`accessible(page)`: axe finds nothing to say, in light and in dark; `toggles=False`: as it is now."""
    from axe_playwright_python.sync_playwright import Axe

    def checked(page: Any, toggles: bool = True) -> None:
        for _ in range(2 if toggles else 1):
            found = Axe().run(page).response["violations"]
            told = [
                f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0].get('failureSummary', '')}"
                for one in found
            ]
            assert told == []
            if toggles:
                page.get_by_role("button", name="Dark colors").click()

    return checked
