"""The view Senses; a class is shown why bank has two meanings."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from web.bench import Open, kept, settled


def test_a_class_is_shown_why_bank_has_two_meanings(view: Open, accessible: Any, shot: Any) -> None:
    """From the opened page to an argument: in the input all places are alike; in the last layer the sentences of one
    meaning are together."""
    page = view("")
    page.get_by_role("navigation").get_by_role("link", name="Senses").click()
    page.get_by_label("Model").select_option("minilm")
    for place, text in enumerate(
        (
            "They moored the boat at the bank of the river.",
            "Willows stand on the bank of the stream.",
            "My bank charges a fee for every payment.",
            "The bank gave them a loan to buy the house.",
        ),
        1,
    ):
        page.get_by_label(f"Sentence {place}", exact=True).fill(text)
    page.get_by_label("Word", exact=True).fill("bank")
    settled(page)
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("In the input, which depends only on the word and its position,")).to_be_visible()
    first = distances(page)
    page.keyboard.press("End")
    expect(page.get_by_text(re.compile("^In layer 6, 1 and 2 are closest"))).to_be_visible()
    last = distances(page)
    apart = [last[pair] for pair in ((0, 2), (0, 3), (1, 2), (1, 3))]
    assert max(first.values()) < 0.1 and last[0, 1] < min(apart) and last[2, 3] < min(apart)
    trajectories = re.compile("^Trajectories of 4 occurrences of bank through 7 layers")
    expect(page.get_by_role("img", name=trajectories)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Distances by layer. In the last: 1–2"))).to_be_visible()
    accessible(page)
    shot(page, "senses")
    assert kept(page, "Trajectories of “bank” through the layers as SVG").startswith(b"<svg")
    assert kept(page, "Distances by layer as PNG").startswith(b"\x89PNG")
    assert len(kept(page, "Distances of all layers as CSV").decode().splitlines()) == 1 + 7 * 6
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("--word bank -o senses.svg")
    page.reload()  # what is in the address is the whole page
    expect(page.get_by_label("Sentence 3", exact=True)).to_have_value("My bank charges a fee for every payment.")


def distances(page: Page) -> dict[tuple[int, int], float]:
    rows = page.get_by_role("table", name=re.compile("Distances in layer")).get_by_role("row").all()[1:]
    cells = [[cell.inner_text() for cell in row.get_by_role("cell").all()] for row in rows]
    return {(a, b): float(cells[a][b]) for a in range(len(cells)) for b in range(a + 1, len(cells))}


def test_senses_by_play_and_what_is_refused(view: Open) -> None:
    page = view("senses?model=minilm")
    settled(page)
    page.get_by_role("button", name="Full trajectories").click()
    page.get_by_role("button", name="Play the layers").click()
    expect(page.get_by_text("Layer 6, the last")).to_be_visible()
    page.get_by_role("button", name="Remove sentence 4").click()
    expect(page.get_by_label("Sentence 4", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Add a sentence").click()
    page.get_by_label("Sentence 4", exact=True).fill("nothing of the kind")
    expect(page.get_by_role("alert")).to_contain_text("'bank' is not a word of 'nothing of the kind'")
