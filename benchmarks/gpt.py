"""GPT: a character model of Shakespeare, training speed against Hugging Face's GPT-2, cached generation, attention.

    python benchmarks/gpt.py DATA [--only shakespeare|training|generation|attention] [--device auto|cpu|cuda]
                                  [--budget SECONDS] [--out FOLDER]

DATA holds text/tinyshakespeare.txt.xz. `training` needs a GPU and transformers; `generation` and `attention` use
random weights. Shakespeare: the usual split (the last tenth is held out), loss per character; on a GPU a network of 6
layers and 384 dimensions, on a CPU one of 4 and 128, as in nanoGPT. Libraries run interleaved in the same process; the
best round counts.
Results: FOLDER/gpt-PART-DEVICE.json (default benchmarks/results), and docs/results/gpt.md from all available ones.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import firth
from firth.core.report import JsonLines
from firth.nets.architecture import Architecture
from firth.nets.attention import MultiHead
from firth.nets.transformer import Decoder, parameters

HERE = Path(__file__).resolve().parent


def shakespeare(data: Path, device: str, budget: float) -> dict[str, Any]:
    with lzma.open(data / "text" / "tinyshakespeare.txt.xz", "rt", encoding="utf-8") as file:
        text = file.read()
    common = {"tokenizer": "characters", "held_out": 0.1, "weight_decay": 0.1, "beta2": 0.99}
    if device == "cuda":
        method = firth.GPT(
            layers=6,
            dim=384,
            heads=6,
            context_length=256,
            dropout=0.4,
            batch_tokens=16384,
            learning_rate=2e-3,
            epochs=50,
            positions="rotary",
            **common | {"weight_decay": 1.0},
        )
    else:
        method = firth.GPT(
            layers=4,
            dim=128,
            heads=4,
            context_length=64,
            dropout=0.0,
            batch_tokens=768,
            learning_rate=2e-3,
            epochs=100,
            **common,
        )
    model = method.fit([text], firth.Run(device=device, budget=budget, report=JsonLines()))
    metrics = model.training
    return {
        "held_out_loss": metrics["held_out_loss"],
        "seconds": metrics["seconds"],
        "tokens_per_second": metrics["tokens_per_second"],
        "steps": metrics["steps"],
        "parameters": metrics["parameters"],
        "held_out": metrics["held_out"],
        "sample": "".join(model.generate("\n", 300, temperature=0.8, seed=1, slide=True)),
    }


def rates(runs: dict[str, Callable[[], None]], units: float, rounds: int, times: int) -> dict[str, float]:
    """Return units per second of each, interleaved; the best round counts."""
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            wait()
            began = time.perf_counter()
            for _ in range(times):
                run()
            wait()
            best[name] = max(best[name], units * times / (time.perf_counter() - began))
    return best


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def training(rows: int = 32, position_ids: int = 1024) -> dict[str, Any]:
    """A step (forward, backward, AdamW) at GPT-2 small's size, bf16, both compiled, on the same batch."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from firth.training.device import peak_of

    torch.set_float32_matmul_precision("high")
    words = 50257
    ids = torch.randint(words, (rows, position_ids + 1), device="cuda")
    size = Architecture(layers=12, dim=768, heads=12, max_positions=position_ids, dropout=0.0, activation="gelu_tanh")
    ours = Decoder(-(-words // 64) * 64, size).cuda()
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    theirs = GPT2LMHeadModel(config).cuda()

    def our_loss(ids: torch.Tensor) -> torch.Tensor:
        return ours.losses(ids).mean()

    seen = torch.ones(rows, position_ids, dtype=torch.long, device="cuda")

    def their_loss(ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        logits = theirs(ids[:, :-1], attention_mask=mask).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())

    def stepper(net: torch.nn.Module, loss: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        compiled = torch.compile(loss)
        steps = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)

        def step() -> None:
            with torch.autocast("cuda", torch.bfloat16):
                result = compiled(ids)
            steps.zero_grad(set_to_none=True)
            result.backward()
            steps.step()

        for _ in range(4):
            step()
        return step

    runs = {
        "firth": stepper(ours, our_loss),
        "transformers": stepper(theirs, their_loss),
        "transformers, given a mask of ones": stepper(theirs, lambda ids: their_loss(ids, seen)),
    }
    best = rates(runs, rows * position_ids, rounds=3, times=10)
    name = torch.cuda.get_device_name()
    peak = peak_of(torch.device("cuda"))
    operations = 6.0 * parameters(ours) + 12.0 * size.layers * size.dim * position_ids  # Chowdhery et al. 2022
    return {
        "device": name, "rows": rows, "places": position_ids, "parameters": parameters(ours), "tokens_per_second": best,
        "ratio": best["firth"] / max(speed for name, speed in best.items() if name != "firth"),
        "mfu": {key: value * operations / peak for key, value in best.items()} if peak else None,
    }  # fmt: skip


def generation(tokens: int = 200) -> dict[str, Any]:
    """Greedy, one text, a small GPT-2 with random weights: the time for the same tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from firth.transformers.families.decoders import read_decoder
    from firth.transformers.families.family import Config
    from firth.transformers.families.gpt2 import GPT2
    from firth.transformers.generation import Sampling, engine_of, generate_ids

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=6, n_embd=384, n_head=6, n_positions=512, vocab_size=8000, bos_token_id=0, eos_token_id=None
    )
    theirs = GPT2LMHeadModel(config).eval()
    arrays = {name: part.detach().numpy() for name, part in theirs.state_dict().items()}
    ours = engine_of(read_decoder(GPT2, arrays, GPT2.architecture(Config(config.to_dict()))), config.vocab_size)
    prompt = [5, 17, 99, 3]
    given = torch.tensor([prompt])
    result: dict[str, list[int]] = {}

    def we() -> None:
        result["firth"] = list(generate_ids(ours, prompt, tokens, Sampling(temperature=0), False))

    def they() -> None:
        with torch.inference_mode():
            out = theirs.generate(
                given, max_new_tokens=tokens, do_sample=False, attention_mask=torch.ones_like(given), pad_token_id=0
            )
        result["transformers"] = out[0, len(prompt) :].tolist()

    best = rates({"firth": we, "transformers": they}, tokens, rounds=5, times=1)
    return {
        "tokens_per_second": best,
        "ratio": best["firth"] / best["transformers"],
        "equal": result["firth"] == result["transformers"],
    }


def attention(device: str) -> dict[str, Any]:
    """The fast path of `MultiHead` against plain scaled_dot_product_attention with the same projections."""
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    rows, position_ids, dim, heads = (16, 1024, 768, 12) if device == "cuda" else (4, 256, 384, 6)
    part = MultiHead(dim, heads).to(device, kind).eval()
    x = torch.randn(rows, position_ids, dim, device=device, dtype=kind)

    @torch.inference_mode()
    def ours() -> None:
        part(x, causal=True)

    @torch.inference_mode()
    def bare() -> None:
        query, key, value = part.split(part.query_key_value(x), 3)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        part.output(mixed.transpose(1, 2).reshape(rows, position_ids, dim))

    ours(), bare()
    best = rates({"firth": ours, "bare": bare}, rows * position_ids, rounds=9, times=20 if device == "cuda" else 4)
    return {"tokens_per_second": best, "ratio": best["firth"] / best["bare"], "shape": [rows, position_ids, dim, heads]}


def page(folder: Path) -> Iterator[str]:
    """docs/results/gpt.md: the parts that were run, on a GPU or a CPU."""
    result = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("gpt-*.json"))}
    yield "`python benchmarks/gpt.py DATA`, on the machines given below.\n"
    rows = [result[name] | {"name": name} for name in result if "shakespeare" in name]
    if rows:
        yield "Characters of Shakespeare (1.1 MB, the last tenth held out):\n"
        yield "| | held-out loss | s to train | parameters | characters/s |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for row in rows:
            where = "one H200" if row["name"].endswith("cuda") else "2 cores"
            yield (
                f"| {where} | {row['held_out_loss']:.3f} | {row['seconds']:.0f} | {row['parameters'] / 1e6:.1f} M | "
                f"{row['tokens_per_second']:,.0f} |"
            )
        yield ""
    if "gpt-training-cuda" in result:
        row = result["gpt-training-cuda"]
        speed, mfu = row["tokens_per_second"], row["mfu"]
        size = f"{row['rows']} × {row['places']:,} tokens"
        yield f"A step at GPT-2 small's size (124 M), {size}, bf16, compiled, {row['device']}:\n"
        yield "| | tokens/s | MFU |\n| --- | ---: | ---: |"
        yield from (f"| {name} | {speed[name]:,.0f} | {mfu[name]:.1%} |" for name in speed)
        yield f"\nFirth is faster by {row['ratio']:.2f}×.\n"
    for name, row in result.items():
        if "generation" in name:
            speed = row["tokens_per_second"]
            yield (
                f"Greedy generation on a CPU, 6 layers × 384, one text: Firth {speed['firth']:,.0f} tokens/s, "
                f"transformers {speed['transformers']:,.0f} ({row['ratio']:.2f}×), "
                f"{'the same tokens' if row['equal'] else 'other tokens'}.\n"
            )
        if "attention" in name:
            where = name.rpartition("-")[2]
            yield f"`MultiHead` beside bare scaled_dot_product_attention ({where}): {row['ratio']:.3f} of its speed.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=("shakespeare", "training", "generation", "attention"))
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--budget", type=float, default=0.0)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    budget = arguments.budget or (170.0 if device == "cuda" else 600.0)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "attention": lambda: attention(device),
        "generation": generation,
        "training": training,
        "shakespeare": lambda: shakespeare(arguments.data, device, budget),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        if arguments.only not in (None, name) or (name == "training" and device != "cuda"):
            continue
        result = part()
        (arguments.out / f"gpt-{name}-{device}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(name, json.dumps({key: value for key, value in result.items() if key != "held_out"}, indent=1))
    if arguments.out == HERE / "results":
        text = "\n".join(page(arguments.out)).rstrip() + "\n"
        (HERE.parent / "docs" / "results" / "gpt.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
