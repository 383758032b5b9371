"""What methods that learn from pairs of words have in common: how pairs are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from firth.core.errors import FirthError
from firth.core.options import option
from firth.core.run import Run
from firth.data.cooccur import Cooccurrence
from firth.data.phrases import Phrase
from firth.data.tokenizer import Splitting
from firth.data.vocabulary import Vocabulary
from firth.kernels import cooccur as kernel
from firth.words.word_model import TextModel, WordOptions, no_neighbours

Paired = TypeVar("Paired", bound="PairOptions")


class Counted(NamedTuple):
    """Pairs of words, with what is known of the text they come from, and the method with no option left out."""

    method: Any
    pairs: Cooccurrence
    phrases: list[list[Phrase]]
    figures: dict[str, Any]
    splitting: Splitting | None = None  # of the text; None where that is not known


@dataclass(frozen=True, kw_only=True)
class PairOptions(WordOptions):
    """Which pairs of a text count, and how much."""

    window: int = option(5, "words each side", low=1, high=kernel.MAX_WINDOW)
    side: str = option("both", "where a word's contexts stand", choices=kernel.SIDES)
    weighting: str | None = option(
        "flat", "a neighbour at distance d counts 1, 1/d or (window-d+1)/window", choices=kernel.WEIGHTINGS
    )
    subsample: float = option(0.0, "frequent words are thinned out above this share of the text", low=0, high=1)

    def sized(self: Paired, vocabulary: Vocabulary) -> Paired:
        """This method with the options that were left out chosen by the size of the text."""
        return self.resolved(min_count=max(1, vocabulary.min_count))

    def count(self, data: Any, run: Run, start: TextModel | None = None) -> Counted:
        """The pairs of a corpus (or Tokens, paths, texts), or `data` itself where it is counted already."""
        if isinstance(data, Cooccurrence):
            if start is not None:
                raise FirthError(
                    "unsupported_start",
                    "Pairs counted already can't be joined with an earlier model's words; give the text.",
                )
            pairs, phrases, splitting = data, [], None
            method = self.sized(data.vocabulary)
            figures = {"vocabulary": len(data.vocabulary), "data": data.fingerprint}
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
            phrases, splitting = [list(found) for found in tokens.phrases], tokens.splitting
            figures = {
                "tokens": tokens.raw_tokens,
                "vocabulary": len(tokens.vocabulary),
                "documents": len(tokens),
                "data": tokens.fingerprint,
            }
        if not len(pairs):
            raise no_neighbours(self, pairs.vocabulary)
        return Counted(method, pairs, phrases, figures | {"pairs": len(pairs), "seed": run.seed}, splitting)
