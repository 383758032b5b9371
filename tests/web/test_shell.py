"""What all views share: the navigation, light and dark, narrow pages, the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


def test_views_are_reached_by_links_and_addresses(page, studio):
    for title in ("Train", "Map", "Compare", "Search", "Data"):
        page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.get_by_role("navigation").get_by_role("link", name=title, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        assert page.title() == f"{title} · Firth"
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")


def test_what_was_chosen_goes_along(page, studio):
    page.goto(f"{studio.address}/#/data")
    page.get_by_label("A file in").select_option("root/world.txt")
    page.get_by_role("link", name="Train on world.txt").click()
    expect(page.get_by_role("combobox", name="Data", exact=True)).to_have_value("root/world.txt")


def test_dark_is_the_systems_and_then_ones_own(open_page, studio):
    page = open_page(studio.address, color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Dark colours").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


@pytest.mark.parametrize("width", [800, 390])
def test_a_narrow_page_has_no_sideways_scrolling(open_page, studio, shot, width):
    page = open_page(studio.address, viewport={"width": width, "height": 844})
    views = {
        "models": ".cards",
        "data?data=root%2Ftickets.csv": ".u-legend",
        "train?method=skipgram&data=root%2Fworld.txt": ".options",
        "map": ".legend",
        "neighbours?word=king": ".orders",
        "compare?data=root%2Ftickets.csv": ".controls",
        "search?q=refund": ".hits",
    }
    for view, shown in views.items():
        page.goto(f"{studio.address}/#/{view}")
        page.locator(shown).first.wait_for()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{view} is {wide} pixels wide"
        assert page.get_by_role("banner").bounding_box()["height"] < 100  # it stays while the page is scrolled
        current = page.get_by_role("navigation").locator("[aria-current]").bounding_box()
        assert current["x"] >= 0 and current["x"] + current["width"] <= width
        shot(page, f"narrow-{width}-{view.partition('?')[0]}")


def test_the_keyboard_reaches_the_content(page):
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_an_older_page_is_told_to_load_again(page, studio):
    page.route("**/api/data/look*", lambda route: route.fulfill(status=403, body="{}"))
    page.goto(f"{studio.address}/#/data")
    page.get_by_label("A file in").select_option("root/world.txt")
    expect(page.get_by_role("alert").first).to_contain_text("load this page again")
