"""The view Train: several methods at once, watched, stopped, taken up again."""

from __future__ import annotations

from playwright.sync_api import expect
from web.bench import running

JOB = 90_000  # milliseconds: starting Python twice on a busy machine takes a while


def test_two_methods_are_trained_and_appear_among_the_models(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/train?data=root%2Fworld.txt")
    page.get_by_role("checkbox", name="skipgram", exact=True).check(force=True)
    page.get_by_role("checkbox", name="cbow", exact=True).check(force=True)
    page.get_by_label("skipgram: dim").fill("12")
    page.get_by_label("skipgram: epochs").fill("2")
    page.get_by_label("cbow: epochs").fill("2")
    page.get_by_role("region", name="Options of cbow").get_by_label("Name of the model").fill("mine")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Start 2 runs").click()
    runs = page.get_by_role("region", name="Runs")
    expect(runs.get_by_role("heading", name="mine")).to_be_visible()
    expect(runs.get_by_role("link", name="Neighbors")).to_have_count(2, timeout=JOB)
    expect(page.get_by_role("img", name="Loss")).to_be_visible()
    title, caption = (
        found.bounding_box()
        for found in (page.get_by_role("heading", name="Loss"), page.get_by_text("compare their shapes"))
    )
    assert caption["x"] == title["x"] and caption["y"] >= title["y"] + title["height"]  # below it, not beside it
    shot(page, "train")
    accessible(page)
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text("firth train skipgram")
    expect(page.get_by_role("region", name="The command")).to_contain_text("--dim=12")
    page.goto(f"{studio.address}/#/map")
    expect(page.get_by_label("Map of").locator("option", has_text="mine · words")).to_have_count(1)
    assert (studio.root / "mine" / "config.json").is_file()


def test_a_run_is_stopped_and_goes_on(page, studio):
    page.goto(f"{studio.address}/#/train?data=root%2Fworld.txt&method=glove&o.glove.epochs=1000&n.glove=long")
    page.get_by_role("button", name="Start glove").click()
    run = page.locator(".job", has_text="long")
    expect(run.get_by_text("pairs/s")).to_be_visible(timeout=JOB)
    run.get_by_role("button", name="Stop").click()
    expect(run.get_by_text("stopped", exact=True)).to_be_visible(timeout=JOB)
    stopped = int(run.locator("strong").inner_text().split()[0])
    run.get_by_role("button", name="Resume").click()
    expect(run.get_by_text("pairs/s")).to_be_visible(timeout=JOB)
    assert int(run.locator("strong").inner_text().split()[0]) >= stopped
    run.get_by_role("button", name="Stop").click()
    expect(run.get_by_text("stopped", exact=True)).to_be_visible(timeout=JOB)
    run.get_by_role("button", name="Remove long from the list").click()
    expect(run).to_have_count(0)


def test_a_finished_run_leads_to_the_views_that_look_at_it(view):
    page = view("train?data=root%2Fpeople.csv&method=vae&o.vae.epochs=1&o.vae.dim=2&n.vae=codes")
    expect(page.get_by_label("Columns (a,b)")).to_have_attribute("placeholder", "all")
    expect(page.get_by_label("Categories (a,b)")).to_have_attribute("placeholder", "none")
    page.get_by_role("button", name="Start vae").click()
    links = page.get_by_role("region", name="Runs").get_by_role("link")
    expect(links).to_have_text(["Neighbors", "Latent space", "Compare"], timeout=JOB)  # two cities make no map


def test_a_file_of_any_name_gives_a_name(open_page, tmp_path):
    for name in ("Störung übersicht.txt", "日本.txt", f"{'long-' * 20}.txt"):
        (tmp_path / name).write_text("the tide comes in\n" * 30, encoding="utf-8")
    with running("--root", tmp_path) as address:
        page = open_page(f"{address}/#/train?method=lsa")
        for name, given in (
            ("Störung übersicht", "Storung-ubersicht-lsa"),
            ("日本", "lsa"),
            ("long-" * 20, "long-" * 8 + "lsa"),
        ):
            page.get_by_role("combobox", name="Data").select_option(f"root/{name}.txt")
            expect(page.get_by_label("Name of the model")).to_have_value(given)


def test_what_is_wrong_is_said(page, studio):
    page.goto(f"{studio.address}/#/train?data=root%2Fworld.txt&method=skipgram&o.skipgram.dim=0")
    page.get_by_role("button", name="Start skipgram").click()
    expect(page.get_by_role("alert")).to_contain_text("SkipGram.dim must be at least 1; got 0")
    page.goto(f"{studio.address}/#/train?data=root%2Fworld.txt&method=skipgram&n.skipgram=glove")
    page.get_by_role("button", name="Start skipgram").click()
    expect(page.get_by_role("alert")).to_contain_text("The model 'glove' exists")


def test_options_name_no_file_outside_the_root(page, studio):
    page.goto(f"{studio.address}/#/train?data=root%2Fworld.txt&method=bert&o.bert.tokenizer=%2Fetc%2Fpasswd")
    expect(page.get_by_label("Tokenizer")).to_have_value("/etc/passwd")
    page.get_by_role("button", name="Start bert").click()
    expect(page.get_by_role("alert")).to_contain_text("/etc/passwd")
    assert not list(studio.root.glob("*bert*"))
