"""The native encoder against transformers in shapes of known encoders, with random weights.

    python benchmarks/encoder_shapes.py [SHAPE …] [--threads 2] [--batches 4] [--rounds 3]

Shapes: minilm (BERT, 6 x 384), mpnet (12 x 768), modernbert (22 x 768, gated). Texts have 10 to 128 random tokens.
transformers computes as sentence-transformers' encode does: texts sorted by length, in padded batches of 32, mean
pooling. The batches are some of those of 4,096 texts, so that they have as little padding. Firth computes the same
texts in one call. The two run interleaved, and the round with the least CPU time of the
process counts: other programs change it less than seconds on the clock. torch's threads spin while they wait, which
counts as CPU time; --threads 1 compares the work itself. Prints a table, writes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, MPNetConfig, MPNetModel

from firth.kernels.encoder import Encoder, Shape

VOCABULARY = 1000  # small, because embedding tables cost nothing
BATCH = 32
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
LOCAL = tuple(layer for layer in range(22) if layer % 3)


def networks() -> dict[str, tuple[Callable[[], torch.nn.Module], Shape, dict[str, int]]]:
    """Return for each shape transformers' network, Firth's shape, and the tables beside its linear layers."""
    small = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    modern = Shape(22, 768, 12, 1152, 8192, gated=True, pre_norm=True, first_norm=False, final_norm=True, window=64)
    return {
        "minilm": (
            lambda: BertModel(BertConfig(vocab_size=VOCABULARY, **small), add_pooling_layer=False),
            Shape(6, 384, 12, 1536, 512),
            {"positions": 512},
        ),
        "mpnet": (
            lambda: MPNetModel(MPNetConfig(vocab_size=VOCABULARY), add_pooling_layer=False),
            Shape(12, 768, 12, 3072, 512),
            {"positions": 512, "distances": 512},
        ),
        "modernbert": (
            lambda: ModernBertModel(ModernBertConfig(vocab_size=VOCABULARY, **SPECIAL)),
            Shape(**{**modern.__dict__, "local_layers": LOCAL}),
            {"rotated": 64},
        ),
    }


def random_weights(shape: Shape, positions: int = 0, distances: int = 0, rotated: int = 0) -> dict[str, np.ndarray]:
    """Return weights of a shape; biases, which cost nothing, are left out."""
    random, dim, hidden = np.random.default_rng(1), shape.dim, shape.hidden
    sizes: dict[str, tuple[int, ...]] = {"tokens": (VOCABULARY, dim), "norm.weight": (dim,)}
    sizes |= {"final_norm.weight": (dim,)} if shape.final_norm else {}
    sizes |= {"positions": (positions, dim)} if positions else {}
    sizes |= {"distance_bias": (shape.heads, 2 * distances - 1)} if distances else {}
    for layer in range(shape.layers):
        names = {"query_key_value": (3 * dim, dim), "attention_output": (dim, dim), "up": (hidden, dim)}
        names |= {"down": (dim, hidden), "feed_forward_norm": (dim,)}
        names |= {"gate": (hidden, dim)} if shape.gated else {}
        names |= {"attention_norm": (dim,)} if layer or shape.first_norm else {}
        sizes |= {f"layers.{layer}.{name}.weight": size for name, size in names.items()}
    weights = {name: 0.02 * random.standard_normal(size, dtype=np.float32) for name, size in sizes.items()}
    if rotated:
        angles = np.arange(shape.positions)[:, None] * 1e4 ** -np.linspace(0, 1, rotated // 2)
        weights |= {"rotary.cos": np.cos(angles).astype("f4"), "rotary.sin": np.sin(angles).astype("f4")}
    return weights


def contestants(name: str, lengths: np.ndarray, threads: int) -> dict[str, Callable[[], object]]:
    make, shape, tables = networks()[name]
    net, weights = make().eval(), random_weights(shape, **tables)
    ids = np.random.default_rng(2).integers(5, VOCABULARY, lengths.sum()).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    last = np.eye(shape.layers + 1, dtype=np.float32)[-1]

    @torch.inference_mode()
    def theirs() -> None:
        order = np.argsort(-lengths)
        for first in range(0, len(order), BATCH):
            texts = order[first : first + BATCH]
            padded = np.zeros((len(texts), lengths[texts].max()), np.int64)
            for row, text in enumerate(texts):
                padded[row, : lengths[text]] = ids[starts[text] : starts[text + 1]]
            tokens = torch.from_numpy(padded)
            mask = (tokens > 0).long()
            states = net(input_ids=tokens, attention_mask=mask).last_hidden_state
            (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    encoders = {f"Firth {kind}": Encoder(weights, shape, kind == "int8") for kind in ("float32", "int8")}

    def ours(encoder: Encoder) -> Callable[[], object]:
        return lambda: encoder.encode(ids, starts, last, threads=threads)

    return {"transformers": theirs, **{label: ours(encoder) for label, encoder in encoders.items()}}


def measured(encoders: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and seconds on the clock of the best round."""
    best = dict.fromkeys(encoders, (np.inf, np.inf))
    for number in range(rounds + 1):
        for name, encode in encoders.items():
            begun = time.process_time(), time.perf_counter()
            encode()
            seconds = time.process_time() - begun[0], time.perf_counter() - begun[1]
            if number:  # the first round warms up
                best[name] = min(best[name][0], seconds[0]), min(best[name][1], seconds[1])
                print(f"{name} {seconds[0]:.2f} s of CPU, {seconds[1]:.2f} s", file=sys.stderr, flush=True)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", choices=[*networks(), []])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    torch.set_num_threads(given.threads)
    random = np.random.default_rng(1)
    batches = np.sort(random.integers(10, 129, 4096)).reshape(-1, BATCH)
    each = len(batches) // given.batches
    lengths = random.permutation(batches[each // 2 :: each][: given.batches].ravel())
    print("| shape | | CPU s | | s | |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in given.shapes or networks():
        rows = measured(contestants(name, lengths, given.threads), given.rounds)
        cpu, clock = rows["transformers"]
        for label, (own_cpu, own_clock) in rows.items():
            ratios = f"{own_cpu:.2f} | {cpu / own_cpu:.2f}× | {own_clock:.2f} | {clock / own_clock:.2f}×"
            print(f"| {name} | {label} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
