"""The view Data: drop a file, look at it, make a corpus."""

from __future__ import annotations

from playwright.sync_api import expect
from web.bench import kept


def test_a_file_under_the_root_is_picked_and_looked_at(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/data")
    page.get_by_label("A file in").select_option("root/tickets.csv")
    expect(page.get_by_label("Text column")).to_have_value("text")
    facts = page.locator("dl")
    expect(facts.get_by_text("600", exact=True)).to_be_visible()
    rows = page.get_by_role("region", name="Rows")
    expect(rows.get_by_text("T0001", exact=True)).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(rows.get_by_text("T0026", exact=True)).to_be_visible()
    words = page.get_by_role("region", name="Vocabulary")
    expect(words.get_by_role("row").nth(1)).to_contain_text("the")
    page.get_by_label("Words containing").fill("refund")
    expect(words.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("img", name="Word frequencies")).to_be_visible()
    assert "data=root%2Ftickets.csv" in page.url
    shot(page, "data")
    accessible(page)


def test_other_data_is_seen_from_its_beginning(page, studio):
    page.goto(f"{studio.address}/#/data?data=root/tickets.csv&from=500")
    expect(page.get_by_role("region", name="Rows").get_by_text("T0501", exact=True)).to_be_visible()
    page.get_by_label("A file in").select_option("root/analogies.txt")
    expect(page.locator(".pager")).to_contain_text("1–25")


def test_a_file_is_dropped(page, studio, tmp_path):
    page.goto(f"{studio.address}/#/data")
    path = tmp_path / "notes on tides.txt"
    path.write_text("the tide comes in\nthe tide goes out\n" * 30, encoding="utf-8")
    page.get_by_label("Data file").set_input_files(path)
    expect(page.get_by_role("region", name="Documents")).to_contain_text("the tide comes in")
    page.get_by_label("One document is").select_option("file")
    expect(page.locator("dl").get_by_text("240", exact=True).first).to_be_visible()
    path.write_bytes(b"\x00\x01\x02")
    page.get_by_label("Data file").set_input_files({"name": "a.exe", "mimeType": "x/y", "buffer": b"MZ"})
    expect(page.get_by_role("alert")).to_contain_text("Data files must be")


def test_a_world_is_invented(page, studio):
    page.goto(f"{studio.address}/#/data")
    page.locator(".world input").first.fill("500")
    page.get_by_role("button", name="Synthetic corpus").click()
    expect(page.locator("dl").get_by_text("500", exact=True)).to_be_visible()
    page.get_by_role("button", name="Synthetic corpus").click()
    expect(page.get_by_role("alert")).to_contain_text("world-1.txt exists")
    page.get_by_label("Name of the new file").fill("mine")
    page.locator(".world input").first.fill("400")
    page.get_by_role("button", name="Synthetic corpus").click()
    expect(page.locator("dl").get_by_text("400", exact=True)).to_be_visible()
    assert "data=root%2Fmine.txt" in page.url
    (studio.root / "world-1.txt").unlink()
    (studio.root / "mine.txt").unlink()


def test_a_cell_that_looks_like_a_formula_is_escaped_and_told(page, studio):
    content = b"name,text,change\n=1+1,a ship,-5\n@b,the sea,+x\n"
    page.goto(f"{studio.address}/#/data")
    page.get_by_label("Data file").set_input_files({"name": "sums.csv", "mimeType": "text/csv", "buffer": content})
    expect(page.get_by_role("region", name="Rows")).to_contain_text("=1+1")
    assert kept(page, "Rows as CSV").decode() == "name,text,change\r\n'=1+1,a ship,-5\r\n'@b,the sea,'+x\r\n"
    expect(page.get_by_role("status").filter(has_text="3 cells begin like a formula")).to_be_visible()


def test_tables_are_sorted_and_kept_and_pictures_too(page, tmp_path):
    page.goto(page.url.split("#")[0] + "#/data?data=root%2Fworld.txt")
    words = page.get_by_role("region", name="Vocabulary")
    words.get_by_role("button", name="Word").click()
    expect(words.get_by_role("columnheader", name="Word")).to_have_attribute("aria-sort", "ascending")
    with page.expect_download() as kept:
        page.get_by_role("button", name="Vocabulary as CSV").click()
    lines = kept.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == "Rank,Word,Count,Share" and len(lines) > 400
    listed = [line.split(",")[1] for line in lines[1:]]
    assert listed == sorted(listed, key=str.lower)
    for kind, head in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as kept:
            page.get_by_role("button", name=f"Word frequencies as {kind}").click()
        assert kept.value.path().read_bytes().startswith(head)


def test_the_command_is_shown_and_copied(open_page, studio):
    page = open_page(
        f"{studio.address}/#/data?data=root%2Ftickets.csv", permissions=["clipboard-read", "clipboard-write"]
    )
    page.get_by_role("button", name="Show me the command").click()
    panel = page.get_by_role("region", name="The command")
    expect(panel).to_contain_text("firth corpus info")
    expect(panel).to_contain_text("--column=text")
    panel.get_by_role("tab", name="Python").click()
    expect(panel).to_contain_text("firth.Corpus(")
    panel.get_by_role("button", name="Copy").click()
    assert "read_tokens" in page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_without_a_clipboard_the_command_is_marked(page, studio):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto("about:blank")
    page.goto(f"{studio.address}/#/data?data=root%2Ftickets.csv")
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("--column=text")
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("getSelection().toString()").startswith("firth corpus info")


def test_a_damaged_parquet_file_is_explained(page, studio):
    content = b"PAR1 this is no table PAR1"
    page.goto(f"{studio.address}/#/data")
    page.get_by_label("Data file").set_input_files({"name": "cut.parquet", "mimeType": "x/y", "buffer": content})
    expect(page.get_by_role("alert")).to_contain_text("cut.parquet is not a Parquet file, or is damaged")
