"""Plots of a word's contextual vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from refusing import refuses

from firth.core.model import Occurrence, Senses
from firth.maps import plot_senses
from firth.maps.senses import highlight_word, occurrence_labels, shortened


def senses(places: int = 3, others: float = 0.7) -> Senses:
    states = np.random.default_rng(0).normal(size=(4, places, 6)).astype(np.float32)
    distances = np.abs(np.random.default_rng(1).normal(size=(4, places, places)))
    texts = ["the $bank$ and the bank", *(f"bank {number}" for number in range(places - 2))]
    occurrences = [Occurrence(0, 4, 10), Occurrence(0, 19, 23), *(Occurrence(n + 1, 0, 4) for n in range(places - 2))]
    return Senses("bank", texts, occurrences, states, distances, np.full(4, others))


def test_plots_depend_on_the_distances(tmp_path: Path):
    for name, found in (("a.png", senses()), ("b.svg", senses(8, np.nan)), ("c.svg", senses(2))):
        plot_senses(found, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    image = (tmp_path / "c.svg").read_text()
    assert "other words" in image and "other words" not in (tmp_path / "b.svg").read_text()
    changed = senses(2)
    changed.distances[3] *= 2
    plot_senses(changed, tmp_path / "d.svg")
    assert (tmp_path / "d.svg").read_text() != image


def test_invalid_plots_are_refused(tmp_path: Path):
    with refuses("invalid_value", most=8, got=9):
        plot_senses(senses(9), tmp_path / "a.png")
    with refuses("unknown_format", suffixes=".png or .svg"):
        plot_senses(senses(), tmp_path / "a.html")


def test_occurrences_are_labeled_and_highlighted():
    assert occurrence_labels(senses(4)) == ["1a", "1b", "2", "3"]
    assert highlight_word("a\n bank ", Occurrence(0, 3, 7)) == "a ‹bank›"
    long = "x " * 60 + "bank" + " y" * 60
    part = shortened(long, Occurrence(0, 120, 124))
    assert part.startswith("…") and part.endswith("…") and "‹bank›" in part and len(part) < 60
    assert shortened("bank", Occurrence(0, 0, 4)) == "‹bank›"
