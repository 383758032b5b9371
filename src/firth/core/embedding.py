"""`EmbedsTexts`: one text, a list of texts or a stream of them as vectors, in batches."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data
from firth.core.errors import FirthError
from firth.core.keywords import unknown_keyword
from firth.core.model import Model
from firth.core.report import Report, Silence, default_report
from firth.core.vectors import Matrix, Vectors, unit_rows

Text = str | Sequence[str]  # a text, or the list of its tokens
Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
OWN_PARAMETERS = ("inputs", "normalize", "report")


class EmbeddedTexts(NamedTuple):
    """Text vectors, one row per text, and the numbers of known and unknown words or tokens per text."""

    matrix: Matrix
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class EmbedsTexts(Model):
    """A model that embeds texts: `embed` for users, `embed_with_counts` as its families implement it."""

    #: Whether a text may be given as the list of its tokens.
    accepts_token_lists: ClassVar[bool] = False
    #: Texts that are embedded together; more is not faster, and progress is reported after each batch.
    batch_texts: ClassVar[int] = 65_536

    @overload
    def embed(
        self, inputs: str, *, normalize: bool = False, report: Report | None = None, **settings: Any
    ) -> Vector: ...

    @overload
    def embed(
        self, inputs: Iterable[Text], *, normalize: bool = False, report: Report | None = None, **settings: Any
    ) -> Matrix: ...

    def embed(
        self, inputs: Iterable[Text], *, normalize: bool = False, report: Report | None = None, **settings: Any
    ) -> Matrix:
        """Return one float32 row per text; for one text (a str), its vector.

        `inputs` is a text, a list, a `Corpus` or an iterator, which is read once, in batches. Models of words accept
        lists of tokens as texts. `normalize` scales the rows to length 1 (zero rows stay zero). Progress goes to
        `report`, by default to a bar on a terminal if there are several batches. Further settings are those of the
        model's `embed_with_counts`, such as `smoothing` of word vectors or `pooling` of a BERT.
        """
        self._check_settings(settings)
        texts = [inputs] if isinstance(inputs, str) else inputs
        batches = text_batches(texts, self.batch_texts, self.accepts_token_lists)
        total = len(texts) if isinstance(texts, Sized) else 0  # 0: unknown
        if report is None:
            report = Silence() if 0 < total <= self.batch_texts else default_report()
        report.begin("embedding", total, "texts")
        parts, done = list[Matrix](), 0
        try:
            for rows in self._embed_batches(batches, **settings):
                parts.append(rows)
                done += len(rows)
                report.step(done)
        finally:
            report.end()
        parts = parts or [self.embed_with_counts([], **settings).matrix]
        matrix = parts[0] if len(parts) == 1 else np.concatenate(parts)
        matrix = unit_rows(matrix) if normalize else matrix
        return matrix[0] if isinstance(inputs, str) else matrix

    @abstractmethod
    def embed_with_counts(self, texts: Any, *args: Any, **settings: Any) -> EmbeddedTexts:
        """Return the vectors of a list of texts, with the numbers of known and unknown words or tokens."""

    def embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[EmbeddedTexts]:
        """Apply `embed_with_counts` to a stream of lists of texts."""
        return (self.embed_with_counts(batch, *args, **settings) for batch in batches)

    def _embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[Matrix]:
        """What `embed` calls; models that report something at the end, or check the total, override it."""
        return (embedded.matrix for embedded in self.embed_batches(batches, *args, **settings))

    def role_settings(self, role: str) -> dict[str, Any]:
        """Return the settings of `embed` for texts in a role, query or document: a prompt, for models that have one."""
        return {}

    @property
    def embedding_settings(self) -> list[str]:
        """The further settings of `embed`: the parameters of `embed_with_counts`."""
        parameters = inspect.signature(self.embed_with_counts).parameters.values()
        return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][1:]  # without texts

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        known = (*OWN_PARAMETERS, *self.embedding_settings) if settings else ()
        for name in settings:
            if name not in known:
                raise unknown_keyword("embed", name, known)


def is_token_list(item: Any) -> bool:
    """Whether an item is a list, tuple or 1-D array of str."""
    is_sequence = isinstance(item, (list, tuple)) or (hasattr(item, "dtype") and getattr(item, "ndim", 0) == 1)
    return is_sequence and all(isinstance(token, str) for token in item)


def text_batches(inputs: Iterable[Any], size: int, lists: bool) -> Iterator[list[Text]]:
    """Yield lists of at most `size` checked texts; the documents of a `Corpus` give their texts."""
    is_corpus = hasattr(inputs, "walk")
    is_other_data = isinstance(inputs, Mapping | bytes | Data | Vectors) or hasattr(inputs, "columns")
    if not hasattr(inputs, "__iter__") or (is_other_data and not is_corpus):
        raise not_texts(inputs)
    texts = (item.text for item in inputs) if is_corpus else iter(inputs)
    return checked_batches(texts, size, lists)


def checked_batches(texts: Iterator[Any], size: int, lists: bool) -> Iterator[list[Text]]:
    """Yield lists of texts, each checked, with the position of the text in the error."""
    position = 0
    while batch := list(islice(texts, size)):
        for text in batch:
            check_text(text, position, lists)
            position += 1
        yield batch


def check_texts(texts: Sequence[Text], lists: bool = False) -> None:
    """Raise an error unless `texts` is a list of texts; with `lists`, a text may also be a list of its tokens."""
    if isinstance(texts, str):
        raise FirthError("invalid_type", "Expected a list of texts; got one text ({got}). Put it in a list.", got="str")
    if hasattr(texts, "columns"):
        raise not_texts(texts)
    if not (hasattr(texts, "__len__") and hasattr(texts, "__getitem__")):
        raise FirthError(
            "invalid_type",
            "Expected a list of texts; got a {got}. Pass list(texts).",
            got=type(texts).__name__,
        )
    for position, text in enumerate(texts):
        check_text(text, position, lists)


def check_text(text: Any, position: int, lists: bool) -> None:
    """Raise an error unless `text` is a str or, with `lists`, a list of tokens."""
    if not isinstance(text, str) and not (lists and is_token_list(text)):
        raise FirthError(
            "invalid_type",
            "Texts must be {expected}; number {path} is {text!r:.40}. Use an empty text for a missing one.",
            expected="str or lists of str" if lists else "str",
            path=position,
            text=text,
        )


def not_texts(inputs: Any) -> FirthError:
    """Return the error for inputs of another type than texts."""
    hint = "Pass one of its columns." if hasattr(inputs, "columns") else "Pass a text, a list of texts or a Corpus."
    return FirthError("invalid_type", "Expected texts; got a {got}. {hint}", got=type(inputs).__name__, hint=hint)
