"""What an encoder without position encodings cannot tell: the order of words.

    python benchmarks/positions.py [--seeds 5]

How far the vector of *bank* moves in the last layer when its sentence is reordered, relative to its length. Networks of
2 layers of 64 have random weights, so that only the encoding of positions matters. Result: docs/results/positions.md.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from pathlib import Path

import torch

from firth.evaluate.layout import markdown_table
from firth.nets.architecture import Architecture
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "positions.md"
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
SENTENCE = ["the", "bank", "by", "the", "river", "is", "steep"]
REORDERED = ["by", "the", "river", "the", "bank", "is", "steep"]


def reordering(positions: str, seed: int) -> float:
    """Return how far the vector of *bank* moves when its sentence is reordered, relative to its length."""
    words = sorted(set(SENTENCE))
    ids = [torch.tensor([words.index(word) for word in text]) for text in (SENTENCE, REORDERED)]
    shape = Architecture(2, 64, 4, max_positions=16, dropout=0.0, family="bert", segments=1, embedding_norm=True)
    torch.manual_seed(seed)
    net = Encoder(len(words), replace(shape, positions=positions)).eval()
    for parameter in net.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    with torch.inference_mode():
        rows = []
        for text, each in zip((SENTENCE, REORDERED), ids, strict=True):
            states = net.states(each, torch.arange(len(each)), torch.zeros_like(each), Packed.of((len(each),)))
            rows.append(states[-1][text.index("bank")])
    return float((rows[0] - rows[1]).norm() / rows[0].norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    rows = []
    for positions in POSITIONS:
        moved = [reordering(positions, seed) for seed in range(1, given.seeds + 1)]
        rows.append([positions, f"{statistics.mean(moved):.2f} ±{statistics.stdev(moved):.2f}"])
    page = [
        f"`python benchmarks/positions.py`: *{' '.join(SENTENCE)}* and *{' '.join(REORDERED)}*; mean and standard "
        f"deviation of {given.seeds} seeds.",
        "",
        markdown_table(["positions", "movement of *bank*"], rows, numbers=[1]),
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
