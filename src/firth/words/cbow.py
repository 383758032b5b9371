"""CBOW: predict the center word from the words around it (Mikolov et al. 2013a; negative sampling: 2013b).

With h the mean (or sum) of the input vectors of the context words and u the output vector of the center word, negative
sampling minimizes

    −log σ(h · u) − Σ log σ(−h · u_n)    over `negatives` sampled words n

by stochastic gradient descent. `loss` selects hierarchical softmax or softmax instead.
`kernels.predict.Task(architecture="cbow")` implements the update; `kernels/predict_twin.py` is its NumPy version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.words.window_model import Word2VecModel
from firth.words.window_training import Group, HoldingOut, fit_word2vec


@dataclass(frozen=True, kw_only=True)
class CBOW(HoldingOut):
    """Maximize Σ log p(center | contexts), where the context vectors are averaged or summed."""

    summary: ClassVar[str] = "word vectors: the context words together predict the word; fast, best for frequent words"
    model: ClassVar[type[Word2VecModel]] = Word2VecModel
    architecture: ClassVar[str] = "cbow"
    gpu: ClassVar[bool] = True
    group: ClassVar[Group] = Group(4, drawn=1.6)

    learning_rate: float = option(0.06, "initial learning rate, decayed linearly to 0", low=1e-9, high=100)
    combine: str = option("mean", "how context vectors are combined", choices=("mean", "sum"))
    exact_gradient: bool = option(
        False,
        "with combine=mean, divide the gradient by the number of contexts (then use learning_rate=0.15); off: each "
        "context gets the full gradient, as in word2vec: better analogies, slightly worse similarities",
    )

    def kernel_settings(self) -> dict[str, Any]:
        """Return the fields of `kernels.predict.Task` that are specific to CBOW."""
        return {"mean": self.combine == "mean", "exact": self.exact_gradient}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Word2VecModel:
        """Train on a corpus (or Tokens, paths, texts).

        With `start`, training continues from that model: its words keep their vectors, new words are added.
        """
        return fit_word2vec(self, data, run, start)
