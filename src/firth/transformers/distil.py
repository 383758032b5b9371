"""Distillation of a Transformer into static token vectors (Tulkens & van Dongen 2024, Model2Vec), fitted to the
teacher's text vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.method import Method
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.training.network_options import networks
from firth.transformers.static_model import StaticModel


@dataclass(frozen=True, kw_only=True)
class Distil(Method):
    """Distil a BERT into a table of token vectors, whose mean is the vector of a text.

    A row is the teacher's vector of the token alone. With a corpus, rows are fitted so that the means approach the
    teacher's text vectors.
    """

    limits: ClassVar[tuple[str, ...]] = (
        "The vector of a text is the mean of its token vectors, so word order and negation are nearly lost.",
        "A token has one vector in all contexts.",
        "Languages and biases are those of the teacher.",
    )
    summary: ClassVar[str] = (
        "a BERT as a static token table: text vectors hundreds of times faster on a CPU, nearly as good"
    )
    model: ClassVar[type[StaticModel]] = StaticModel
    data = Corpus
    needs_start: ClassVar[bool] = True
    needs_data: ClassVar[bool] = False

    dim: int = option(256, "vector dimension, at most the teacher's; 0 = the teacher's", low=0, high=65536)
    smoothing: float = option(
        1e-4,
        "a in the token weight a / (a + p), where p is the token's share of the text; 0 = equal weights",
        low=0,
        high=1,
    )
    words: int = option(
        0, "number of frequent words of the text that get a row in addition to the teacher's tokens", low=0
    )
    texts: int = option(
        100_000, "number of sampled sentences whose teacher vectors the rows are fitted to; 0 = none", low=0
    )
    pull: float = option(
        5.0,
        "ridge penalty that pulls a row to the vector of the token alone, in units of texts that contain it",
        low=1e-6,
    )
    precision: str = option(
        "int8",
        "of the teacher on a CPU; int8 is 3 times as fast (a GPU uses bf16)",
        choices=("int8", "float32"),
    )
    normalize: bool = option(True, "scale text vectors to length 1")

    def check_run(self, run: Run) -> None:
        """Raise no_gpu if the run asks for a GPU that is not available."""
        if run.device == "cuda":
            with networks():
                from firth.training.device import device_of
            device_of(run)

    def fit(self, data: Any = None, run: Run = Run(), start: Model | None = None) -> StaticModel:
        """Distil the teacher `start`. `data` is a corpus, paths or texts; None uses the teacher's tokens only."""
        with networks():
            from firth.transformers.distillation import distil_teacher
        return distil_teacher(self, data, run, start)
