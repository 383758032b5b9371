"""The view Compare: figures with intervals, and a recommendation."""

from __future__ import annotations

from playwright.sync_api import expect
from web.bench import running

import firth


def test_models_are_compared_on_ones_own_data(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/compare?model=skipgram&model=lsa&data=root%2Ftickets.csv")
    page.get_by_label("Labels, for classification").select_option("kind")
    page.get_by_label("Sampled documents").fill("300")
    page.get_by_role("button", name="Compare 2").click()
    expect(page.get_by_text("Use lsa")).to_be_visible(timeout=90_000)
    table = page.get_by_role("table", name="Metrics")
    purity = table.get_by_role("row", name="cluster purity")
    expect(purity).to_contain_text("±")
    table.get_by_role("button", name="skipgram").click()
    expect(table.get_by_role("columnheader", name="skipgram")).to_have_attribute("aria-sort", "descending")
    figures = [float(cell.split()[0]) for cell in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert figures == sorted(figures, reverse=True)
    shot(page, "compare")
    accessible(page)
    for kind, head in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as kept:
            page.get_by_role("button", name=f"Scores with confidence intervals as {kind}").click()
        assert kept.value.path().read_bytes().startswith(head)
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text("--label=kind")


def test_a_model_that_was_trained_on_the_labels_is_marked(open_page, root, tmp_path):
    data = firth.LabeledTexts(root / "tickets.csv", column="text", label="kind")
    firth.FastTextClassifier(dim=8, epochs=20).fit(data).save(tmp_path / "cheat")
    for dim in (4, 16):
        firth.LSA(dim=dim).fit(firth.Corpus(root / "tickets.csv", column="text")).save(tmp_path / f"lsa{dim}")
    with running(*sorted(tmp_path.iterdir()), "--root", root) as address:
        page = open_page(
            f"{address}/#/compare?model=cheat&model=lsa4&model=lsa16&data=root%2Ftickets.csv&label=kind&texts=200"
        )
        page.get_by_role("button", name="Compare 3").click()
        expect(page.get_by_text("cheat was trained on these labels")).to_be_visible(timeout=90_000)
        expect(page.locator(".said")).to_contain_text("Use lsa")
        row = page.get_by_role("table", name="Models").get_by_role("row", name="cheat")
        expect(row).to_contain_text("these labels (100.0 %)")
        cells = page.get_by_role("table", name="Metrics").get_by_role("row", name="cluster purity").locator("td")
        expect(cells.nth(1)).to_contain_text("†")
        expect(cells.nth(1)).not_to_contain_text("★")


def test_words_are_compared_without_data(page, studio):
    page.goto(f"{studio.address}/#/compare?model=skipgram&model=glove")
    page.get_by_role("combobox", name="Analogies").select_option("root/analogies.txt")
    page.get_by_role("button", name="Compare 2").click()
    expect(page.get_by_role("table", name="Metrics").get_by_role("row", name="analogies")).to_be_visible(timeout=90_000)


def test_columns_of_other_data_are_forgotten(page, studio):
    page.goto(f"{studio.address}/#/compare?model=lsa&model=glove&data=root/tickets.csv&label=kind")
    expect(page.get_by_label("Labels")).to_have_value("kind")
    page.get_by_label("Your documents").select_option("root/world.txt")
    page.get_by_role("button", name="Show me the command").click()
    command = page.get_by_role("region", name="The command")
    expect(command).to_contain_text("world.txt")
    expect(command).not_to_contain_text("--label")


def test_models_keep_their_names_in_the_command(view):
    page = view("compare?model=words&model=minilm")  # the folder of the second is called model
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text("minilm=/")


def test_the_button_is_called_what_the_page_says(view):
    for models, action in (("model=words", "Evaluate"), ("model=words&model=other", "Compare")):
        page = view(f"compare?{models}")
        expect(page.get_by_text(f"then press {action}.")).to_be_visible()
        expect(page.get_by_role("button", name=f"{action} {models.count('model')} model")).to_be_visible()
