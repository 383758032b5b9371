"""What all views share: the navigation, light and dark, narrow pages, the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from web.bench import TOKENS, with_token


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
    page.get_by_role("button", name="Dark colors").click()
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
        "neighbors?word=king": ".orders",
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
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_an_older_page_asks_for_the_new_address(page, studio):
    page.goto(f"{studio.address}/#/data")
    refusal = {"error": "…", "error_type": "forbidden", "code": "invalid_token"}
    page.route("**/api/data/look*", lambda route: route.fulfill(status=403, json=refusal))
    page.get_by_label("A file in").select_option("root/world.txt")
    expect(page.get_by_role("heading", name="The address is incomplete")).to_be_visible()


def test_what_is_refused_for_another_reason_is_told_on_the_page(page, studio):
    page.goto(f"{studio.address}/#/data")
    refusal = {"error": "not this one", "error_type": "forbidden", "code": "forbidden"}
    page.route("**/api/data/look*", lambda route: route.fulfill(status=403, json=refusal))
    page.get_by_label("A file in").select_option("root/world.txt")
    expect(page.get_by_role("alert").first).to_have_text("not this one")


# ---- the token ----


def test_the_token_is_taken_out_of_the_address_and_kept_for_this_browser(page, studio, open_page):
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
    assert TOKENS[studio.address] not in page.url + page.content()
    other = page.context.new_page()  # as a copied address, or a link in a new tab
    other.goto(f"{studio.address}/#/map?of=index/tickets")
    expect(other.get_by_role("list", name="Colors")).to_be_visible()
    assert page.context.cookies() == []


@pytest.mark.parametrize(("colours", "width"), [("light", 1280), ("dark", 390)])
def test_without_the_token_the_page_asks_for_it(open_page, studio, accessible, shot, colours, width):
    view = {"color_scheme": colours, "viewport": {"width": width, "height": 844}}
    page = open_page(f"{studio.address}/#/search?q=refund", known=False, **view)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.reload()
    expect(page.get_by_role("heading", name="The address is incomplete")).to_be_visible()
    assert asked == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    accessible(page, toggles=False)
    shot(page, f"token-{colours}")
    field = page.get_by_label("The address, or its token")
    field.fill("wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    for given in (with_token(studio.address), TOKENS[studio.address]):
        page.evaluate("localStorage.clear()")
        page.reload()
        field.fill(given)
        page.get_by_role("button", name="Open").click()
        expect(page.locator(".hits > li").first).to_be_visible()  # the view that was asked for
        assert "token" not in page.url


def test_a_new_address_replaces_an_old_token(open_page, studio):
    page = open_page(studio.address, known=False)
    page.evaluate("localStorage.setItem('firth-token', 'of-an-earlier-start')")
    page.goto(with_token(f"{studio.address}/#/models"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
