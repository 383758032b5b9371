"""CBOW: the words around predict the word in the middle (Mikolov et al. 2013a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.options import option
from firth.words.window_training import Group, PredictingMethod


@dataclass(frozen=True, kw_only=True)
class CBOW(PredictingMethod):
    """Maximises Σ log p(centre | contexts), the contexts taken together as one mean or sum."""

    summary: ClassVar[str] = "word vectors: the neighbours together predict the word; quick, best for frequent words"
    architecture: ClassVar[str] = "cbow"
    gpu: ClassVar[bool] = True
    group: ClassVar[Group] = Group(4, drawn=1.6)

    learning_rate: float = option(0.06, "at the start; it falls to nothing linearly", low=1e-9, high=100)
    combine: str = option("mean", "how the contexts become one vector", choices=("mean", "sum"))

    exact_gradient: bool = option(
        False,
        "with mean, each context gets its share of the gradient (learning_rate=0.15 then); off: all of it, as in "
        "word2vec: better analogies, somewhat worse similarities",
    )

    def kernel_settings(self) -> dict[str, Any]:
        return {"mean": self.combine == "mean", "exact": self.exact_gradient}
