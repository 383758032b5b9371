"""The view Neighbours: what is near in several models, and adding and taking away."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from web.bench import Open, kept


def test_neighbors_in_two_models(view: Open, accessible: Any, shot: Any) -> None:
    page = view("neighbors?model=words&model=other")
    expect(page.get_by_role("heading", name="Type a word")).to_be_visible()
    page.get_by_label("Word", exact=True).fill("king")
    rows = page.get_by_role("region", name="In words").get_by_role("row")
    expect(rows).to_have_count(11)
    expect(page.get_by_role("region", name="In other").get_by_role("row")).to_have_count(11)
    by_cosine = rows.all_inner_texts()
    page.get_by_role("button", name="Dot product", exact=True).click()
    expect(page.get_by_role("button", name="Dot product", exact=True)).to_have_attribute("aria-pressed", "true")
    assert rows.all_inner_texts() != by_cosine
    expect(page).to_have_url(re.compile("word=king&metric=dot"))
    expect(page.get_by_role("img", name=re.compile("^Dot product: .*Cosine: .*Euclidean: "))).to_be_visible()
    assert kept(page, "How the metric changes the ranking as SVG").startswith(b"<svg")
    assert kept(page, "words as CSV").startswith(b"#,word,dot,by cosine,by Euclidean\r\n1,")
    accessible(page)
    shot(page, "neighbors")
    first = rows.nth(1).get_by_role("button")
    name = first.inner_text()
    first.click()
    expect(page.get_by_label("Word", exact=True)).to_have_value(name)
    page.get_by_role("button", name="Show me the command").first.click()
    expect(page.get_by_role("tabpanel").first).to_contain_text(f"{name} -k 10 --metric dot")


def test_a_word_that_is_not_known_names_those_that_are(view: Open) -> None:
    page = view("neighbors?model=words&word=kingg")
    expect(page.get_by_role("alert").first).to_contain_text("No vector for 'kingg'")
    page.get_by_role("region", name="In words").get_by_role("button", name="king", exact=True).click()
    expect(page.get_by_role("region", name="In words").get_by_role("row")).to_have_count(11)


def test_an_analogy_is_drawn(view: Open, address: str, shot: Any) -> None:
    page = view("neighbors?model=words&word=king")
    part = page.get_by_role("article", name="words: king − man + woman")
    expect(part.locator(".steps > li")).to_have_count(4)
    expect(part.locator("h4").nth(1)).to_have_text("2king − man")
    picture = part.get_by_role("img", name=re.compile("king − man \\+ woman: the nearest is"))
    expect(picture.locator("circle.given")).to_have_count(3)
    best = part.locator(".answer p").inner_text().split(",")[0]
    expect(page.get_by_role("status").or_(page.locator("output")).last).to_have_text(best)
    page.get_by_label("First word").fill("queenn")
    expect(page.locator("article").get_by_role("alert")).to_contain_text("No vector for 'queenn'")
    page.locator("article").get_by_role("button", name="queen").click()
    expect(page.get_by_role("article", name="words: queen − man + woman").locator(".steps")).to_be_visible()
    assert kept(page, "The parallelogram as PNG").startswith(b"\x89PNG")
    shot(page, "analogy")


def test_a_model_with_several_tables_is_asked_in_one_of_them(view: Open) -> None:
    page = view("neighbors?model=films")
    expect(page.get_by_role("heading", name="Analogies")).to_have_count(0)  # of films it says nothing
    page.get_by_label("Among").select_option("users")
    page.get_by_role("button", name="u1", exact=True).click()
    part = page.get_by_role("region", name="In films")
    expect(part.get_by_role("row")).to_have_count(11)
    expect(part).to_contain_text("12 users of 4 numbers")
    part.get_by_role("button", name="u3", exact=True).click()
    expect(page).to_have_url(re.compile("table=users&word=u3"))
    page.reload()
    expect(page.get_by_label("Among")).to_have_value("users")
    expect(page.get_by_role("region", name="In films").get_by_role("row")).to_have_count(11)


def test_words_that_nobody_typed_are_no_error(view: Open) -> None:
    page = view("neighbors?model=bert")
    expect(page.get_by_text("The model has no vectors for these words")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("First word").fill("zzz")
    expect(page.locator("article").get_by_role("alert")).to_be_visible()
