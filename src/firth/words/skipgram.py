"""Skip-gram: each word predicts the words around it (Mikolov et al. 2013a; with noise words 2013b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.options import option
from firth.words.window_training import Group, PredictingMethod


@dataclass(frozen=True, kw_only=True)
class SkipGram(PredictingMethod):
    """Maximises Σ log p(context | centre) over the windows of a text."""

    summary: ClassVar[str] = "word vectors: each word predicts its neighbours; best for rare words and meaning"
    architecture: ClassVar[str] = "skipgram"
    gpu: ClassVar[bool] = True
    group: ClassVar[Group] = Group(4, drawn=1.2, counted=2.0)

    share_negatives: bool = option(
        True, "one draw of noise words for a whole window; off: fresh ones for each pair, as word2vec does, 3× slower"
    )

    def kernel_settings(self) -> dict[str, Any]:
        return {"shared": self.share_negatives}
