"""Doc2Vec: predict the words of a document from its vector, alone or with context words (Le & Mikolov 2014).

mode=dbow maximizes Σ log p(word | document), mode=dm and mode=dm_concat Σ log p(word | document, contexts). Document
vectors are input rows of the window kernel: `kernels.predict.Task(tags=rows of each document)` with the architecture
skipgram (dbow), cbow (dm) or concat (dm_concat).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.core.vectors import Vectors
from firth.data.tagged_corpus import TaggedCorpus
from firth.documents.doc2vec_training import (
    GROUP,
    Doc2VecModel,
    DocumentTraining,
    assign_rows,
    without_padding,
)
from firth.words.window_training import WindowMethod, merged_vocabulary

MODES = ("dbow", "dm", "dm_concat")


@dataclass(frozen=True, kw_only=True)
class Doc2Vec(WindowMethod):
    """Maximize Σ log p(word | document) over all documents; with mode=dm, Σ log p(word | document, contexts)."""

    limits: ClassVar[tuple[str, ...]] = (
        "The vector of a new text is inferred from its known words by training; those of short texts are uncertain.",
        "Words outside the vocabulary are ignored.",
    )
    summary: ClassVar[str] = (
        "document vectors trained to predict the words of documents; vectors of new documents are inferred"
    )
    data = TaggedCorpus
    model: ClassVar[type[Doc2VecModel]] = Doc2VecModel
    architecture: ClassVar[str] = "skipgram"  # for mode=dbow; `kernel_settings` sets that of the other modes
    min_epochs: ClassVar[int] = 20
    large_text: ClassVar[int] = 1_000_000

    mode: str = option(
        "dbow",
        "predict each word from the document alone, or from the mean (dm) or concatenation of document and contexts",
        choices=MODES,
    )
    train_words: bool = option(False, "with mode=dbow, also train word vectors by skip-gram in the same space; slower")
    loss: str = option("negative", "negative sampling or hierarchical softmax", choices=("negative", "hierarchical"))
    # Twice as many as for word vectors, because up to four words of a document share them. With five, a probe on
    # held-out texts was one point less accurate (benchmarks/LOG.md).
    negatives: int = option(
        10, "negative samples per window, or per four words with mode=dbow (loss=negative)", low=1, high=1000
    )
    epochs: int | None = option(
        None, "passes over the corpus; none = 20 from a million words on, more for smaller corpora, up to 200", low=1
    )
    infer_epochs: int | None = option(None, "passes over a new document; none = epochs", low=1)

    def kernel_settings(self) -> dict[str, Any]:
        """Return the fields of `kernels.predict.Task` that are specific to the mode."""
        if self.mode == "dbow":
            group = 1 if self.train_words else GROUP
            return {"architecture": "skipgram", "neighbors": self.train_words, "group": group}
        if self.mode == "dm":
            return {"architecture": "cbow", "exact": False}
        return {"architecture": "concat", "shrink": False}  # each position of the window has its own weights

    @property
    def n_concatenated(self) -> int:
        """The number of concatenated input vectors."""
        return 2 * self.window + 1 if self.mode == "dm_concat" else 1

    @property
    def has_words(self) -> bool:
        """Whether word vectors are trained; plain dbow leaves them at their initial values."""
        return self.mode != "dbow" or self.train_words

    def check_start(self, start: Model) -> None:
        """Raise an error if the vectors of `start` cannot be reused."""
        required = ["dim", "mode", *(["train_words"] if self.mode == "dbow" else [])]
        required += ["window"] if self.mode == "dm_concat" else []
        if isinstance(start, Doc2VecModel):
            required = [name for name in required if getattr(self, name) != getattr(start.method, name)]
            if not required:
                return
        expected = ", ".join(f"{name}={getattr(self, name)}" for name in required)
        raise FirthError(
            "incompatible_start",
            "start must be a Doc2Vec model with {expected}; got {got!r}.",
            expected=expected,
            got=start,
        )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Doc2VecModel:
        """Train on a corpus (or Tokens, paths, texts).

        With `start`, training continues from that model: its words, documents and tags keep their vectors, new ones are
        added. A document with a key of `start` begins with its vector.
        """
        if start is not None:
            self.check_start(start)
        previous = start if isinstance(start, Doc2VecModel) else None
        tokens, reading_seconds = self.read_words(data, run, previous, keys=True)
        if tokens.tags and self.mode == "dm_concat":
            raise FirthError(
                "conflicting_options",
                "mode={mode} supports one vector per document and no tags. Use mode=dbow or mode=dm.",
                mode=self.mode,
            )
        layout = assign_rows(tokens, previous, run)
        method = self.sized(tokens)
        training = DocumentTraining(method, tokens, run, layout, previous)
        metrics = training.go() | {
            "reading_seconds": reading_seconds,
            "empty_documents": int((tokens.starts[1:] == tokens.starts[:-1]).sum()),
            "tags": len(layout.tags),
        }
        words, documents, tags = training.result(previous)
        vocabulary = merged_vocabulary(tokens.vocabulary, previous.vocabulary) if previous else tokens.vocabulary
        return Doc2VecModel(
            method.as_trained(tokens.splitting, vocabulary, run, previous),
            vocabulary,
            Vectors(layout.documents, documents),
            Vectors(layout.tags, tags),
            words if self.has_words else None,
            without_padding(training.outputs, self.n_concatenated, self.dim),
            metrics,
            tokens.phrases,
        )
