"""The view Search: a box, results with marks, filters."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from web.bench import running

import firth


def test_tickets_are_found_marked_and_filtered(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/search")
    expect(page.get_by_role("heading", name="Ask tickets")).to_be_visible()
    page.get_by_role("searchbox").fill("charged the wrong amount")
    hits = page.locator(".hits > li")
    expect(hits).to_have_count(10)
    expect(hits.first.locator("mark", has_text="amount").first).to_be_visible()
    shot(page, "search")
    accessible(page)
    only = page.get_by_role("group", name="priority")
    only.get_by_role("button", name="high").click()
    expect(hits.locator(".tag", has_text="priority high")).to_have_count(10)
    page.get_by_label("year from").fill("2023")
    page.keyboard.press("Tab")
    expect(hits.locator(".tag", has_text="year 2019")).to_have_count(0)
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text('year >= 2023 and priority == "high"')
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Words", exact=True).click()
    with page.expect_download() as kept:
        page.get_by_role("button", name="Results as CSV").click()
    assert kept.value.path().read_text(encoding="utf-8").startswith("rank,score,key,text,year,priority,kind")


def test_the_chosen_columns_of_a_new_index_are_seen(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/search?model=lsa&data=root/tickets.csv&key=id")
    page.get_by_role("button", name="New index").click()
    form = page.get_by_role("region", name="Create an index")
    chip = form.get_by_role("button", name="year", exact=True)
    look = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).borderColor]"
    before = chip.evaluate(look)
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    page.mouse.move(0, 0)
    assert chip.evaluate(look) != before
    expect(chip.locator("svg")).to_be_visible()  # not by colour alone
    form.get_by_role("button", name="kind", exact=True).click()
    expect(form).to_contain_text("Stored: year, kind")
    shot(page, "new-index")
    accessible(page)


def test_nothing_found_is_said(page, studio):
    page.goto(f"{studio.address}/#/search?mode=words&q=zebra")
    expect(page.get_by_role("status").filter(has_text="No results.")).to_be_visible()


def test_a_column_of_any_name_filters(open_page, tmp_path):
    with firth.Index.create(tmp_path / "notes", dim=2) as index:
        about = {
            "text": ["a refund", "no refund"],
            "due date": ["May", "June"],
            "class": ["it's", "b"],
            "amount €": [5, 7],
        }
        index.add(["n1", "n2"], [[1, 0], [0, 1]], about)
    with running(tmp_path / "notes") as address:
        page = open_page(f"{address}/#/search?q=refund")
        expect(page.locator(".hits > li")).to_have_count(2)
        page.get_by_role("button", name="May").click()
        page.get_by_role("button", name="it's").click()
        page.get_by_label("amount € to").fill("6")
        page.keyboard.press("Tab")
        expect(page.locator(".hits strong")).to_have_text(["n1"])


@pytest.mark.parametrize("before", ["nothing to see here ", "。何もない。"])
def test_a_long_text_is_shown_from_where_it_matches(open_page, tmp_path, before):
    with firth.Index.create(tmp_path / "notes", dim=2) as index:
        index.add(["n1"], [[1, 0]], {"text": [f"{before * 60}a refund came late"]})
    with running(tmp_path / "notes") as address:
        page = open_page(f"{address}/#/search?q=refund")
        expect(page.locator(".hits mark")).to_have_text("refund")
        expect(page.locator(".hits .text")).to_contain_text("…")
        box, mark = (page.locator(name).bounding_box() for name in (".hits .text", ".hits mark"))
        assert mark["y"] + mark["height"] <= box["y"] + box["height"]


def test_marks_stand_where_the_words_do_behind_letters_outside_the_first_plane(open_page, tmp_path):
    with firth.Index.create(tmp_path / "notes", dim=2) as index:
        index.add(["n1"], [[1, 0]], {"text": ["🙂🙂 a refund 🎉 please"]})
    with running(tmp_path / "notes") as address:
        page = open_page(f"{address}/#/search?q=refund")
        expect(page.locator(".hits mark")).to_have_text("refund")
