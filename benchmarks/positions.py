"""What position encodings are for: a language model with each of them, and with none.

    python benchmarks/positions.py [--seeds 3] [--sentences 4000]

Small GPTs (2 layers of 64) on sentences of the synthetic corpus: perplexity on held-out text with learned, sinusoidal
and rotary positions and without any, with one layer and with two. A causal model can tell earlier from later tokens by
the number of tokens it attends to, so that none is not the same as no order; an encoder without positions sees a bag of
tokens, which the last part measures: the largest difference between the vectors of *bank* in a sentence and in the same
sentence reordered. Result: docs/results/positions.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import torch

import firth
from firth.core.report import LogLines
from firth.data.world import World
from firth.evaluate.layout import markdown_table
from firth.nets.architecture import Architecture
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "positions.md"
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
SENTENCE = ["the", "bank", "by", "the", "river", "is", "steep"]
REORDERED = ["by", "the", "river", "the", "bank", "is", "steep"]


def reordering(positions: str) -> float:
    """Return how far the vector of *bank* moves when its sentence is reordered, relative to its length."""
    words = sorted(set(SENTENCE))
    ids = [torch.tensor([words.index(word) for word in text]) for text in (SENTENCE, REORDERED)]
    shape = Architecture(2, 64, 4, max_positions=16, dropout=0.0, family="bert", segments=1, embedding_norm=True)
    torch.manual_seed(1)
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
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=4000)
    given = parser.parse_args()
    rows = []
    for positions in POSITIONS:
        cells = [positions]
        for layers in (1, 2):
            perplexities = []
            for seed in range(1, given.seeds + 1):
                method = firth.GPT(
                    layers=layers, dim=64, heads=4, context_length=64, vocabulary_size=600, epochs=2, dropout=0.0,
                    batch_tokens=2048, learning_rate=3e-3, positions=positions, held_out=0.1,
                )  # fmt: skip
                run = firth.Run(seed=seed, report=LogLines(progress=False))
                model = method.fit(World(seed=seed).sentences(given.sentences), run)
                perplexities.append(model.training["perplexity"])
            cells.append(f"{statistics.mean(perplexities):.2f} ±{statistics.stdev(perplexities):.2f}")
            print(positions, layers, perplexities, file=sys.stderr, flush=True)
        rows.append([*cells, f"{reordering(positions):.2f}"])
    header = ["positions", "1 layer", "2 layers", "encoder: movement of *bank*"]
    page = [
        f"`python benchmarks/positions.py`: perplexity on held-out sentences, mean and standard deviation of "
        f"{given.seeds} seeds; the last column is of a network with random weights.",
        "",
        markdown_table(header, rows, numbers=range(1, 4)),
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
