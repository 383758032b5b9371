"""SQuAD with transformers' model: the plain loop that finetune.py compares with. Not a script."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from firth.core.scores import answer_f1, exact_match

CUDA = torch.cuda.is_available()


class Peer:
    """A plain fine-tuning loop: tokenizer with overflowing windows, padding, AdamW, linear decay, bf16."""

    def __init__(self, train: Any, dev: Any, weights: Path, settings: dict[str, Any]) -> None:
        from transformers import AutoTokenizer

        self.dev, self.weights, self.settings = dev.rows, weights, settings
        tokenizer = AutoTokenizer.from_pretrained(weights)
        self.rows = peer_windows(tokenizer, train.rows, settings["max_length"], teaching=True)
        self.dev_windows = peer_windows(tokenizer, dev.rows, settings["max_length"], teaching=False)

    def answers(self, seed: int) -> dict[str, float]:
        from transformers import BertForQuestionAnswering, get_linear_schedule_with_warmup

        torch.manual_seed(seed)
        settings, rows, device = self.settings, self.rows, torch.device("cuda" if CUDA else "cpu")
        net: Any = BertForQuestionAnswering.from_pretrained(self.weights, attn_implementation="sdpa")
        net = net.float().to(device)
        steps = -(-len(rows) // settings["batch_size"]) * settings["epochs"]
        groups = [
            {"params": [part for part in net.parameters() if part.dim() > 1], "weight_decay": settings["weight_decay"]},
            {"params": [part for part in net.parameters() if part.dim() <= 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=settings["learning_rate"], fused=CUDA)
        schedule = get_linear_schedule_with_warmup(optimizer, int(settings["warmup"] * steps), steps)
        random = np.random.default_rng(seed)
        net.train()
        self.loss(net, rows[: settings["batch_size"]], device).backward()  # warm-up: the first one loads kernels
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        began = time.perf_counter()
        for _ in range(settings["epochs"]):
            order = random.permutation(len(rows))
            for first in range(0, len(order), settings["batch_size"]):
                batch = [rows[row] for row in order[first : first + settings["batch_size"]]]
                self.loss(net, batch, device).backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
        synchronize()
        training = time.perf_counter() - began
        speed = settings["epochs"] * len(rows) / training
        results = peer_score(net.eval(), self.dev_windows, self.dev, device)
        return {**results, "training": training, "windows": len(rows), "windows_per_second": speed, "steps": steps}

    def loss(self, net: Any, batch: list[dict[str, Any]], device: torch.device) -> Any:
        tensors = padded(batch)
        tensors |= {name: torch.tensor([row[name] for row in batch]) for name in ("start_positions", "end_positions")}
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            return net(**{name: tensor.to(device) for name, tensor in tensors.items()}).loss


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def peer_windows(tokenizer: Any, dev_windows: Any, length: int, teaching: bool) -> list[dict[str, Any]]:
    """Return windows as in run_qa.py: `length` tokens with a stride of 128; an answer outside is mapped to [CLS]."""
    results = []
    for first in range(0, len(dev_windows), 1000):
        some = dev_windows[first : first + 1000]
        encoded = tokenizer(
            [row.question for row in some], [row.passage for row in some], truncation="only_second", max_length=length,
            stride=128, return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        for number, owner in enumerate(encoded["overflow_to_sample_mapping"]):
            kinds, offsets = encoded.sequence_ids(number), encoded["offset_mapping"][number]
            inside = [position for position, kind in enumerate(kinds) if kind == 1]
            row = {"input_ids": encoded["input_ids"][number], "token_type_ids": encoded["token_type_ids"][number]}
            row |= {"owner": first + owner, "offsets": offsets, "inside": inside}
            if teaching:
                question = some[owner]
                begin, end = question.starts[0], question.starts[0] + len(question.answers[0])
                covered = inside and offsets[inside[0]][0] <= begin and offsets[inside[-1]][1] >= end
                touched = [
                    position for position in inside if offsets[position][0] < end and offsets[position][1] > begin
                ]
                spans = (touched[0], touched[-1]) if covered and touched else (0, 0)
                row |= {"start_positions": spans[0], "end_positions": spans[1]}
            results.append(row)
    return results


def padded(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    longest = max(len(row["input_ids"]) for row in rows)

    def filled(name: str) -> torch.Tensor:
        return torch.tensor([row[name] + [0] * (longest - len(row[name])) for row in rows])

    mask = [[1] * len(row["input_ids"]) + [0] * (longest - len(row["input_ids"])) for row in rows]
    return {
        "input_ids": filled("input_ids"),
        "token_type_ids": filled("token_type_ids"),
        "attention_mask": torch.tensor(mask),
    }


@torch.inference_mode()
def peer_score(net: Any, rows: list[dict[str, Any]], dev_windows: Any, device: torch.device) -> dict[str, float]:
    """Return the scores of the best spans of at most 30 tokens over a question's windows, evaluated as Firth's."""
    best: dict[int, tuple[float, str]] = {}
    began = time.perf_counter()
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]["input_ids"]))
    for first in range(0, len(order), 128):
        batch = [rows[row] for row in order[first : first + 128]]
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            results = net(**{name: tensor.to(device) for name, tensor in padded(batch).items()})
        starts, ends = results.start_logits.float().cpu().numpy(), results.end_logits.float().cpu().numpy()
        for row, start, end in zip(batch, starts, ends, strict=True):
            positions = row["inside"]
            table = start[positions][:, None] + end[positions][None]
            table[np.tri(len(positions), k=-1, dtype=bool) | ~np.tri(len(positions), k=29, dtype=bool)] = -np.inf
            one, other = np.unravel_index(int(table.argmax()), table.shape)
            score = float(table[one, other])
            if score > best.get(row["owner"], (-np.inf, ""))[0]:
                passage = dev_windows[row["owner"]].passage
                begin, stop = row["offsets"][positions[one]][0], row["offsets"][positions[other]][1]
                best[row["owner"]] = score, passage[begin:stop]
    answering = time.perf_counter() - began
    exact = [exact_match(best[number][1], row.answers) for number, row in enumerate(dev_windows)]
    overlap = [answer_f1(best[number][1], row.answers) for number, row in enumerate(dev_windows)]
    return {"exact_match": float(np.mean(exact)), "f1": float(np.mean(overlap)), "answering": answering}
