"""The model of SkipGram and CBOW: word vectors, and prediction of masked words from their context."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, top_rows
from firth.kernels import predict as kernel
from firth.words.word_model import WordModel

if TYPE_CHECKING:
    from firth.words.window_training import WindowMethod

MASK = "[MASK]"


class Word2VecModel(WordModel):
    """Word and context vectors trained by SkipGram or CBOW."""

    method: WindowMethod

    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """Return the k most probable words for each [MASK] of a text, given the known words in the window around it.

        `other` is a separate text: windows do not extend from one text into the other.
        """
        if type(k) is not int or k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got!r}.", option="k", got=k)
        contexts_of_masks = [
            contexts for part in (text, other) if part is not None for contexts in self._contexts(part)
        ]
        if not contexts_of_masks:
            raise FirthError(
                "missing_mask",
                "The text {text!r:.80} contains no {mask}. Put {mask} in place of the word to predict.",
                mask=MASK,
                text=text,
            )
        return [self._best(contexts, k) for contexts in contexts_of_masks]

    def log_probabilities(self, contexts: list[int]) -> NDArray[np.float64]:
        """Return log p(word | contexts) for every word; `contexts` are rows of `vectors`.

        CBOW predicts once, from the mean or sum of the contexts. Skip-gram predicts once per context word; the result
        is the normalized geometric mean of these distributions.
        """
        rows = self.vectors.matrix[contexts]
        if self.method.architecture == "cbow":
            rows = (rows.mean if self.method.kernel_settings()["mean"] else rows.sum)(axis=0, keepdims=True)
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
        """The log probability of each word as a negative sample, which is added to the scores.

        With negative sampling, a score converges to log p(word | context) − log p(word is sampled) up to a constant
        (Levy & Goldberg 2014). With softmax no correction is needed.
        """
        if self.method.loss == "softmax":
            return np.zeros(len(self.vectors))
        with np.errstate(divide="ignore"):  # a word that is never sampled is never predicted
            return np.log(kernel.noise_weights(self.vocabulary.counts, self.method.negative_exponent))

    def _hierarchical_log_probabilities(self, row: Matrix) -> NDArray[np.float64]:
        """Return Σ log σ(±x·y) over the nodes on the path to each word."""
        paths = self._paths
        scores = np.asarray(self.outputs @ row, dtype=np.float64)[paths.nodes]
        steps = -np.logaddexp(0, np.where(paths.turns, scores, -scores))
        return np.add.reduceat(steps, paths.starts[:-1])

    @cached_property
    def _paths(self) -> kernel.Paths:
        return kernel.huffman_paths(self.vocabulary.counts)

    def _contexts(self, text: str) -> list[list[int]]:
        """Return the ids of the known words around each mask. As in training, unknown words are skipped."""
        parts = [[self.vocabulary.id(word) for word in self.tokenize(part)] for part in text.split(MASK)]
        part_ids = [[id for id in part if id is not None] for part in parts]
        window, contexts = self.method.window, []
        for mask in range(1, len(part_ids)):
            before = [id for part in part_ids[:mask] for id in part][-window:]
            after = [id for part in part_ids[mask:] for id in part][:window]
            if not before and not after:
                raise FirthError(
                    "empty_data",
                    "No word of the vocabulary occurs within the window around a {mask} of {text!r:.80}.",
                    mask=MASK,
                    text=text,
                )
            contexts.append(before + after)
        return contexts

    def _best(self, contexts: list[int], k: int) -> list[tuple[str, float]]:
        probabilities = np.exp(self.log_probabilities(contexts))
        best = top_rows(probabilities.astype(np.float32), k)
        return [(self.vectors.keys[row], float(probabilities[row])) for row in best]


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores − log Σ exp(scores)."""
    maximum = scores.max()
    return np.asarray(scores - maximum - np.log(np.exp(scores - maximum).sum()))
