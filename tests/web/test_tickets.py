"""A new user's task, from an empty workbench to the answer: "I have a csv of support tickets: find groups and similar
tickets"."""

from __future__ import annotations

import csv

import pytest
from playwright.sync_api import expect
from web.bench import running
from web.tickets import KINDS, write_tickets

JOB = 90_000


@pytest.fixture
def empty():
    """A workbench without models and without a folder."""
    with running() as address:
        yield address


def test_a_csv_of_tickets_becomes_groups_and_similar_tickets(open_page, empty, tmp_path, shot):
    path = write_tickets(tmp_path / "support.csv")
    with path.open(encoding="utf-8") as file:
        kinds = {row["id"]: row["kind"] for row in csv.DictReader(file)}
    page = open_page(empty)

    # She drops her file, sees her tickets, and goes on to train.
    page.get_by_role("link", name="Choose data").click()
    page.get_by_label("Data file").set_input_files(path)
    expect(page.get_by_role("region", name="Rows")).to_contain_text("T0001")
    page.get_by_role("link", name="Train on support.csv").click()
    page.get_by_role("checkbox", name="lsa", exact=True).check(force=True)
    page.get_by_label("lsa: dim").fill("20")
    page.get_by_role("button", name="Start lsa").click()
    expect(page.locator(".job.finished")).to_have_count(1, timeout=JOB)

    # The tickets go into an index, by which they can be found.
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("Column of text names").select_option("id")
    for name in ("year", "priority"):
        page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name="Create the index").click()
    expect(page.get_by_role("searchbox")).to_be_visible(timeout=JOB)
    page.get_by_role("searchbox").fill("I can't get into my account")
    expect(page.locator(".hits > li")).to_have_count(10)
    keys = page.locator(".hits strong").all_inner_texts()
    assert sum(kinds[key] == "login" for key in keys) >= 8

    # The groups, found without their names being known; each is named by its own words.
    page.get_by_role("searchbox").fill("")
    page.get_by_role("link", name="See them on a map").click()
    page.get_by_label("How many groups").fill("5")
    legend = page.get_by_role("list", name="Colors").get_by_role("button")
    expect(legend).to_have_count(5)
    names = legend.all_inner_texts()
    own = {kind: {word for part in parts for said in part for word in said.split()} for kind, parts in KINDS.items()}
    found = {
        max(own, key=lambda kind: sum(word in own[kind] for word in name.replace(",", " ").split())) for name in names
    }
    assert found == set(KINDS), names

    # What is like one ticket.
    asked = next(key for key, kind in kinds.items() if kind == "printer")
    page.get_by_label("Find").fill(asked)
    page.get_by_role("region", name="Found in").get_by_role("button", name=asked, exact=True).click()
    near = page.get_by_role("region", name="Point in")
    expect(near.get_by_role("heading", name=asked)).to_be_visible()
    expect(near.get_by_role("listitem")).to_have_count(12)
    about = sum(
        any(word in text for word in KINDS["printer"][0]) for text in near.get_by_role("listitem").all_inner_texts()
    )
    assert about >= 11
    shot(page, "tickets-groups")
