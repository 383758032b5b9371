"""Extractive question answering by fine-tuning (Devlin et al. 2019, sections 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.questions import Questions
from firth.finetuning.finetuning_options import INHERITED, TuningOptions
from firth.training.network_options import networks

if TYPE_CHECKING:
    from firth.finetuning.question_answering import SpanModel


@dataclass(frozen=True, kw_only=True)
class QuestionAnswerer(TuningOptions):
    """Fine-tunes a BERT that marks the answer to a question in a passage.

    Maximizes Σ log softmax(S · T) of the first tokens and log softmax(E · T) of the last tokens of the correct answers,
    where T are the BERT's vectors of the passage's tokens.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "An answer is a span of the given passage, whether or not the passage is right.",
    )
    summary: ClassVar[str] = "answers to questions as spans of a passage, by fine-tuning a BERT"
    data = Questions

    batch_size: int = option(32, "windows of passages per step", low=1, high=65536)
    max_length: int | None = option(
        None, "most tokens of question and window together; none = 384, or the base's positions if fewer", low=1
    )
    overlap: int = option(128, "tokens that consecutive windows of a long passage share", low=0)
    question_length: int = option(64, "most tokens of a question; longer ones are cut, with a note", low=1)
    answer_length: int = option(30, "most tokens of an answer", low=1, high=10_000)
    unanswerable: bool = option(False, "also learn that some passages have no answer")
    margin: float = option(0.0, "how far an answer's score must exceed that of no answer (unanswerable)")

    @classmethod
    def model_class(cls) -> type[SpanModel]:
        with networks():
            from firth.finetuning.question_answering import SpanModel
        return SpanModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> SpanModel:
        """Train on `Questions` (or data they can be built from), starting from the weights of `start`."""
        with networks():
            from firth.finetuning.question_answering import train_question_answerer
        return train_question_answerer(self, data, run, start)
