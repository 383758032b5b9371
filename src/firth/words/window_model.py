"""Words whose vectors were learned by predicting neighbours, and which go on predicting: what may stand in a blank."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, top_rows
from firth.kernels import predict as kernel
from firth.words.word_model import WordModel

MASK = "[MASK]"


class Word2VecModel(WordModel):
    """What SkipGram and CBOW learn."""

    method: Any

    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """For each [MASK] of a text, the k most probable words, by the known words within the window around it.

        `other` is a text of its own: no window reaches from one into the other.
        """
        if type(k) is not int or k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got!r}.", option="k", got=k)
        masks = [mask for each in (text, other) if each is not None for mask in self._contexts(each)]
        if not masks:
            raise FirthError(
                "missing_mask",
                "There is no {blank} in {text!r:.80}: put it where a word is to be found.",
                blank=MASK,
                text=text,
            )
        return [self._best(contexts, k) for contexts in masks]

    def log_probabilities(self, contexts: list[int]) -> NDArray[np.float64]:
        """log p of every word to stand among the words `contexts`, rows of `vectors`.

        CBOW's mean or sum is one prediction. Skip-gram makes one for each neighbour; the answer is their geometric
        mean, scaled to sum to 1, and with one neighbour p(word | neighbour) itself.
        """
        rows = self.vectors.matrix[contexts]
        if self.method.architecture == "cbow":
            rows = (rows.mean if self.method.combine == "mean" else rows.sum)(axis=0, keepdims=True)
        predictions = [
            self._hierarchical_log_probabilities(row)
            if self.method.loss == "hierarchical"
            else self._softmax_log_probabilities(row)
            for row in rows
        ]
        return log_softmax(np.mean(predictions, axis=0))

    def _softmax_log_probabilities(self, row: Matrix) -> NDArray[np.float64]:
        scores = np.asarray(self.outputs @ row, dtype=np.float64)
        return log_softmax(scores + self._prior)

    @cached_property
    def _prior(self) -> NDArray[np.float64]:
        """Trained against noise, a score is log p(word | neighbour) less the logarithm of how often the word is noise
        (Levy & Goldberg 2014): that has to be put back. The exact softmax has nothing taken off."""
        if self.method.loss == "softmax":
            return np.zeros(len(self.vectors))
        with np.errstate(divide="ignore"):  # a word that is never drawn is never predicted
            return np.log(kernel.noise_weights(self.vocabulary.counts, self.method.negative_exponent))

    def _hierarchical_log_probabilities(self, row: Matrix) -> NDArray[np.float64]:
        """Σ log σ(±x·y) over the nodes on the way to each word."""
        paths = self._paths
        scores = np.asarray(self.outputs @ row, dtype=np.float64)[paths.nodes]
        steps = -np.logaddexp(0, np.where(paths.turns, scores, -scores))
        return np.add.reduceat(steps, paths.starts[:-1])

    @cached_property
    def _paths(self) -> kernel.Paths:
        return kernel.huffman_paths(self.vocabulary.counts)

    def _contexts(self, text: str) -> list[list[int]]:
        """The known words around each blank. As in training, words that are not known don't count as neighbours."""
        parts = [[self.vocabulary.id(word) for word in self.tokenize(part)] for part in text.split(MASK)]
        part_ids = [[id for id in part if id is not None] for part in parts]
        window, contexts = self.method.window, []
        for mask in range(1, len(part_ids)):
            before = [id for part in part_ids[:mask] for id in part][-window:]
            after = [id for part in part_ids[mask:] for id in part][:window]
            if not before and not after:
                raise FirthError(
                    "empty_data",
                    "Around a {blank} of {text!r:.80} stands no word that this model knows.",
                    blank=MASK,
                    text=text,
                )
            contexts.append(before + after)
        return contexts

    def _best(self, contexts: list[int], k: int) -> list[tuple[str, float]]:
        probabilities = np.exp(self.log_probabilities(contexts))
        best = top_rows(probabilities.astype(np.float32), k)
        return [(self.vectors.keys[row], float(probabilities[row])) for row in best]


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of numbers that sum to 1."""
    maximum = scores.max()
    return np.asarray(scores - maximum - np.log(np.exp(scores - maximum).sum()))
