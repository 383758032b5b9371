"""Transformer against LSTM in three small experiments: speed, recall over distance, cost of attention.

    python benchmarks/sequence.py [--device cpu|cuda] [--only speed|recall|scores] [--out FOLDER]

speed: time per token of a training step (forward and backward) for one sequence of growing length, LSTM against a
causal Transformer with about the same number of weights. The LSTM's positions are sequential, the Transformer's are one
matrix product; with many sequences at once the LSTM is parallel too (second table). recall: a key and its value are
shown, then noise, then the key again; the accuracy of predicting its value by distance, after the same number of steps.
scores: attention over n positions has n² scores: time and memory of one attention, forward and backward, by n, with
explicit scores and with torch's fused kernel.
Results: benchmarks/results/sequence.json and docs/results/sequence-{speed,recall,scores}.md, of a CPU and of a GPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from firth.nets.architecture import Architecture  # noqa: E402
from firth.nets.attention import attend, attention_steps, causal_mask  # noqa: E402
from firth.nets.transformer import Decoder, parameters  # noqa: E402

WORDS = 64


class Recurrent(nn.Module):
    """A language model by an LSTM."""

    def __init__(self, dim: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(WORDS, dim)
        self.lstm = nn.LSTM(dim, dim, layers, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        result: Tensor = self.lstm(self.tokens(ids))[0]
        return result

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.tokens.weight)


def nets(dim: int, context_length: int, device: str) -> dict[str, nn.Module]:
    """Of about the same number of weights: an LSTM's layer has 8 dim², a block 12 dim²."""
    torch.manual_seed(0)
    size = Architecture(layers=2, dim=dim, heads=4, max_positions=context_length, dropout=0.0, positions="rotary")
    return {"LSTM": Recurrent(dim, 3).to(device), "Transformer": Decoder(WORDS, size).to(device)}


def waited(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def best_of(rounds: int, device: str, work: Callable[[], Any]) -> float:
    work()
    result = []
    for _ in range(rounds):
        began = waited(device)
        work()
        result.append(waited(device) - began)
    return min(result)


# ---- speed ----


def speed(device: str) -> list[dict[str, Any]]:
    dim, most = (512, 16_384) if device == "cuda" else (128, 2048)
    rows = []
    for length in [most // 64, most // 16, most // 4, most]:
        for batch in sorted({1, most // length}):
            row: dict[str, Any] = {"length": length, "batch": batch}
            for name, net in nets(dim, length, device).items():
                row[name] = time_of_step(net, torch.randint(WORDS, (batch, length), device=device)) / (batch * length)
                row[f"{name} parameters"] = parameters(net)
            rows.append(row)
            print(row, flush=True)
    return rows


def time_of_step(net: nn.Module, ids: Tensor) -> float:
    device = ids.device.type
    mixed = device == "cuda" and not isinstance(net, Recurrent)  # cuDNN's LSTM has no bf16 under autocast

    def step() -> None:
        with torch.autocast(device, torch.bfloat16, enabled=mixed):
            loss = functional.cross_entropy(net.logits(net(ids)).flatten(0, 1).float(), ids.flatten())
        loss.backward()
        net.zero_grad()

    return best_of(3, device, step)


def speed_page(rows: list[dict[str, Any]]) -> Iterator[str]:
    for title, some in (("One sequence:", [row for row in rows if row["batch"] == 1]), ("Full batches:", rows)):
        yield title
        yield ""
        yield "| positions | sequences | LSTM, µs per token | Transformer, µs per token | LSTM / Transformer |"
        yield "| ---: | ---: | ---: | ---: | ---: |"
        longest = max(row["length"] for row in rows)
        for row in some:
            if row["batch"] * row["length"] < longest and title == "Full batches:":
                continue
            lstm, transformer = (row[name] * 1e6 for name in ("LSTM", "Transformer"))
            yield (
                f"| {row['length']:,} | {row['batch']:,} | {lstm:.2f} | {transformer:.2f} | {lstm / transformer:.1f} |"
            )
        yield ""


# ---- recall ----


def episode(batch: int, distance: int, device: str) -> tuple[Tensor, Tensor]:
    """Return a key and its value, noise, and the key again, whose value is to be predicted."""
    third = WORDS // 3
    key = torch.randint(third, (batch, 1), device=device)
    value = torch.randint(third, 2 * third, (batch, 1), device=device)
    noise = torch.randint(2 * third, WORDS, (batch, distance), device=device)
    return torch.cat([key, value, noise, key], 1), value[:, 0]


def recall(device: str) -> list[dict[str, Any]]:
    steps, batch, dim = (1500, 128, 128) if device == "cuda" else (400, 32, 64)
    distances = [8, 32, 128, 512] if device == "cuda" else [8, 32, 128]
    rows = []
    for distance in distances:
        row: dict[str, Any] = {"distance": distance, "steps": steps}
        for name, net in nets(dim, distance + 16, device).items():
            optimizer = torch.optim.AdamW(net.parameters(), 1e-3 if name == "Transformer" else 3e-3)
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = group.setdefault("peak", group["lr"]) * min(
                        1, step / 50, (steps - step) / (0.3 * steps)
                    )
                ids, right = episode(batch, distance, device)
                loss = functional.cross_entropy(net.logits(net(ids)[:, -1]), right)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
            with torch.no_grad():
                ids, right = episode(1000, distance, device)
                row[name] = float((net.logits(net(ids)[:, -1]).argmax(-1) == right).float().mean())
        rows.append(row)
        print(row, flush=True)
    return rows


def recall_page(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| distance | LSTM | Transformer |"
    yield "| ---: | ---: | ---: |"
    for row in rows:
        yield f"| {row['distance']:,} | {row['LSTM']:.0%} | {row['Transformer']:.0%} |"
    yield ""
    yield f"({rows[0]['steps']:,} steps each. A key and its value, then random tokens of this length, then the key. By"
    yield f"chance {1 / (WORDS // 3):.0%} are correct. One seed, rates .001 (Transformer) and .003 (LSTM), not tuned.)"


# ---- scores ----


def one_attention(device: str, way: str, context_length: int) -> dict[str, float]:
    """Return seconds and bytes of one attention, forward and backward; on the CPU in its own process."""
    heads, dim = 8, 64
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    query, key, value = (
        torch.randn(1, heads, context_length, dim, device=device, dtype=kind, requires_grad=True) for _ in "qkv"
    )
    mask = causal_mask(context_length, context_length, device) if way == "reference" else None

    def work() -> None:
        if way == "reference":
            out = attention_steps(query, key, value, mask).output
        else:
            out = attend(query, key, value, causal=True)
        out.sum().backward()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    seconds = best_of(3, device, work)
    peak = (
        torch.cuda.max_memory_allocated()
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
    return {"seconds": seconds, "bytes": peak - before}


def scores(device: str) -> list[dict[str, Any]]:
    lengths = [1024, 2048, 4096, 8192, 16_384] if device == "cuda" else [256, 512, 1024, 2048]
    rows = []
    for context_length in lengths:
        row: dict[str, Any] = {"places": context_length}
        for way in ("reference", "fast"):
            command = [sys.executable, __file__, "--device", device, "--one", f"{way}:{context_length}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row[way] = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        print(row, flush=True)
    return rows


def scores_page(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| positions | reference implementation | | fused kernel | |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        cells = [
            f"{row[way]['seconds'] * 1e3:.2f} ms | {row[way]['bytes'] / 2**20:,.0f} MiB"
            for way in ("reference", "fast")
        ]
        yield f"| {row['places']:,} | {' | '.join(cells)} |"
    yield ""
    yield "(One causal attention of 8 heads × 64, one sequence, forward and backward; additional memory.)"


PARTS: dict[str, tuple[Callable[[str], list[dict[str, Any]]], Callable[[list[dict[str, Any]]], Iterator[str]]]] = {
    "speed": (speed, speed_page),
    "recall": (recall, recall_page),
    "scores": (scores, scores_page),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=tuple(PARTS), action="append")
    parser.add_argument("--threads", type=int, default=0, help="of torch on the CPU; 0 = its own choice")
    parser.add_argument("--out", type=Path, help="a folder for results instead of benchmarks/results and docs/results")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a separate process for each memory measurement
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.one:
        way, _, context_length = arguments.one.partition(":")
        print(json.dumps(one_attention(arguments.device, way, int(context_length))))
        return
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else platform.processor() or "a CPU"
    record = (arguments.out or HERE / "results") / "sequence.json"
    pages = arguments.out or HERE.parent / "docs" / "results"
    for folder in (record.parent, pages):
        folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
    for part in arguments.only or PARTS:
        measured, page = PARTS[part]
        results.setdefault(part, {})[arguments.device] = {
            "device": name, "date": time.strftime("%Y-%m-%d"), "rows": measured(arguments.device),
        }  # fmt: skip
        lines = []
        for result in results[part].values():
            where = f"`python benchmarks/sequence.py --only {part}` on {result['device']}, {result['date']}."
            lines += [where, "", *page(result["rows"]), ""]
        (pages / f"sequence-{part}.md").write_text("\n".join(lines), encoding="utf-8")
        record.write_text(json.dumps(results, indent=1) + "\n")
        print((pages / f"sequence-{part}.md").read_text(), flush=True)


if __name__ == "__main__":
    main()
