"""The workbench's map: 100,000 points dragged in a browser, rendered without a GPU.

    python benchmarks/workbench.py [--points 100000] [--seconds 5] [--rounds 3]

Needs Chromium, playwright and psutil. The points are 40 clusters in 32 dimensions; the browser is headless and renders
with SwiftShader, a software renderer. "drawn" is frames per second during the drag; "processor" is the CPU time of all
browser processes per frame, which does not depend on other load; "scripts" is the page's part of it. The best round
counts.
Results: benchmarks/results/workbench.json and docs/results/workbench.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402

RESULTS = HERE / "results" / "workbench.json"
PAGE = HERE.parent / "docs" / "results" / "workbench.md"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
COUNT = """
window.drawn = 0;
const draw = WebGL2RenderingContext.prototype.drawArrays;
WebGL2RenderingContext.prototype.drawArrays = function (...how) { window.drawn++; return draw.apply(this, how); };
"""


def write_points(path: Path, count: int) -> None:
    random = np.random.default_rng(1)
    heap = random.integers(40, size=count)
    rows = 2 * random.normal(size=(40, 32))[heap] + random.normal(size=(count, 32))
    firth.write_vectors(firth.Vectors([f"w{row}" for row in range(count)], rows.astype(np.float32)), path)


def processor_seconds() -> dict[str, float]:
    """Return the CPU seconds of the browser's processes by type."""
    import psutil

    spent: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        try:
            words, times = process.cmdline(), process.cpu_times()
        except psutil.Error:
            continue
        if "chrom" in " ".join(words[:1]):
            kind = next((word.removeprefix("--type=") for word in words if word.startswith("--type=")), "browser")
            spent[kind] = spent.get(kind, 0.0) + times.user + times.system
    return spent


def dragged(page: Any, seconds: float) -> dict[str, float]:
    box = page.locator(".map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before, spent, start, step = page.evaluate("window.drawn"), processor_seconds(), time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step += 1
        page.mouse.move(x + 150 * ((step % 20) / 20 - 0.5), y + 90 * ((step % 33) / 33 - 0.5))
        page.evaluate("new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))")
    took = time.perf_counter() - start
    drawn = max(1, page.evaluate("window.drawn") - before)
    now = processor_seconds()
    page.mouse.up()
    each = {kind: 1000 * (now[kind] - spent.get(kind, 0.0)) / drawn for kind in now}
    return {"drawn": drawn / took, "processor": sum(each.values()), "scripts": each.get("renderer", 0.0)}


def measure(address: str, rounds: int, seconds: float) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.add_init_script(COUNT)
        start = time.perf_counter()
        page.goto(f"{address}#/map")  # with its token
        page.wait_for_selector(".legend", timeout=120_000)
        shown = time.perf_counter() - start
        measured = [dragged(page, seconds) for _ in range(rounds)]
        browser.close()
    return {"shown": shown, **max(measured, key=lambda each: each["drawn"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.safetensors"
        write_points(path, given.points)
        command = [sys.executable, "-m", "firth", "studio", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            measured = measure(server.stdout.readline().strip(), given.rounds, given.seconds)
            server.terminate()
    RESULTS.write_text(json.dumps({"machine": machine(), "points": given.points, **measured}, indent=1) + "\n")
    PAGE.write_text(
        f"`python benchmarks/workbench.py` on {machine()}, {datetime.date.today()}.\n"
        "Rendered in software (SwiftShader).\n\n"
        f"| {given.points:,} points | |\n| --- | ---: |\n"
        f"| until the map is shown, including its layout | {measured['shown']:.1f} s |\n"
        f"| frames per second while it is dragged | {measured['drawn']:.1f} |\n"
        f"| CPU time per frame, whole browser | {measured['processor']:.0f} ms |\n"
        f"| of which the page | {measured['scripts']:.0f} ms |\n"
    )
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
