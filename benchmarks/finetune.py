"""Fine-tuning: SST-2, MRPC, STS-B and SQuAD from the weights of a small BERT; features of a frozen one on the CPU.

    python benchmarks/finetune.py DATA WEIGHTS [--only sst2 --only squad …] [--rows N] [--out FOLDER]

DATA holds sentences/ (sst2, mrpc, stsb-en-*.csv) and qa/ (squad-train-part.json, squad-dev-v1.1.json), packed or not;
WEIGHTS is a folder of Hugging Face's, such as all-MiniLM-L6-v2. Told: the task's figure on its dev data, which also
chose the weights, as GLUE's dev figures have it, and the seconds of training and choosing.

SQuAD stands beside a plain loop with transformers' own net, at the same settings (batch, length, rate, epochs, bf16,
AdamW), padded to the longest of a batch as its collator does, timed from the first step to the last, in turns.
`features` are vectors of 5,000 rows of SST-2 by the frozen net and a logistic regression (scikit-learn), on the CPU.
`--rows N` takes N rows of each training set and N of dev, to see that it works. Results: results/finetune.json beside
this file and docs/results/finetune.md (with --out, in that folder instead); a run adds to what is there.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

import firth  # noqa: E402
from firth.core.report import PlainNotes  # noqa: E402

SPANS = {"epochs": 5, "batch": 64, "learning_rate": 2e-4, "warmup": 0.1, "weight_decay": 0.01, "length": 384}
TASKS: dict[str, dict[str, Any]] = {
    "sst2": {"epochs": 3, "batch": 64, "learning_rate": 1e-4, "length": 128},
    "mrpc": {"epochs": 5, "batch": 32, "rates": "1e-4,2e-4", "restarts": 2, "metric": "f1", "length": 256},
    "stsb": {"epochs": 5, "batch": 32, "rates": "1e-4,2e-4", "restarts": 2, "length": 256},
}
POOLS = ("cls", "mean")
SEEDS = 2  # of SQuAD
AIMS = {"sst2": ("accuracy", 0.90), "mrpc": ("f1", 0.88), "stsb": ("spearman", 0.86)}
NAMES = {"sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B"}
FEATURE_ROWS = 5000
CUDA = torch.cuda.is_available()


def packed(data: Path, name: str) -> Path:
    """A file, packed or not."""
    path = data / name
    return path if path.exists() else path.with_name(path.name + ".xz")


def text_of(data: Path, name: str) -> str:
    path = packed(data, name)
    raw = path.read_bytes()
    return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8-sig")


def table(
    data: Path, name: str, columns: dict[int, str], rows: int, header: bool, quoted: bool
) -> dict[str, list[str]]:
    """Some columns of a csv or tsv, by their places. GLUE's tsv files have quotes that are no quotes."""
    delimiter = "," if name.endswith(".csv") else "\t"
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    lines = list(csv.reader(io.StringIO(text_of(data, name), newline=""), delimiter=delimiter, quoting=quoting))
    lines = [line for line in lines[header:] if len(line) > max(columns)][: rows or None]
    return {named: [line[place].strip() for line in lines] for place, named in columns.items()}


def examples(data: Path, task: str, rows: int) -> firth.Examples:
    if task == "sst2":
        parts = [
            table(data, f"sentences/sst2/{part}.tsv", {0: "text", 1: "label"}, rows, True, False)
            for part in ("train", "dev")
        ]
        return firth.Examples(parts[0], dev=parts[1])
    if task == "mrpc":
        columns = {0: "label", 3: "text", 4: "other"}
        parts = [
            table(data, f"sentences/mrpc/{part}_cleaned.tsv", columns, rows, True, False) for part in ("train", "dev")
        ]
        parts = [
            {name: [cell.strip('"').replace('""', '"') for cell in cells] for name, cells in part.items()}
            for part in parts
        ]
    else:
        columns = {0: "text", 1: "other", 2: "label"}
        parts = [table(data, f"sentences/stsb-en-{part}.csv", columns, rows, False, True) for part in ("train", "dev")]
        for part in parts:
            part["label"] = [float(cell) for cell in part["label"]]  # type: ignore[misc]
    return firth.Examples(parts[0], other="other", dev=parts[1])


def tuned(data: Path, weights: Path, task: str, rows: int, run: firth.Run, changes: dict[str, Any]) -> dict[str, Any]:
    """One of the three tasks of sentences, by [CLS] and by the mean of the tokens."""
    known, base = examples(data, task, rows), firth.load(weights)
    found = {pool: one_pool(known, base, task, run, {**TASKS[task], "pool": pool, **changes}) for pool in POOLS}
    best = max(found.values(), key=lambda one: one["value"])
    return {**best, "pools": {pool: one["value"] for pool, one in found.items()}}


def one_pool(known: Any, base: Any, task: str, run: firth.Run, settings: dict[str, Any]) -> dict[str, Any]:
    method = firth.Regress(**settings) if task == "stsb" else firth.Classify(**settings)
    began = time.perf_counter()
    model = method.fit(known, run, base)
    seconds = time.perf_counter() - began
    figures, (name, aim) = model.training, AIMS[task]
    best = max(figures["held_out"], key=lambda one: one["score"])
    return {
        "figure": name,
        "value": figures[name],
        "aim": aim,
        "seconds": seconds,
        "training": figures["seconds"],
        "rows": figures["texts"],
        "texts_per_second": figures["texts_per_second"],
        "others": {
            key: figures[key] for key in ("accuracy", "f1", "matthews", "spearman", "pearson") if key in figures
        },
        "best": {key: best[key] for key in ("try", "rate", "share")},
        "pool": settings["pool"],
        "options": method.options(),
        "device": figures.get("device", "CPU"),
    }


# ---- features ----


def features(data: Path, weights: Path, rows: int) -> dict[str, Any]:
    """A frozen net's vectors, a linear layer by logistic regression; all on the CPU."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from firth.sklearn import Features

    count = rows or FEATURE_ROWS
    train = table(data, "sentences/sst2/train.tsv", {0: "text", 1: "label"}, 0, True, False)
    dev = table(data, "sentences/sst2/dev.tsv", {0: "text", 1: "label"}, rows, True, False)
    chosen = np.random.default_rng(1).permutation(len(train["text"]))[:count]
    texts, labels = ([train[name][row] for row in chosen] for name in ("text", "label"))
    began = time.perf_counter()
    pipeline = make_pipeline(Features(model=str(weights)), LogisticRegression(max_iter=2000, C=3.0))
    pipeline.fit(texts, labels)
    score = float(pipeline.score(dev["text"], dev["label"]))
    return {"accuracy": score, "aim": 0.79, "seconds": time.perf_counter() - began, "rows": len(texts), "device": "CPU"}


# ---- SQuAD, and the same with transformers' net ----


def squad(data: Path, weights: Path, rows: int, run: firth.Run, changes: dict[str, Any]) -> dict[str, Any]:
    """Firth and transformers in turns, each with several seeds: the best speed of each, the mean of its figures."""
    train, dev = (firth.Questions(packed(data, f"qa/squad-{part}.json")) for part in ("train-part", "dev-v1.1"))
    train.rows, dev.rows = train.rows[: rows or None], dev.rows[: rows or None]
    settings = {**SPANS, **changes}
    base, peer = firth.load(weights), Peer(train, dev, weights, settings)
    few = firth.Questions(train)
    few.rows = train.rows[: 2 * settings["batch"]]
    firth.Answer(**{**settings, "epochs": 1}, held_out=0.0).fit(few, run, base)  # the first steps load kernels
    found: dict[str, list[dict[str, float]]] = {"firth": [], "transformers": []}
    for seed in range(1, SEEDS + 1):
        found["firth"].append(firth_answers(train, dev, base, settings, replace(run, seed=seed)))
        found["transformers"].append(peer.answers(seed))
        print(json.dumps({who: rounds[-1] for who, rounds in found.items()}), flush=True)
    result: dict[str, Any] = {}
    for who, rounds in found.items():
        fastest = max(rounds, key=lambda one: one["windows_per_second"])
        means = {name: float(np.mean([one[name] for one in rounds])) for name in ("exact_match", "f1")}
        result[who] = {**fastest, **means, "rounds": rounds}
    faster = result["firth"]["windows_per_second"] / result["transformers"]["windows_per_second"]
    device = torch.cuda.get_device_name() if CUDA else "CPU"
    return {**result, "faster": faster, "aim": 0.60, "options": settings, "device": device}


def firth_answers(train: Any, dev: Any, base: Any, settings: dict[str, Any], run: firth.Run) -> dict[str, float]:
    from firth.evaluate import answers

    model = firth.Answer(**settings, held_out=0.0).fit(train, run, base)
    if CUDA:
        model.net.cuda()
    began = time.perf_counter()
    found = answers(model, dev)
    figures = model.training
    return {
        "exact_match": found.exact_match,
        "f1": found.f1,
        "training": figures["seconds"],
        "windows": figures["windows"],
        "windows_per_second": figures["texts_per_second"],
        "answering": time.perf_counter() - began,
        "steps": figures["steps"],
    }


class Peer:
    """A plain fine-tuning loop: tokenizer with overflowing windows, padding, AdamW, linear decay, bf16."""

    def __init__(self, train: Any, dev: Any, weights: Path, settings: dict[str, Any]) -> None:
        from transformers import AutoTokenizer

        self.dev, self.weights, self.settings = dev.rows, weights, settings
        tokenizer = AutoTokenizer.from_pretrained(weights)
        self.rows = peer_windows(tokenizer, train.rows, settings["length"], teaching=True)
        self.asked = peer_windows(tokenizer, dev.rows, settings["length"], teaching=False)

    def answers(self, seed: int) -> dict[str, float]:
        from transformers import BertForQuestionAnswering, get_linear_schedule_with_warmup

        torch.manual_seed(seed)
        settings, rows, device = self.settings, self.rows, torch.device("cuda" if CUDA else "cpu")
        net = BertForQuestionAnswering.from_pretrained(self.weights, attn_implementation="sdpa", dtype=torch.float32)
        net = net.to(device)
        steps = -(-len(rows) // settings["batch"]) * settings["epochs"]
        groups = [
            {"params": [part for part in net.parameters() if part.dim() > 1], "weight_decay": settings["weight_decay"]},
            {"params": [part for part in net.parameters() if part.dim() <= 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=settings["learning_rate"], fused=CUDA)
        schedule = get_linear_schedule_with_warmup(optimizer, int(settings["warmup"] * steps), steps)
        random = np.random.default_rng(seed)
        net.train()
        self.loss(net, rows[: settings["batch"]], device).backward()  # the first one loads kernels
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        began = time.perf_counter()
        for _ in range(settings["epochs"]):
            order = random.permutation(len(rows))
            for first in range(0, len(order), settings["batch"]):
                batch = [rows[row] for row in order[first : first + settings["batch"]]]
                self.loss(net, batch, device).backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
        synchronize()
        training = time.perf_counter() - began
        speed = settings["epochs"] * len(rows) / training
        found = peer_score(net.eval(), self.asked, self.dev, device)
        return {**found, "training": training, "windows": len(rows), "windows_per_second": speed, "steps": steps}

    def loss(self, net: Any, batch: list[dict[str, Any]], device: torch.device) -> Any:
        tensors = padded(batch)
        tensors |= {name: torch.tensor([row[name] for row in batch]) for name in ("start_positions", "end_positions")}
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            return net(**{name: tensor.to(device) for name, tensor in tensors.items()}).loss


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def peer_windows(tokenizer: Any, asked: Any, length: int, teaching: bool) -> list[dict[str, Any]]:
    """As run_qa.py has it: windows of `length` with a stride of 128; where the answer is not inside, it is [CLS]."""
    found = []
    for first in range(0, len(asked), 1000):
        some = asked[first : first + 1000]
        encoded = tokenizer(
            [row.question for row in some], [row.passage for row in some], truncation="only_second", max_length=length,
            stride=128, return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        for number, owner in enumerate(encoded["overflow_to_sample_mapping"]):
            kinds, offsets = encoded.sequence_ids(number), encoded["offset_mapping"][number]
            inside = [place for place, kind in enumerate(kinds) if kind == 1]
            row = {"input_ids": encoded["input_ids"][number], "token_type_ids": encoded["token_type_ids"][number]}
            row |= {"owner": first + owner, "offsets": offsets, "inside": inside}
            if teaching:
                question = some[owner]
                begin, end = question.starts[0], question.starts[0] + len(question.answers[0])
                covered = inside and offsets[inside[0]][0] <= begin and offsets[inside[-1]][1] >= end
                touched = [place for place in inside if offsets[place][0] < end and offsets[place][1] > begin]
                spans = (touched[0], touched[-1]) if covered and touched else (0, 0)
                row |= {"start_positions": spans[0], "end_positions": spans[1]}
            found.append(row)
    return found


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
def peer_score(net: Any, rows: list[dict[str, Any]], asked: Any, device: torch.device) -> dict[str, float]:
    """The best stretch of at most 30 tokens over a question's windows, judged as Firth's are."""
    from firth.core.scores import answer_f1, exact_match

    best: dict[int, tuple[float, str]] = {}
    began = time.perf_counter()
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]["input_ids"]))
    for first in range(0, len(order), 128):
        batch = [rows[row] for row in order[first : first + 128]]
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            found = net(**{name: tensor.to(device) for name, tensor in padded(batch).items()})
        starts, ends = found.start_logits.float().cpu().numpy(), found.end_logits.float().cpu().numpy()
        for row, start, end in zip(batch, starts, ends, strict=True):
            places = row["inside"]
            table = start[places][:, None] + end[places][None]
            table[np.tri(len(places), k=-1, dtype=bool) | ~np.tri(len(places), k=29, dtype=bool)] = -np.inf
            one, other = np.unravel_index(int(table.argmax()), table.shape)
            score = float(table[one, other])
            if score > best.get(row["owner"], (-np.inf, ""))[0]:
                passage = asked[row["owner"]].passage
                begin, stop = row["offsets"][places[one]][0], row["offsets"][places[other]][1]
                best[row["owner"]] = score, passage[begin:stop]
    answering = time.perf_counter() - began
    exact = [exact_match(best[number][1], row.answers) for number, row in enumerate(asked)]
    overlap = [answer_f1(best[number][1], row.answers) for number, row in enumerate(asked)]
    return {"exact_match": float(np.mean(exact)), "f1": float(np.mean(overlap)), "answering": answering}


# ---- the page ----


def page(results: dict[str, Any]) -> Iterator[str]:
    devices = sorted({found["device"] for found in results.values()})
    yield f"`python benchmarks/finetune.py DATA WEIGHTS` with all-MiniLM-L6-v2 on {' and '.join(devices)},"
    yield f"{time.strftime('%Y-%m-%d')}."
    sentences = {name: results[name] for name in NAMES if name in results}
    if sentences:
        yield "Figures on dev data, which also chose the weights; seconds of all tries of the better pool."
        yield ""
        yield "| task | figure | aimed at | by [CLS] | by the mean | best rate | tries each | s | texts/s |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, found in sentences.items():
        tries = found["options"]["restarts"] * len((found["options"]["rates"] or "1").split(","))
        yield (
            f"| {NAMES[name]} | {found['figure']} {100 * found['value']:.1f} | {100 * found['aim']:.0f} | "
            f"{100 * found['pools']['cls']:.1f} | {100 * found['pools']['mean']:.1f} | "
            f"{found['best']['rate']:g} | {tries} | {found['seconds']:.0f} | {found['texts_per_second']:,.0f} |"
        )
    if "features" in results:
        found = results["features"]
        yield ""
        yield f"Frozen, on a CPU: vectors of {found['rows']:,} rows of SST-2 and a logistic regression: accuracy"
        yield f"{100 * found['accuracy']:.1f} (aimed at {100 * found['aim']:.0f}), {found['seconds']:.0f} s in all."
    if "squad" in results:
        found = results["squad"]
        yield ""
        yield "SQuAD 1.1, a part of its training data (11,877 questions), all of its dev data. Figures are means over"
        yield f"{len(found['firth']['rounds'])} seeds, times the best of them:"
        yield ""
        yield "| | exact match | F1 | s of training | windows/s | s to answer |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for who in ("firth", "transformers"):
            one = found[who]
            yield (
                f"| {who} | {100 * one['exact_match']:.1f} | {100 * one['f1']:.1f} | {one['training']:.1f} "
                f"| {one['windows_per_second']:,.0f} | {one['answering']:.1f} |"
            )
        yield ""
        yield f"Firth trains {found['faster']:.2f} times as fast: no padding is computed."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--only", action="append", help="sst2, mrpc, stsb, squad, features; may be given several times")
    parser.add_argument("--rows", type=int, default=0, help="only so many rows of each set")
    parser.add_argument("--threads", type=int, default=0, help="of a CPU; 0 = one for each core")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another option of the methods"
    )
    parser.add_argument("--out", type=Path, help="a folder for results instead of benchmarks/results and docs/results")
    arguments = parser.parse_args()
    record = (arguments.out or HERE / "results") / "finetune.json"
    written = (arguments.out or HERE.parent / "docs" / "results") / "finetune.md"
    results: dict[str, Any] = json.loads(record.read_text())["runs"] if record.exists() else {}
    changes = {name: json.loads(value) for name, _, value in (item.partition("=") for item in arguments.set)}
    print(f"torch {torch.__version__}, {platform.platform()}, cuda {CUDA}", flush=True)
    where, run = (arguments.data, arguments.weights), firth.Run(report=PlainNotes(), threads=arguments.threads)
    tasks: dict[str, Callable[[], dict[str, Any]]] = {
        **{name: lambda name=name: tuned(*where, name, arguments.rows, run, changes) for name in TASKS},
        "squad": lambda: squad(*where, arguments.rows, run, changes),
        "features": lambda: features(*where, arguments.rows),
    }
    for name in arguments.only or tasks:
        results[name] = tasks[name]()
        print(json.dumps({name: {key: value for key, value in results[name].items() if key != "options"}}), flush=True)
        for path in (record, written):
            path.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"runs": results}, indent=1, ensure_ascii=False) + "\n")
        written.write_text("\n".join([*page(results), ""]), encoding="utf-8")
    print("\n".join(page(results)))


if __name__ == "__main__":
    main()
