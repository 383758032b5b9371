"""Small networks with heads, fine-tuned by Firth, and their logits in Firth and in transformers."""

from __future__ import annotations

from typing import Any

import tiny
import torch

import firth
from firth.core.report import Silence
from firth.data.world import World
from firth.finetuning.finetuning_loop import encode_texts, predict_batches
from firth.transformers.families.family import SEQUENCE, TOKEN

TEXTS = tiny.texts()[:9]
PAIRS = [(first, second) for first, second in zip(TEXTS, reversed(TEXTS), strict=True)]


def theirs(net: Any, tokenizer: Any, inputs: list[Any]) -> list[torch.Tensor]:
    """Logits of transformers, for each text or pair."""
    outputs = []
    for text in inputs:
        read = tokenizer(*([text] if isinstance(text, str) else text), return_tensors="pt", return_token_type_ids=True)
        if not getattr(net.config, "type_vocab_size", 0) > 1:
            read.pop("token_type_ids", None)
        with torch.inference_mode():
            out = net(**read)
        outputs.append(torch.stack([out.start_logits, out.end_logits], -1) if hasattr(out, "start_logits") else out[0])
    return [each[0] for each in outputs]


def ours(model: Any, inputs: list[Any]) -> list[torch.Tensor]:
    """Logits of Firth, for each text or pair."""
    texts = encode_texts(model.tokenizer, inputs, 120, "refuse", Silence())
    results: dict[int, torch.Tensor] = {}
    for rows, logits, packed in predict_batches(model.net, texts, 4096):
        parts = logits.split(packed.starts.diff().tolist()) if model.net.pool == "each" else logits
        results |= dict(zip(rows, parts, strict=True))
    return [results[row] for row in range(len(inputs))]


def fine_tuned(kind: str, start: Any, **options: Any) -> Any:
    world, run = World(seed=5), firth.Run(seed=3)
    settings = {"epochs": 2, "learning_rate": 5e-3, "batch_size": 8, "dropout": 0.0, **options}
    if kind == SEQUENCE:
        labels = {each.text: each.label for each in world.sentiment(60)}
        data = [{"text": text, "label": label} for text, label in labels.items()]
        return firth.TextClassifier(**settings).fit(data, run, start)
    if kind == TOKEN:
        sentences = [
            (words, ["B-X" if len(word) > 5 else "O" for word in words])
            for words in (text.split() for text in world.sentences(60))
        ]
        return firth.TokenClassifier(**settings).fit(firth.TaggedSentences(sentences), run, start)
    questions = [each._asdict() for each in world.questions(60)]
    return firth.QuestionAnswerer(**settings, max_length=100).fit(questions, run, start)
