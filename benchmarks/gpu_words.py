"""Word and node vectors on a GPU against the CPU, gensim and plain torch: speed, quality, total time to vectors.

    python benchmarks/gpu_words.py DATA [--parts check,graphs,tiles,skipgram,programs,dims,torch,whole,cbow,cpu]
                                   [--seconds 110] [--results benchmarks/results] [--work benchmarks/work] [--page]

DATA as for words.py and graphs.py. 128 dimensions, window 5, 5 negative samples, 5 epochs over the full text, three
seeds. `--parts cpu,gensim` needs no GPU, so it can run elsewhere; gensim has its own environment (python -m
benchmarks.peers gensim). Every row is saved to gpu-words.json at once and replaces an older one of that name; nothing
new starts after `--seconds`. `--page` writes docs/results/gpu-words.md and docs/_static/gpu-programs.svg from that
file.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.gpu_words_page import write_page  # noqa: E402
from benchmarks.graphs import SETTINGS, edge_list  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.data.tokens import Tokens, read_tokens  # noqa: E402

DIM, SEEDS, SPLITS = 128, 3, 2
CHECKED = 20_000  # tokens that the GPU and the CPU are compared on
PARTS = ("check", "graphs", "tiles", "skipgram", "programs", "dims", "torch", "whole", "cbow", "cpu", "gensim")
ANYWHERE = ("cpu", "gensim")  # parts that need no GPU
KEPT = (
    "reading_seconds", "startup_seconds", "preparing_seconds", "seconds", "kernel_seconds", "preparation_seconds",
    "walk_seconds", "words_per_second", "kernel_words_per_second", "pairs_per_second", "bytes_per_second",
    "bandwidth", "bandwidth_share", "programs", "loss", "device",
)  # fmt: skip


def method(**options: Any) -> firth.SkipGram:
    return firth.SkipGram(**{"dim": DIM, "tokenizer": "whitespace", **options})


class Bench:
    """The data, the results so far and the remaining time."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.data, self.work, self.words = given.data, given.work, given.words
        self.file = given.results / "gpu-words.json"
        self.results: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.deadline = time.perf_counter() + given.seconds
        self.unpacking: Future[Path] | None = None

    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    def keep(self, part: str, name: str, **metrics: Any) -> None:
        rows = self.results.setdefault(part, {})
        rows[name] = {key: float(f"{x:.6g}") if isinstance(x, float) else x for key, x in metrics.items()}
        self.file.write_text(json.dumps(self.results, indent=1) + "\n")
        print(json.dumps({part: name, **rows[name]}), flush=True)

    # ---- the text ----

    def unpack(self) -> Path:
        path: Path = self.work / f"wiki17m-{self.words or 'all'}.txt"
        if not path.exists():
            half = path.with_suffix(".half")
            with lzma.open(self.data / "text" / "wiki17m.txt.xz") as file, half.open("wb") as out:
                while (block := file.read(1 << 20)) and (not self.words or out.tell() < 6 * self.words):
                    out.write(block[: 6 * self.words] if self.words else block)
            half.replace(path)
        return path

    @cached_property
    def text(self) -> Path:
        return self.unpacking.result() if self.unpacking else self.unpack()

    @cached_property
    def tokens(self) -> Tokens:
        return read_tokens(firth.Corpus(self.text), tokenizer="whitespace")

    # ---- evaluation ----

    def judge(self, vectors: firth.Vectors) -> dict[str, float]:
        words = self.data / "words"
        pairs = {name: evaluate.read_pairs(words / f"EN-{name}.txt") for name in ("WS-353-ALL", "SIMLEX-999")}
        scores = {name: evaluate.word_similarity(vectors, outcome).spearman for name, outcome in pairs.items()}
        outcome = evaluate.analogies(vectors, evaluate.read_questions(words / "questions-words.txt"))
        return {"analogies": outcome.total.accuracy, "ws353": scores["WS-353-ALL"], "simlex": scores["SIMLEX-999"]}


def selected_metrics(metrics: Any) -> dict[str, Any]:
    return {name: metrics[name] for name in KEPT if name in metrics}


def fitted(bench: Bench, name: str, part: str, selected_method: firth.Method, **settings: Any) -> None:
    """Train from the file to vectors with the public API."""
    began = time.perf_counter()
    model = selected_method.fit(firth.Corpus(bench.text), firth.Run(**settings))
    total = time.perf_counter() - began
    bench.keep(part, name, total_seconds=total, **selected_metrics(model.training), **bench.judge(model.vectors))


def trained(
    tokens: Tokens, selected_method: Any, tiles: Any = None, programs: int = 0, seed: int = 1
) -> tuple[Any, Any]:
    """Train with given tiles and programs; return the metrics."""
    from firth.words.window_training_gpu import CudaTraining

    training = CudaTraining(selected_method, tokens, firth.Run(seed=seed, device="cuda"))
    training.gpu_tables.windows.tiles = tiles or training.gpu_tables.windows.tiles
    training.gpu_tables.programs = programs or training.gpu_tables.programs
    training.gpu_tables.compile()
    return training, training.go()


# ---- parts ----


def shapes() -> dict[str, tuple[Any, int, Any]]:
    """Return the rules, dimensions and tiles to compare."""
    from firth.nets.windows_cuda import Rules, Tiles

    rules = Rules()

    def fitting(group: int, warps: int, columns: int = 128) -> tuple[Any, int, Any]:
        return rules, DIM, Tiles.fitting(rules, DIM, group)._replace(warps=warps, columns=columns)

    return {
        "1 window": fitting(1, 1),
        "2 windows": fitting(2, 1),
        "2 windows, 2 warps": fitting(2, 2),
        "2 windows, 2 warps, 64 columns": fitting(2, 2, 64),
        "2 windows, 64 columns": fitting(2, 1, 64),
        "4 windows, 2 warps": fitting(4, 2),
    }


def sizes() -> dict[str, dict[str, int]]:
    rows = {f"{dim} dimensions": {"dim": dim} for dim in (64, 100, 200, 256, 300, 512)}
    return rows | {f"window {window}": {"window": window} for window in (2, 10, 15)}


def wide_shapes() -> dict[str, tuple[Any, int, Any]]:
    from firth.kernels.predict import padded
    from firth.nets.windows_cuda import Rules, Tiles

    fitting = {dim: Tiles.fitting(Rules(), padded(dim)) for dim in (300, 512)}
    return {f"{dim} dimensions, 2 warps": (Rules(), dim, tiles._replace(warps=2)) for dim, tiles in fitting.items()}


def compile_all() -> None:
    """Compile the kernels of all parts in parallel, before anything is timed."""
    import torch

    from firth.kernels.predict import padded
    from firth.kernels.walks import Links
    from firth.nets.walks_cuda import CudaWalks
    from firth.nets.windows_cuda import Rules, Tiles, Windows
    from firth.training.gpu_tables import device

    card = device()
    wanted = list(shapes().values())
    for options in sizes().values():
        rules, stride = Rules(window=options.get("window", 5)), padded(options.get("dim", DIM))
        wanted.append((rules, stride, Tiles.fitting(rules, stride)))
    wanted.append((Rules(window=10, negatives=10), DIM, Tiles.fitting(Rules(window=10, negatives=10), DIM)))
    wanted += [(rules, padded(dim), tiles) for rules, dim, tiles in wide_shapes().values()]
    cbow = Rules("cbow", exact=False)
    wanted.append((cbow, DIM, Tiles.fitting(cbow, DIM)))

    def one(rules: Any, stride: int, tiles: Any) -> None:
        inputs, outputs = torch.zeros(64, stride, device=card), torch.zeros(64, stride, device=card)
        keep, alias = (torch.zeros(size, dtype=torch.int32, device=card) for size in ((64,), (64, 2)))
        windows = Windows(rules, inputs, outputs, keep, alias, tiles)
        empty = (torch.zeros(0, dtype=kind, device=card) for kind in (torch.int32, torch.int64))
        windows.train(windows.prepare(*empty, 0, 0, 0, 0), 0.0, 0.0, 1)

    ring = np.arange(8)
    links = Links(2 * np.arange(9), np.sort(np.stack([(ring + 1) % 8, (ring - 1) % 8], 1)).ravel().astype(np.int32),
                  None, False)  # fmt: skip

    def walk(bias: float) -> None:
        few = np.zeros(1, np.int32)
        CudaWalks(links, card).walk(few, few, walk_length=4, p=bias, q=bias, seed=1)

    began = time.perf_counter()
    one(*wanted[0])
    with ThreadPoolExecutor(12) as pool:
        walks = [pool.submit(walk, bias) for bias in (0.25, 1.0)]
        for done in walks + [pool.submit(one, *shape) for shape in wanted[1:]]:
            if error := done.exception():
                print("compiling:", repr(error)[:300], flush=True)
    print(json.dumps({"compiling": round(time.perf_counter() - began, 1)}), flush=True)


def measure_check(bench: Bench) -> None:
    """Check that the GPU equals the CPU: one program against one thread, and walk by walk."""
    import torch

    from firth.kernels import predict as kernel
    from firth.kernels.walks import Links, NativeWalks
    from firth.nets.walks_cuda import CudaWalks
    from firth.training.gpu_tables import GPUTables, device
    from firth.words.window_training import random_table

    rng = np.random.default_rng(0)
    words, size = 3000, CHECKED
    counts = np.sort(rng.zipf(1.3, words).clip(1, 5000))[::-1].astype(np.int64)
    ids = rng.choice(words, size, p=counts / counts.sum()).astype(np.int32)
    for architecture in ("skipgram", "cbow"):
        inputs, outputs = random_table(words, DIM, 1), kernel.new_table(words, DIM)
        inputs *= 20
        outputs[:] = rng.normal(0, 0.1, outputs.shape)
        task = kernel.Task(
            ids=ids, starts=np.array([0, 100, 100, size // 3, size]), inputs=inputs, outputs=outputs,
            keep=kernel.keep_thresholds(counts, 1e-2), noise=kernel.alias_table(counts**0.75),
            paths=kernel.no_paths(), architecture=architecture, exact=False,
        )  # fmt: skip
        card, before = GPUTables(task, size, counts, counts**0.75, 0.01), task.inputs.copy()
        card.programs = 1
        there = (torch.tensor(part, device=card.device) for part in (task.ids, task.starts))
        outcome = card.train(*there, 0, 0, size, 7, (0.01, 0.01))
        wanted = kernel.native_trainer(task).racing(0, size, 7, 0.01, 0.01, 1)
        error = np.linalg.norm(card.windows.inputs.cpu().numpy() - task.inputs) / np.linalg.norm(task.inputs - before)
        bench.keep("check", architecture, pairs=[outcome.pairs, wanted[1]], loss=[outcome.loss, wanted[0]],
                   relative_error=float(error))  # fmt: skip
    graph = firth.Graph([(f"{a}", f"{b}") for a, b in rng.integers(0, size // 10, (size, 2)) if a < b])
    links = Links(graph.starts, graph.neighbors, graph.weights, graph.directed)
    first, number = np.arange(len(graph), dtype=np.int32), np.zeros(len(graph), np.int32)
    for p, q in ((1.0, 1.0), (0.25, 4.0)):
        nodes, _ = CudaWalks(links, device()).walk(first, number, walk_length=80, p=p, q=q, seed=3)
        same = nodes.cpu().numpy() == NativeWalks(links).walk(first, number, walk_length=80, p=p, q=q, seed=3).ids
        bench.keep("check", f"walks, p = {p:g}, q = {q:g}", same=float(same.mean()))


def measure_tiles(bench: Bench) -> None:
    for name, (_, _, tiles) in shapes().items():
        for programs in (1024, 2048):
            if bench.late():
                return
            _, metrics = trained(bench.tokens, method(epochs=2), tiles, programs)
            bench.keep("tiles", f"{name}, {programs} programs", **selected_metrics(metrics))


def best_tiles(bench: Bench) -> tuple[str, Any, int]:
    """Return the fastest tiles."""
    rows = [row for row in bench.results.get("tiles", {}).items() if row[0].rpartition(", ")[0] in shapes()]
    if not rows:
        return "", None, 0
    name, row = max(rows, key=lambda outcome: outcome[1]["kernel_words_per_second"])
    return name, shapes()[name.rpartition(", ")[0]][2], row["programs"]


def measure_skipgram(bench: Bench) -> None:
    name, tiles, programs = best_tiles(bench)
    for seed in range(1, SEEDS + 1):
        if bench.late():
            return
        fitted(bench, f"Firth, GPU, seed {seed}", "skipgram", method(), device="cuda", seed=seed)
        if tiles is not None:
            training, metrics = trained(bench.tokens, method(), tiles, programs, seed)
            vectors = firth.Vectors(bench.tokens.vocabulary.tokens, training.inputs[:, :DIM])
            bench.keep("skipgram", f"GPU: {name}, seed {seed}", **selected_metrics(metrics), **bench.judge(vectors))


def measure_cpu(bench: Bench) -> None:
    for seed in range(1, SEEDS + 1):
        if not bench.late():
            fitted(bench, f"Firth, CPU, seed {seed}", "skipgram", method(), device="cpu", seed=seed)


WHOLE = """
import sys, firth
method = firth.SkipGram(dim=int(sys.argv[3]), tokenizer="whitespace")
model = method.fit(firth.Corpus(sys.argv[1]), firth.Run(device=sys.argv[2]))
"""


def measure_whole(bench: Bench) -> None:
    """Time a new process from start to vectors: without any cache, then with compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        for name, device, caches in (
            ("GPU, nothing compiled", "cuda", "first"), ("GPU", "cuda", "second"), ("CPU", "cpu", "third"),
        ):  # fmt: skip
            if bench.late():
                return
            texts = {"XDG_CACHE_HOME": f"{folder}/{caches}", "TRITON_CACHE_DIR": f"{folder}/triton"}
            began = time.perf_counter()
            command = [sys.executable, "-c", WHOLE, str(bench.text), device, str(DIM)]
            subprocess.run(command, env={**os.environ, **texts}, check=True, timeout=60)
            bench.keep("whole", name, total_seconds=time.perf_counter() - began)


def measure_cbow(bench: Bench) -> None:
    for seed in range(1, SEEDS + 1):
        for device in ("cuda", "cpu"):
            if bench.late():
                return
            name = f"Firth, {'GPU' if device == 'cuda' else 'CPU'}, seed {seed}"
            selected_method = firth.CBOW(dim=DIM, tokenizer="whitespace")
            fitted(bench, name, "cbow", selected_method, device=device, seed=seed)


def measure_programs(bench: Bench) -> None:
    """Measure quality by number of programs; the last is one per window."""
    _, tiles, _ = best_tiles(bench)
    for programs in (1024, 16_384, 256, 131_072, 4096, len(bench.tokens.ids), 64):
        if bench.late():
            return
        training, metrics = trained(bench.tokens, method(), tiles, programs)
        vectors = firth.Vectors(bench.tokens.vocabulary.tokens, training.inputs[:, :DIM])
        bench.keep("programs", str(programs), **selected_metrics(metrics), **bench.judge(vectors))


def measure_dims(bench: Bench) -> None:
    for name, options in sizes().items():
        if bench.late():
            return
        _, metrics = trained(bench.tokens, method(epochs=2, **options))
        bench.keep("dims", name, **selected_metrics(metrics), **options)
    for name, (_, dim, tiles) in wide_shapes().items():
        if not bench.late():
            _, metrics = trained(bench.tokens, method(epochs=2, dim=dim), tiles)
            bench.keep("tiles", name, **selected_metrics(metrics))


def measure_graphs(bench: Bench) -> None:
    """Node2Vec on BlogCatalog from a list of edges to vectors; the first walk compiles."""
    edges = edge_list(bench.data, "blogcatalog", bench.work)
    labels = evaluate.read_labels(bench.data / "graphs" / "blogcatalog" / "bc_labels.txt")
    for bias in (1.0, 0.25):
        for name, device, seed in (
            ("first", "cuda", 1), ("GPU", "cuda", 1), ("CPU", "cpu", 1), ("GPU", "cuda", 2), ("CPU", "cpu", 2),
        ):  # fmt: skip
            if bench.late():
                return
            began = time.perf_counter()
            selected_method = firth.Node2Vec(**SETTINGS, p=bias, q=bias)
            model = selected_method.fit(firth.Graph(edges), firth.Run(seed=seed, device=device))
            total = time.perf_counter() - began
            metrics = {"total_seconds": total, **selected_metrics(model.training)}
            if name != "first":
                outcome = evaluate.node_classification(model.vectors, labels, splits=SPLITS)
                metrics |= {"macro": outcome.macro_f1, "micro": outcome.micro_f1}
                metrics["judging_seconds"] = time.perf_counter() - began - total
            bench.keep("graphs", f"p = q = {bias:g}, {name}, seed {seed}", **metrics)


def measure_torch(bench: Bench) -> None:
    for seed in range(1, SEEDS + 1):
        if not bench.late():
            plain_torch(bench, seed)


def plain_torch(bench: Bench, seed: int) -> None:
    """Train with plain torch: gather, bmm, index_add over batches of the same windows and negative samples."""
    import torch

    from firth.kernels.hashing import GOLDEN, MASK, mix
    from firth.words.window_training_gpu import CudaTraining

    epochs, batch = 5, 256  # with 1,024 windows at once from the same old rows, two of three seeds diverged
    training = CudaTraining(method(epochs=epochs), bench.tokens, firth.Run(device="cuda", seed=seed))
    windows = training.gpu_tables.windows
    card = windows.inputs.device
    raw, starts = (torch.tensor(np.array(part), device=card) for part in (bench.tokens.ids, bench.tokens.starts))
    offsets = torch.tensor([*range(-5, 0), *range(1, 6)], device=card)
    signs = torch.tensor([1.0] + [-1.0] * 5, device=card)
    spent = 0.0
    for epoch in range(epochs):
        prepared = windows.prepare(raw, starts, 0, 0, len(raw), mix((seed * GOLDEN + epoch + 1) & MASK))
        float(windows.inputs[0, 0])  # waits for the GPU
        began = time.perf_counter()
        for begin in range(0, len(prepared.ids), batch):
            positions = torch.arange(begin, min(begin + batch, len(prepared.ids)), device=card)
            span = prepared.spans[positions, None]
            near = (offsets >= -(span & 0xFFFF)) & (offsets <= span >> 16)
            contexts = prepared.ids[(positions[:, None] + offsets).clamp(0, len(prepared.ids) - 1)].long()
            targets = prepared.targets[positions].long()
            both = near[:, :, None] & (targets >= 0)[:, None, :]
            targets = targets.clamp(min=0)
            x, y = windows.inputs[contexts], windows.outputs[targets]
            rate = 0.025 * (1 - (epoch + begin / len(prepared.ids)) / epochs)
            steps = rate * both * signs * torch.sigmoid(-signs * torch.bmm(x, y.transpose(1, 2)))
            windows.inputs.index_add_(0, contexts.flatten(), torch.bmm(steps, y).flatten(0, 1))
            windows.outputs.index_add_(0, targets.flatten(), torch.bmm(steps.transpose(1, 2), x).flatten(0, 1))
        float(windows.inputs[0, 0])  # waits for the GPU
        spent += time.perf_counter() - began
    vectors = firth.Vectors(bench.tokens.vocabulary.tokens, windows.inputs[:, :DIM].cpu().numpy())
    speed = epochs * bench.tokens.raw_tokens / spent
    bench.keep("skipgram", f"torch, GPU, seed {seed}", kernel_words_per_second=speed, kernel_seconds=spent,
               **bench.judge(vectors))  # fmt: skip


def measure_gensim(bench: Bench) -> None:
    from benchmarks.peers import train as train_peer

    for seed in range(1, SEEDS + 1):
        if bench.late():
            return
        output = bench.work / f"gensim-gpu-{seed}"
        began = time.perf_counter()
        peer_result = train_peer(
            "gensim", corpus=bench.text, seed=seed, threads=2, output=str(output), method="skipgram", dim=DIM
        )
        total = time.perf_counter() - began
        keys = Path(f"{output}.keys.txt").read_text(encoding="utf-8").split("\n")[:-1]
        vectors = firth.Vectors(keys, np.load(f"{output}.npy"))
        bench.keep("skipgram", f"gensim, CPU, seed {seed}", total_seconds=total,
                   **selected_metrics(peer_result), **bench.judge(vectors),
                   device=machine())  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--parts", default=",".join(part for part in PARTS if part != "gensim"))
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--work", type=Path, default=HERE / "work")
    parser.add_argument("--words", type=int, default=0, help="only so many words of the text; 0 = all")
    parser.add_argument("--page", action="store_true", help="only write the page from stored results")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(given)
    if given.page:
        write_page(bench.results)
        return
    parts = given.parts.split(",")
    with ThreadPoolExecutor(1) as aside:
        bench.unpacking = aside.submit(bench.unpack)
        if not set(parts) <= set(ANYWHERE):
            bench.results |= {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
            import torch

            if torch.cuda.is_available():
                compile_all()
        for part in parts:
            try:
                globals()[f"measure_{part}"](bench)
            except Exception:  # the other parts continue
                traceback.print_exc()
            print(json.dumps({"part": part, "left": round(bench.deadline - time.perf_counter(), 1)}), flush=True)


if __name__ == "__main__":
    main()
