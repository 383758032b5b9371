"""Counting of word pairs, shared by the methods that train on co-occurrence counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from firth.core.errors import FirthError
from firth.core.options import option
from firth.core.run import Run
from firth.data.cooccurrence import Cooccurrence
from firth.data.phrases import Phrase
from firth.data.tokenizer import Splitting
from firth.data.vocabulary import Vocabulary
from firth.kernels import cooccur as kernel
from firth.words.word_model import ONE_SENSE, UNSEEN_WORDS, WORD_ORDER, TextModel, WordOptions, no_pairs_error

AnyPairOptions = TypeVar("AnyPairOptions", bound="PairOptions")


class CountedPairs(NamedTuple):
    """Counted pairs, and metadata of their corpus."""

    pairs: Cooccurrence
    phrases: list[list[Phrase]]
    metrics: dict[str, Any]
    splitting: Splitting | None = None  # of the corpus; None if unknown


@dataclass(frozen=True, kw_only=True)
class PairOptions(WordOptions):
    """Options for counting word pairs."""

    limits: ClassVar[tuple[str, ...]] = (
        ONE_SENSE,
        UNSEEN_WORDS,
        WORD_ORDER,
    )
    window: int = option(5, "context words on each side", low=1, high=kernel.MAX_WINDOW)
    side: str = option("both", "side of the word on which contexts are counted", choices=kernel.SIDES)
    weighting: str | None = option(
        "flat", "weight of a context word at distance d: 1, 1/d or (window-d+1)/window", choices=kernel.WEIGHTINGS
    )
    subsample: float = option(0.0, "frequency above which words are subsampled; 0 = off", low=0, high=1)

    def sized(self: AnyPairOptions, vocabulary: Vocabulary) -> AnyPairOptions:
        """Return this method with its unset options chosen by corpus size."""
        return self.resolved(min_count=max(1, vocabulary.min_count))

    def count(
        self: AnyPairOptions, data: Any, run: Run, start: TextModel | None = None
    ) -> tuple[AnyPairOptions, CountedPairs]:
        """Count the pairs of a corpus (or Tokens, paths, texts); a Cooccurrence is used as it is.

        Return this method with all options set, and the pairs.
        """
        if isinstance(data, Cooccurrence):
            if start is not None:
                raise FirthError(
                    "unsupported_start",
                    "{method} cannot continue from a model with a Cooccurrence. Pass the corpus instead.",
                    method=type(self).__name__,
                )
            pairs, phrases, splitting = data, [], None
            method = self.sized(data.vocabulary)
            metrics = {"vocabulary": len(data.vocabulary), "data": data.fingerprint}
        else:
            tokens = self.read(data, run, start)
            method = self.sized(tokens.vocabulary)
            pairs = Cooccurrence.count(
                tokens,
                window=method.window,
                side=method.side,
                weighting=method.weighting or "flat",
                subsample=method.subsample,
                run=run,
            )
            phrases, splitting = [list(phrase_pass) for phrase_pass in tokens.phrases], tokens.splitting
            metrics = {
                "tokens": tokens.raw_tokens,
                "vocabulary": len(tokens.vocabulary),
                "documents": len(tokens),
                "data": tokens.fingerprint,
            }
        if not len(pairs):
            raise no_pairs_error(self, pairs.vocabulary)
        metrics |= {"pairs": len(pairs), "seed": run.seed}
        return method, CountedPairs(pairs, phrases, metrics, splitting)
