"""Skip-gram: predict the words around each word (Mikolov et al. 2013a; negative sampling: 2013b).

For a center word with input vector v and a context word with output vector u, negative sampling minimizes

    −log σ(v · u) − Σ log σ(−v · u_n)    over `negatives` sampled words n   (2013b, eq. 4)

by stochastic gradient descent on v, u and all u_n. `loss` selects hierarchical softmax or softmax instead.
`kernels.predict.Task(architecture="skipgram")` implements the update; `kernels/predict_twin.py` is its NumPy version.
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
class SkipGram(HoldingOut):
    """Maximize Σ log p(context | center) over the windows of a corpus."""

    summary: ClassVar[str] = "word vectors: each word predicts its context words; best for rare words and meaning"
    model: ClassVar[type[Word2VecModel]] = Word2VecModel
    architecture: ClassVar[str] = "skipgram"
    gpu: ClassVar[bool] = True
    group: ClassVar[Group] = Group(4, drawn=1.2, counted=2.0)

    share_negatives: bool = option(
        True,
        "share negative samples between all pairs of a window; off: draw new ones per pair, as word2vec, 7× slower",
    )

    def kernel_settings(self) -> dict[str, Any]:
        """Return the fields of `kernels.predict.Task` that are specific to skip-gram."""
        return {"shared": self.share_negatives}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Word2VecModel:
        """Train on a corpus (or Tokens, paths, texts).

        With `start`, training continues from that model: its words keep their vectors, new words are added.
        """
        return fit_word2vec(self, data, run, start)
