"""The view Map: points, colours, names, the lasso, true neighbors, two maps."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from serving import until
from web.bench import firth_command, kept, running

import firth


def picture(page: Page, name: str) -> bytes:
    """The picture of a map that a person would keep."""
    with page.expect_download() as kept:
        page.get_by_role("button", name=f"{name} as PNG").click()
    return kept.value.path().read_bytes()


def mapped(page: Page, count: int = 1) -> None:
    """Waits until maps have points, and points have places on the screen."""
    expect(page.get_by_text(re.compile("the map preserves .* nearest"))).to_have_count(count)
    for number in range(count):
        assert until(lambda number=number: bool(circles(page, number)[0]))  # type: ignore[misc]


def colours_in(png: bytes) -> set[tuple[int, ...]]:
    import io

    from matplotlib.image import imread

    pixels = (imread(io.BytesIO(png))[..., :3] * 255).round().astype(int)
    return set(map(tuple, pixels.reshape(-1, 3).tolist()))


def test_words_are_drawn_coloured_and_asked(page, studio, shot, accessible):
    page.goto(f"{studio.address}/#/map?of=model/skipgram/words")
    expect(page.get_by_text(re.compile("the map preserves .* nearest"))).to_be_visible()
    expect(page.get_by_role("list", name="Colors").get_by_role("button")).to_have_count(10)
    dots = (
        page.get_by_role("list", name="Colors")
        .locator("i")
        .evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number))")
    )

    def all_drawn() -> bool:
        seen = colours_in(picture(page, "skipgram"))  # points let a little of the paper through
        return all(any(max(abs(a - b) for a, b in zip(dot, one, strict=True)) < 40 for one in seen) for dot in dots)

    assert until(all_drawn)
    page.get_by_label("Color by").select_option("frequency")
    expect(page.get_by_text("frequency", exact=True)).to_be_visible()
    page.get_by_label("Find").fill("king")
    found = page.get_by_role("region", name="Found in skipgram")
    found.get_by_role("button", name="king", exact=True).click()
    near = page.get_by_role("region", name="Point in skipgram")
    expect(near.get_by_role("heading", name="king")).to_be_visible()
    expect(near.get_by_role("listitem")).to_have_count(12)
    assert "point=king" in page.url
    shot(page, "map")
    accessible(page)


def circles(page: Page, number: int = 0) -> tuple[list[float], float]:
    """Where across the screen the points of a map are, and how wide it is, by the drawing that a person would keep."""
    with page.expect_download() as kept:
        page.get_by_role("button", name="as SVG").nth(number).click()
    text = kept.value.path().read_text(encoding="utf-8")
    across = [float(place) for place in re.findall(r'<circle cx="([\d.]+)"', text)]
    width = re.search(r'<svg [^>]*width="([\d.]+)"', text)
    assert width is not None
    return across, float(width[1])


def test_a_point_far_out_does_not_make_a_dot_of_the_others(page, studio):
    counts = []

    def with_one_far_out(route):
        answer = route.fetch()
        xy = np.frombuffer(answer.body(), np.float32).copy()
        counts.append(len(xy) // 2)
        xy *= 0.01
        xy[:2] = 1
        route.fulfill(response=answer, body=xy.tobytes())

    page.route("**/api/map/points*", with_one_far_out)
    page.goto(f"{studio.address}/#/map?of=model/skipgram/words")
    mapped(page)
    across, width = circles(page)
    assert max(across) - min(across) > width / 2
    assert len(across) > 0.95 * counts[0]
    page.get_by_role("button", name="Show all").click()
    assert until(lambda: len(circles(page)[0]) == counts[0])
    across, width = circles(page)
    assert np.ptp(sorted(across)[:-1]) < width / 10  # the others are a dot now


def test_neighbors_are_those_of_the_space(page, studio):
    page.goto(f"{studio.address}/#/map?of=model/skipgram/words&point=king")
    near = page.get_by_role("region", name="Point in skipgram").get_by_role("listitem")
    expect(near).to_have_count(12)
    path = page.evaluate(
        """async () => {
            const token = localStorage.getItem("firth-token");
            const answer = await fetch("/api/models", { headers: { "X-Firth-Token": token } });
            return (await answer.json()).models.find((model) => model.name === "skipgram").path;
        }"""
    )
    truth = firth.load(path, firth.SkipGram).vectors.neighbors("king", 12)
    assert [text.split()[-1] for text in near.all_inner_texts()] == [hit.key for hit in truth]


def test_a_lasso_selects_in_both_maps(page, studio, shot):
    page.goto(f"{studio.address}/#/map?of=model/skipgram/words&of2=model/glove/words")
    maps = page.locator(".map")
    expect(maps).to_have_count(2)
    page.get_by_role("button", name="Lasso").click()
    mapped(page, 2)
    box = maps.first.bounding_box()
    corners = [(0.02, 0.02), (0.55, 0.02), (0.55, 0.98), (0.02, 0.98), (0.02, 0.05)]
    page.mouse.move(box["x"] + corners[0][0] * box["width"], box["y"] + corners[0][1] * box["height"])
    page.mouse.down()
    for across, down in corners[1:]:
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=4)
    page.mouse.up()
    selection = page.get_by_role("region", name="Selection")
    chosen = int(selection.get_by_role("heading").inner_text().split()[0].replace(",", ""))
    assert chosen > 5
    shot(page, "map-two")
    for name in ("skipgram", "glove"):  # each map tells its own groups and coordinates
        rows = list(csv.DictReader(io.StringIO(kept(page, f"The selected of {name} as CSV").decode(), newline="")))
        assert len(rows) == chosen and list(rows[0]) == ["key", "count", "group", "x", "y"]
    page.get_by_role("button", name="Clear selection").click()
    expect(selection).to_have_count(0)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A workbench with an index of more rows than the page lists."""
    folder = tmp_path_factory.mktemp("many") / "many"
    random = np.random.default_rng(1)
    with firth.Index.create(folder, dim=2) as index:
        text = ["=1+1" if row == 7 else f"note {row}" for row in range(3000)]
        index.add(
            [f"n{row}" for row in range(3000)], random.normal(size=(3000, 2)), {"text": text, "year": [2020] * 3000}
        )
    with running(folder) as address:
        yield address


def drawn(page, corners):
    """A lasso through these corners, each a share of the map's width and height, or pixels from the one before."""
    box = page.locator(".map").first.bounding_box()
    places = [(box["x"] + across * box["width"], box["y"] + down * box["height"]) for across, down in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for x, y in places[1:]:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()


def test_all_that_is_selected_is_exported_with_all_that_is_known(open_page, many, shot):
    page = open_page(f"{many}/#/map")
    page.get_by_role("button", name="Lasso").click()
    mapped(page)
    drawn(page, [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.02)])
    selection = page.get_by_role("region", name="Selection")
    chosen = int(selection.get_by_role("heading").inner_text().split()[0].replace(",", ""))
    assert chosen > 2500
    expect(selection).to_contain_text("The first 2,000 are listed; the file has all.")
    shot(page, "selection")
    rows = list(csv.DictReader(io.StringIO(kept(page, "The selected as CSV").decode(), newline="")))
    assert len(rows) == len({row["key"] for row in rows}) == chosen
    assert list(rows[0]) == ["key", "text", "year", "group", "x", "y"] and rows[0]["text"].startswith("note ")
    if any(row["key"] == "n7" for row in rows):
        assert {row["text"] for row in rows if row["key"] == "n7"} == {"'=1+1"}
        expect(page.get_by_role("status").filter(has_text="1 cell begins like a formula")).to_be_visible()


def test_a_lasso_may_end_where_it_began(open_page, many):
    """What was drawn decides, not how far apart its ends are."""
    page = open_page(f"{many}/#/map")
    page.get_by_role("button", name="Lasso").click()
    mapped(page)
    drawn(page, [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)])
    selection = page.get_by_role("region", name="Selection")
    expect(selection).to_be_visible()
    page.get_by_role("button", name="Clear selection").click()
    expect(selection).to_have_count(0)
    drawn(page, [(0.5, 0.5), (0.501, 0.501), (0.5, 0.5)])  # a hand that trembles
    expect(selection).to_have_count(0)
    # While the map is moved there and back, no point is asked for.
    page.get_by_role("button", name="Move").click()
    drawn(page, [(0.5, 0.5), (0.7, 0.6), (0.5, 0.5)])
    page.get_by_label("Color by").select_option("year")  # changes of the address are written together
    expect(page).to_have_url(re.compile("by=year"))
    assert "point=" not in page.url


def test_rows_of_an_index_are_coloured_by_what_is_known_of_them(page, studio, shot):
    page.goto(f"{studio.address}/#/map?of=index/tickets&by=kind")
    legend = page.get_by_role("list", name="Colors")
    for kind in ("billing", "crash", "delivery", "login", "printer"):
        expect(legend.get_by_role("button", name=kind)).to_be_visible()
    page.get_by_label("Color by").select_option("")
    page.get_by_label("How many groups").fill("5")
    expect(legend.get_by_role("button")).to_have_count(5)
    shot(page, "map-tickets")


def test_a_column_named_group_is_told_from_the_groups_found(open_page, studio, tmp_path):
    lines = (studio.root / "tickets.csv").read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("kind", "group")
    (tmp_path / "tickets.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    firth_command("train", "lsa", tmp_path / "tickets.csv", "--column=text", "--dim=8", "-o", tmp_path / "lsa")
    arguments = [
        "index",
        "build",
        tmp_path / "lsa",
        tmp_path / "tickets.csv",
        "--column=text",
        "--attributes=year,group",
    ]
    firth_command(*arguments, "-o", tmp_path / "tickets")
    with running(tmp_path / "tickets") as address:
        page = open_page(f"{address}/#/map")
        legend = page.get_by_role("list", name="Colors").get_by_role("button")
        expect(legend).to_have_count(10)
        page.get_by_label("Color by").select_option("colored by group")
        expect(legend).to_have_count(5)
        expect(page.get_by_label("How many groups")).to_have_count(0)
        expect(legend.filter(has_text="printer")).to_be_visible()
        page.get_by_label("Color by").select_option("colored by cluster")
        expect(legend).to_have_count(10)


def test_other_maps_of_the_same_words(page, studio):
    page.goto(f"{studio.address}/#/map?of=model/glove/words")
    page.get_by_label("Map by").select_option("tsne")
    expect(page.locator(".map")).to_be_visible(timeout=60_000)
    expect(page.get_by_text(re.compile("the map preserves .* nearest"))).to_be_visible(timeout=60_000)
    assert "method=tsne" in page.url


def test_names_of_groups_cover_neither_each_other_nor_the_edge(page, studio):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{studio.address}/#/map?of=index/tickets")
    expect(page.get_by_role("list", name="Colors").get_by_role("button")).to_have_count(10)
    width = page.get_by_role("application").bounding_box()["width"]
    with page.expect_download() as kept:
        page.get_by_role("button", name="tickets as SVG").click()
    drawn = kept.value.path().read_text(encoding="utf-8")
    texts = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]+)</text>', drawn)
    boxes = [(float(x), float(y), 6.0 * len(name) / 2) for x, y, name in texts]
    assert len(boxes) == 10
    for place, (x, y, half) in enumerate(boxes):
        assert half < x < width - half
        for other_x, other_y, other_half in boxes[:place]:
            assert abs(other_y - y) > 14 or abs(other_x - x) > half + other_half


def test_a_map_that_takes_a_while_says_how_far_it_is(page, studio):
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) < 3:
            route.fulfill(status=202, json={"share": 0.34, "seconds": 12.0})

    page.route("**/api/map/points*", answer)
    page.goto(f"{studio.address}/#/map?of=model/glove/words")
    expect(page.get_by_text("points… 34 %, 0:12")).to_be_visible()
    assert until(lambda: page.evaluate("1") == 1 and len(asked) == 3)
    asked[2].continue_()
    expect(page.get_by_text(re.compile("the map preserves .* nearest"))).to_be_visible()
    assert len(asked) == 3
