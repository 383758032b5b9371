"""The page that `firth compare -o` writes, opened as a file: nothing is fetched or refused, nothing runs over."""

from __future__ import annotations

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import firth
from firth.studies import compare, write_report

WATCH = 'window.refused = []; addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective))'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    random = np.random.default_rng(0)
    words = [f"w{number}" for number in range(60)]
    models = {f"a rather long name {n}": firth.Vectors(words, random.normal(size=(60, 8))) for n in range(4)}
    titles = [" ".join(random.choice(words, 6)) for _ in range(80)]
    rows = [(str(place), f"{title}. {title} {words[place % 60]}.") for place, title in enumerate(titles)]
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(compare(models, rows), path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_in_a_browser(browser, report, scheme, width):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(WATCH)
    page.goto(report.as_uri())
    assert page.evaluate("refused") == [] and said == [] and asked == [report.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # the table alone is scrolled
    assert page.locator("figure svg").count() == 3
    drawn = page.locator("figure svg").evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().width)")
    assert all(100 < wide <= width for wide in drawn)
    weights = page.locator("td.best").evaluate_all("(all) => all.map((each) => getComputedStyle(each).fontWeight)")
    assert weights and set(weights) == {"600"}
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert (sum_of(ink) < sum_of(paper)) == (scheme == "light")
    assert Axe().run(page).violations_count == 0
    page.close()


def sum_of(color: str) -> int:
    return sum(int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(","))
