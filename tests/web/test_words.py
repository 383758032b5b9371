"""The view Masks and next words: blanks, writing, answers."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from web.bench import Open, kept, settled


def test_blanks_are_filled(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words?kind=fill")
    expect(page.get_by_role("region", name="Blank 1").get_by_role("button")).to_have_count(8)
    accessible(page)
    shot(page, "fill")
    word = page.get_by_role("region", name="Blank 1").get_by_role("button").nth(1)
    taken = f"the {word.locator('.word').inner_text()}".replace(" ##", "")  # of ##s with the comes thes
    word.click()
    expect(page.get_by_label("Sentence with blanks")).to_have_value(f"{taken} sleeps in the [MASK] .")
    expect(page.get_by_role("heading", name="The blank")).to_be_visible()
    assert kept(page, "Words and probabilities as CSV").startswith(b"blank,token,probability\r\n1,")
    page.get_by_label("Sentence with blanks").fill("the king sleeps")
    expect(page.get_by_role("heading", name="Hide a word")).to_be_visible()
    page.get_by_label("Sentence with blanks").evaluate("input => input.setSelectionRange(4, 8)")
    page.get_by_role("button", name="Blank", exact=True).click()
    expect(page.get_by_label("Sentence with blanks")).to_have_value("the [MASK] sleeps")


def test_a_next_sentence_is_predicted(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words?kind=next")
    prediction = page.get_by_role("region", name="The prediction")
    bars = prediction.get_by_role("list", name="Predictions for the second text").get_by_role("listitem")
    expect(bars).to_have_count(2)
    settled(page)
    accessible(page)
    shot(page, "next")
    before = prediction.get_by_role("heading").inner_text()
    first = page.get_by_role("textbox", name="First text").input_value()
    page.get_by_role("button", name="Swap").click()
    expect(page.get_by_role("textbox", name="Second text")).to_have_value(first)
    page.get_by_role("textbox", name="First text").fill("the king the king the king")
    expect(prediction.get_by_role("heading")).not_to_have_text(before)
    expect(page).to_have_url(re.compile("first=the"))


def test_text_is_written_token_by_token(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words?kind=write")
    page.get_by_label("Prompt").fill("the old king")
    bars = page.get_by_role("list", name="Most probable next tokens").get_by_role("button")
    expect(bars).to_have_count(10)
    settled(page)
    bars.nth(2).click()
    text = page.get_by_label("The text so far").get_by_role("button")
    expect(text).to_have_count(1)
    settled(page)
    page.get_by_role("button", name="Sample one").click()
    expect(text).to_have_count(2)
    page.get_by_role("button", name="Write 20 tokens").click()
    expect(text).to_have_count(22)
    accessible(page)
    shot(page, "write")
    written = page.get_by_label("The text so far").inner_text()
    page.reload()
    expect(text).to_have_count(22)
    assert page.get_by_label("The text so far").inner_text() == written
    text.nth(1).click()
    expect(text).to_have_count(1)
    page.get_by_label("Temperature").fill("2")
    expect(page).to_have_url(re.compile("temperature=2"))
    assert kept(page, "Next tokens as CSV").startswith(b"token,probability,chance\r\n")
    page.get_by_role("button", name="Start over").click()
    expect(text).to_have_count(0)


def test_an_answer_is_marked(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words")
    page.get_by_role("button", name="Find the answer").click()
    page.get_by_label("Question", exact=True).fill("who sleeps ?")
    page.get_by_label("Passage").fill("🙂 the old king sleeps in the castle")
    answer = page.get_by_role("region", name="The answer")
    expect(answer.get_by_role("heading")).not_to_be_empty()
    settled(page)
    assert answer.locator("mark").inner_text() == answer.get_by_role("heading").inner_text()
    accessible(page)
    shot(page, "answer")
    page.get_by_label("Question", exact=True).fill("")
    expect(page.get_by_text("Enter a question, and a passage that may answer it.")).to_be_visible()
