"""A transformer as a table of tokens: each token through the teacher, fewer dimensions, weights by frequency (Tulkens &
van Dongen 2024, Model2Vec), fitted to the teacher's vectors of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.method import Method
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import torch_module
from firth.transformers.static_model import StaticModel


@dataclass(frozen=True, kw_only=True)
class Distil(Method):
    """A text is the mean of its tokens' rows; a row is what the teacher says of the token alone, or what brings the
    means of texts nearest to the teacher's vectors of them."""

    summary: ClassVar[str] = "a BERT as a table of tokens: texts hundreds of times faster, on a CPU, nearly as good"
    model: ClassVar[type[Model]] = StaticModel
    needs_start: ClassVar[bool] = True

    dim: int = option(256, "length of the vectors; at most the teacher's; 0 = the teacher's", low=0, high=65536)
    smoothing: float = option(
        1e-4, "a token of share p in text weighs a / (a + p); this is a; 0 = all weigh the same", low=0, high=1
    )
    words: int = option(0, "most frequent words of the text that get a row beside the teacher's tokens", low=0)
    texts: int = option(
        100_000, "sentences of the text, drawn, whose vectors by the teacher the rows are fitted to; 0 = none", low=0
    )
    pull: float = option(
        5.0, "how strongly a row is held where the token alone puts it, in texts that it stands in", low=1e-6
    )
    precision: str = option(
        "int8",
        "of the teacher's numbers when it reads sentences on a CPU: bytes are 3 times as fast (a GPU takes bf16)",
        choices=("int8", "float32"),
    )
    normalize: bool = option(True, "vectors of texts have length 1")

    def check_run(self, run: Run) -> None:
        if run.device == "cuda":
            torch_module("training.device").device_of(run)

    def fit(self, data: Any = None, run: Run = Run(), start: Model | None = None) -> StaticModel:
        """The student of `start`. `data` is a corpus (or paths, texts), or None: then from the tokens alone."""
        return torch_module("transformers.distillation").learn(self, data, run, start)  # type: ignore[no-any-return]
