"""Answers to questions, as stretches of a passage, by fine-tuning (Devlin et al. 2019, 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.question_answering", "SpanModel")
@dataclass(frozen=True, kw_only=True)
class QuestionAnswerer(TuningOptions):
    """Maximises Σ log softmax(S · T) of the right answers' first tokens and log softmax(E · T) of their last ones, T
    being what a BERT makes of a passage's tokens."""

    summary: ClassVar[str] = "answers to questions, as stretches of a passage, by a BERT that learns on"
    kind: ClassVar[str] = "questions"

    batch_size: int = option(32, "windows of passages a step", low=1, high=65536)
    max_length: int = option(0, "most tokens of question and window together; 0 = 384, or the base's places", low=0)
    overlap: int = option(128, "tokens that a window of a long passage shares with the next", low=0)
    question_length: int = option(64, "most tokens of a question; longer ones are cut, which is said", low=1)
    answer_length: int = option(30, "most tokens of an answer", low=1, high=10_000)
    unanswerable: bool = option(False, "learn to say that a passage does not tell")
    margin: float = option(0.0, "by how much an answer's score must exceed that of none (unanswerable)")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from `Questions` (or what they can be made of), beginning with the weights of `start`."""
        return torch_module("finetuning.question_answering").learn(self, data, run, start)
