"""The view Latent space: walks among codes."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from web.bench import Open, kept, settled


def test_a_walk_among_digits(view: Open, accessible: Any, shot: Any) -> None:
    page = view("latent?model=digits")
    point = page.get_by_role("application")
    picture = page.get_by_role("img", name="The decoded image").locator("canvas")
    expect(picture).to_be_visible()
    settled(page)
    before = pixels(picture)
    point.focus()
    for _ in range(6):
        page.keyboard.press("Shift+ArrowRight")
    settled(page)
    keyed = pixels(picture)
    assert keyed != before
    expect(page).to_have_url(re.compile("at="))
    box = point.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.3, steps=8)
    page.mouse.up()
    settled(page)
    assert pixels(picture) not in (before, keyed)
    expect(page.get_by_role("heading", name="Grid of decoded images")).to_be_visible()
    accessible(page)
    shot(page, "latent")
    for name in ("Latent space of the rows", "Decoded image", "Grid of decoded images"):
        assert kept(page, f"{name} as PNG").startswith(b"\x89PNG")
    assert kept(page, "Grid of decoded images as SVG").count(b"<rect") == 121 * 64
    page.get_by_role("button", name="Mean").click()
    settled(page)
    assert pixels(picture) == before


def pixels(canvas: Any) -> str:
    return str(canvas.evaluate("canvas => canvas.toDataURL()"))


def test_a_walk_among_rows(view: Open, accessible: Any) -> None:
    page = view("latent?model=people")
    row = page.get_by_text("Decoded row").locator("xpath=../../..")
    expect(row.get_by_text("age", exact=True)).to_be_visible()
    before = row.inner_text()
    slider = page.get_by_role("slider").nth(0)
    slider.focus()
    page.keyboard.press("End")
    settled(page)
    assert row.inner_text() != before
    page.get_by_label("Rows to show").select_option("root/people.csv")
    page.get_by_label("Colored by").select_option("city")
    expect(page.locator(".legend li")).to_have_count(2)
    assert kept(page, "The row as CSV").startswith(b"age,pay,city\r\n")
    accessible(page)


def test_an_autoencoder_needs_a_table(view: Open) -> None:
    page = view("latent?model=plain")
    expect(page.get_by_role("heading", name="This autoencoder has not stored the codes of its rows")).to_be_visible()
    page.get_by_label("Rows to show").select_option("root/people.csv")
    expect(page.get_by_role("heading", name="Latent space of the rows")).to_be_visible()
