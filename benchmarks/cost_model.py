"""What work on a cluster costs, from 10⁶ to 10¹² tokens: bytes, hours, memory, dollars.

    python benchmarks/cost_model.py measure TEXT [--megabytes 100] [--texts 1000]
    python benchmarks/cost_model.py table [--nodes 16] [--cores 16] [--core-hour 0.05] [--gpu-hour 4] [--kills 0.1]
        [--bandwidth 1]

measure: each task runs with one worker on one and on four portions of data (--megabytes of text, --texts texts), which
gives the constants. The model then predicts eight portions with two workers, which run next. CPU seconds, bytes and
memory hardly depend on what else the machine does, seconds do. table: the model at all sizes on --nodes machines with
--cores cores or one GPU each. Prices, --kills (per worker and hour) and --bandwidth (GB/s between a machine and the
storage) are assumptions, given as flags; speeds on a GPU are from docs/results. Both write docs/results/cost-model.md;
the constants are in benchmarks/results/cost-model.json.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.cluster import children, cpu_seconds  # noqa: E402
from benchmarks.cluster_counting import repeated  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth.cli.main import cli  # noqa: E402
from firth.core.report import Nothing  # noqa: E402
from firth.data.shard_jobs import same_workers  # noqa: E402
from firth.data.tokens import read_tokens  # noqa: E402
from firth.data.world import World  # noqa: E402

RESULTS, PAGE = HERE / "results" / "cost-model.json", HERE.parent / "docs" / "results" / "cost-model.md"
GPU_TEXTS, TEXT_TOKENS, DIM = 35_054, 42.2, 384  # all-MiniLM-L6-v2 on one H200: docs/results/encoding-cuda.md
GPU_BERT, BERT_PARAMETERS, BATCH_TOKENS = 806_545, 110e6, 32_768  # BERT-base: docs/results/bert-training.md
QUANTITIES = ("CPU s of workers", "CPU s of the command", "bytes read", "bytes written", "memory of a worker",
              "memory of the command", "seconds")  # fmt: skip
Used = dict[str, float]


# ---- the model ----


def simulate(shards: Sequence[float], workers: int, start: float = 0, kills: float = 0, seed: int = 1) -> float:
    """Return the seconds until all shards are computed; a free worker takes the next one.

    A worker is killed `kills` times an hour, starts again and repeats its shard. Finished shards stay.
    """
    decide, free = random.Random(seed), [start] * workers
    for seconds in shards:
        now = free[0]
        while kills and (alive := decide.expovariate(kills / 3600)) < seconds:
            now += alive + start
        heapq.heapreplace(free, now + seconds)
    return max(free)


def predict(constants: dict[str, dict[str, float]], units: float, workers: int, shards: int) -> Used:
    """Return what a job needs: the shards share the CPU time of the workers, the rest follows in the command."""
    found = {name: each["each"] * units + each["fixed"] for name, each in constants.items()}
    work, command = found["CPU s of workers"], found["CPU s of the command"]
    return {**found, "seconds": simulate([work / shards] * shards, workers) + command}


def fitted(small: Used, large: Used) -> dict[str, dict[str, float]]:
    """Return the part per unit and the fixed part of each quantity, from two runs."""
    found = {}
    for name in QUANTITIES:
        each = max(0.0, (large[name] - small[name]) / (large["units"] - small["units"]))
        found[name] = {"each": each, "fixed": max(0.0, small[name] - each * small["units"])}
    return found


# ---- measurements ----


def used_so_far() -> Used:
    """Return what this process and its workers used so far; bytes are those of system calls."""
    here, workers = os.getpid(), children(os.getpid())
    work = sum(map(cpu_seconds, workers))
    found = {"CPU s of workers": work, "CPU s of the command": cpu_seconds(here) - work}
    for name, field in (("bytes read", "rchar"), ("bytes written", "wchar")):
        found[name] = sum(number_in(f"/proc/{process}/io", field) for process in (here, *workers))
    found["memory of a worker"] = 1024 * max([number_in(f"/proc/{each}/status", "VmHWM") for each in workers] or [0])
    found["memory of the command"] = 1024 * number_in(f"/proc/{here}/status", "VmHWM")
    return {**found, "seconds": time.perf_counter()}


def number_in(path: str, field: str) -> int:
    with contextlib.suppress(OSError):
        return next(int(line.split()[1]) for line in Path(path).read_text().splitlines() if line.startswith(field))
    return 0


def measured(task: str, data: Path, workers: int, folder: Path) -> Used:
    """Run a task in a process of its own, and return what it needed, with the workers already started."""
    command = [sys.executable, __file__, "run", task, data, str(workers), folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # its peak memory is that of this run
    result: Used = json.loads(done.stdout)
    print(task, data.stat().st_size, workers, result, file=sys.stderr, flush=True)
    return result


def run_task(task: str, data: Path, workers: int, folder: Path) -> Used:
    os.environ["FIRTH_CACHE"] = tempfile.mkdtemp(dir=folder)
    run = firth.Run(cluster="processes", workers=workers, threads=workers, report=Nothing())
    with same_workers(run):
        perform(task, folder / "small.txt", run, folder)
        before = used_so_far()
        perform(task, data, run, folder)
        after = used_so_far()
    return {name: after[name] - (0 if "memory" in name else before[name]) for name in QUANTITIES}


def perform(task: str, data: Path, run: firth.Run, folder: Path) -> None:
    """Encode or embed a text."""
    if task == "encode":
        read_tokens(firth.Corpus(data), min_count=1, run=run)
        return
    words = ["embed", folder / "model", data, "-o", tempfile.mkdtemp(dir=folder), "--device", "cpu", "--json"]
    words += ["--shard-rows", 250, "--cluster", "processes", "--workers", run.workers]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.main([str(word) for word in words], standalone_mode=False)


def measure(text: Path, megabytes: float, texts: int) -> dict[str, Any]:
    """Measure the constants, and compare predictions with a larger run."""
    found: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()[1], "tasks": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small.txt").write_text("the king\n" * 2000)  # for all workers, which load the model then
        sentences = iter(World(seed=4).sentences(40 * texts))
        lines = [" ".join(islice(sentences, 5)) for _ in range(8 * texts)]
        method = firth.BERT(layers=6, dim=384, heads=12, context_length=64, epochs=1, batch_tokens=512)
        method.fit(firth.Corpus(lines[:20])).save(folder / "model")
        for task in ("encode", "embed"):
            runs = []
            for times in (1, 4, 8):
                data = folder / "texts.txt"
                if task == "encode":
                    data = repeated(text, int(times * megabytes * 1e6), folder)
                else:
                    data.write_text("\n".join(lines[: times * texts]) + "\n")
                units = data.stat().st_size / 1e6 if task == "encode" else float(times * texts)
                runs.append({**measured(task, data, 2 if times == 8 else 1, folder), "units": units})
            constants = fitted(runs[0], runs[1])
            shards = max(2, round(units / (64 if task == "encode" else 250)))
            prediction = predict(constants, units, 2, shards)
            found["tasks"][task] = {"constants": constants, "predicted": prediction, "measured": runs[2]}
        tokenizer = firth.load(folder / "model", firth.BERT).tokenizer
        found["tokens per text"] = sum(map(len, tokenizer.ids_batch(lines[:200]))) / 200
        found |= vocabulary(text, folder)
    return found


def vocabulary(text: Path, folder: Path) -> dict[str, float]:
    """Return bytes per token, the growth of the vocabulary (Heaps' law), and the memory per word."""
    words = text.read_text(encoding="utf-8", errors="replace").lower().split()
    sizes = [len(set(words[: len(words) // part])) for part in (8, 1)]
    peaks = []
    for distinct in (1, 1_000_000):
        (folder / "words.txt").write_text("".join(f"w{number % distinct}\n" for number in range(1_000_000)))
        peaks.append(measured("encode", folder / "words.txt", 1, folder))
    memory = {name: (peaks[1][name] - peaks[0][name]) / 1e6 for name in QUANTITIES if "memory" in name}
    return {
        "bytes per token": text.stat().st_size / len(words),
        "words of the text": sizes[1],
        "tokens of the text": len(words),
        "growth of the vocabulary": math.log(sizes[1] / sizes[0], 8),
        "bytes per word in a worker": memory["memory of a worker"],
        "bytes per word in the command": memory["memory of the command"],
    }


# ---- the page ----


def page(found: dict[str, Any], given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "`python benchmarks/cost_model.py measure TEXT` and `table`, " + found["machine"] + ", two cores."
    yield ""
    yield "Constants are from runs with one worker on one and four portions of data; the predictions are for eight"
    yield "portions with two workers. Seconds are predicted for cores that do nothing else; they were measured"
    yield f"with a load of {found['load']:.0f} on two cores."
    yield ""
    yield "| task | quantity | per unit | predicted | measured | difference |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for task, runs in found["tasks"].items():
        for name in QUANTITIES:
            expected, got = runs["predicted"][name], runs["measured"][name]
            each = runs["constants"][name]["each"]
            each = 0 if each < 1e-9 else each
            yield f"| {task} | {name} | {short(each)} | {short(expected)} | {short(got)} | {got / expected - 1:+.0%} |"
    yield ""
    yield "A unit is a MB of text (encode) or a text (embed, a BERT of 6 × 384)."
    yield ""
    yield (
        f"The model on {given.nodes} machines with {given.cores} cores or one GPU each, ${given.core_hour} per core "
        f"and hour, ${given.gpu_hour} per GPU and hour, {given.kills} kills per worker and hour, "
        f"{given.bandwidth} GB/s between a machine and the storage (assumed). A token has "
        f"{found['bytes per token']:.1f} bytes, a text {TEXT_TOKENS} tokens, a vector {DIM} float32 numbers. A GPU "
        f"embeds {GPU_TEXTS:,} texts per second (all-MiniLM-L6-v2 on an H200, `benchmarks/encoding.py`)."
    )
    yield ""
    heads = ("tokens", "text", "encode: read, written", "time", "memory of a worker, of the command", "$")
    heads += ("vectors", "embed on GPUs: time", "$", "on CPUs: time", "$")
    yield f"| {' | '.join(heads)} |"
    yield f"|{' ---: |' * len(heads)}"
    for power in range(6, 13):
        yield row(10.0**power, power, found, given)
    yield ""
    step = 2 * (given.nodes - 1) / given.nodes * 4 * BERT_PARAMETERS
    yield (
        "Networks: in a step of DDP each of n processes sends 2 (n − 1)/n × 4 bytes per parameter (ring all-reduce), "
        f"for BERT-base on {given.nodes} GPUs {short(step)}B per step, {short(step * GPU_BERT / BATCH_TOKENS)}B per "
        f"second with {BATCH_TOKENS:,} tokens per GPU and step at {GPU_BERT:,} tokens/s. This is a formula, not a "
        "measurement; `--accumulation` divides it."
    )


def row(tokens: float, power: int, found: dict[str, Any], given: argparse.Namespace) -> str:
    """Return a row of the table."""
    encode, embed = (found["tasks"][name]["constants"] for name in ("encode", "embed"))
    size, texts, cores = tokens * found["bytes per token"], tokens / TEXT_TOKENS, given.nodes * given.cores
    shard = min(max(size / 64, 64e6), 512e6)
    shards, per_mb = max(1, round(size / shard)), encode["CPU s of workers"]["each"]
    seconds = simulate([per_mb * size / 1e6 / shards] * shards, cores, 1, given.kills)
    command = encode["CPU s of the command"]["each"] * size / 1e6
    link = given.bandwidth * 1e9  # of a machine to the storage
    seconds = max(seconds, size / given.nodes / link) + max(command, 8 * tokens / link)  # ids are read and written
    hours = seconds / 3600
    memory = [
        base + each * distinct
        for base, each, distinct in (
            (encode["memory of a worker"]["fixed"], found["bytes per word in a worker"], words_in(shard, found)),
            (encode["memory of the command"]["fixed"], found["bytes per word in the command"], words_in(size, found)),
        )
    ]
    read, written = (encode[f"bytes {name}"]["each"] * size / 1e6 for name in ("read", "written"))
    parts = max(1, round(texts / 65_536))
    on_gpu = simulate([texts / parts / GPU_TEXTS] * parts, given.nodes, 10, given.kills) / 3600
    per_text = embed["CPU s of workers"]["each"] * TEXT_TOKENS / found["tokens per text"]
    on_cpu = simulate([texts / parts * per_text] * parts, cores, 5, given.kills) / 3600
    exponent = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power))
    cells = [f"10{exponent}", f"{short(size)}B", f"{short(read)}B, {short(written)}B", duration(hours)]
    cells += [f"{short(memory[0])}B, {short(memory[1])}B", money(hours * cores * given.core_hour)]
    cells += [f"{short(texts * DIM * 4)}B", duration(on_gpu), money(on_gpu * given.nodes * given.gpu_hour)]
    cells += [duration(on_cpu), money(on_cpu * cores * given.core_hour)]
    return f"| {' | '.join(cells)} |"


def words_in(size: float, found: dict[str, Any]) -> float:
    """Return the number of different words in so many bytes of text: Heaps' law."""
    tokens = size / found["bytes per token"] / found["tokens of the text"]
    return float(found["words of the text"] * tokens ** found["growth of the vocabulary"])


def short(number: float) -> str:
    """Return a number with a unit: 1.2G."""
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.2g}"


def duration(hours: float) -> str:
    """Return hours with a unit."""
    if hours < 1 / 60:
        return f"{hours * 3600:.2g} s"
    return f"{hours:.3g} h" if hours >= 1 else f"{hours * 60:.2g} min"


def money(dollars: float) -> str:
    return f"{dollars:,.0f}" if dollars >= 10 else f"{dollars:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring, tabling = commands.add_parser("measure"), commands.add_parser("table")
    measuring.add_argument("text", type=Path)
    measuring.add_argument("--megabytes", type=float, default=100)
    measuring.add_argument("--texts", type=int, default=1000)
    for each in (measuring, tabling):
        for name, default in (
            ("nodes", 16),
            ("cores", 16),
            ("core-hour", 0.05),
            ("gpu-hour", 4.0),
            ("kills", 0.1),
            ("bandwidth", 1.0),
        ):
            each.add_argument(f"--{name}", type=type(default), default=default)
    running = commands.add_parser("run")  # one task in a process of its own
    running.add_argument("task")
    running.add_argument("data", type=Path)
    running.add_argument("workers", type=int)
    running.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "run":
        print(json.dumps(run_task(given.task, given.data, given.workers, given.folder)))
        return
    if given.command == "measure":
        RESULTS.write_text(json.dumps(measure(given.text, given.megabytes, given.texts), indent=2) + "\n")
    PAGE.write_text("\n".join(page(json.loads(RESULTS.read_text()), given)) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
