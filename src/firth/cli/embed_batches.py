"""Texts in batches, their vectors, and the counts that `firth embed` reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from firth.cli.common import does_not_embed, unsupported
from firth.cli.row_writers import EmbeddedBatch
from firth.core.long_texts import TRUNCATE
from firth.transformers.pooling import PoolsTokens

if TYPE_CHECKING:
    from firth.core.embedding import EmbeddedTexts
    from firth.core.model import Model
    from firth.data.corpus import Document
    from firth.documents.document_matrix import WeightedTexts
    from firth.transformers.pooling import Pooling

BATCH = 2048  # texts at a time
NO_DOCUMENTS = "The input has no documents to embed."


class Replaces(Protocol):
    """A reader of documents that counts the invalid UTF-8 sequences that it has replaced."""

    replaced: int


class Batch(NamedTuple):
    """Documents that are embedded together."""

    keys: list[str]
    texts: list[str]
    not_utf8: int  # byte sequences that were replaced


def text_batches(documents: Iterable[Document], source: Replaces) -> Iterator[Batch]:
    """Yield the documents of a source in batches."""
    documents, replaced = iter(documents), source.replaced
    while some := list(islice(documents, BATCH)):
        yield Batch(
            [document.key for document in some], [document.text for document in some], source.replaced - replaced
        )
        replaced = source.replaced


def unit_of(model: Model) -> str:
    """Return what the model splits texts into: tokens or words."""
    from firth.core.model import TokenizesWords, base_model

    return "words" if isinstance(base_model(model), TokenizesWords) else "tokens"


def count_rows(
    model: Model, batch: Batch, embedded: EmbeddedTexts | WeightedTexts, pooling: Pooling | None
) -> dict[str, int]:
    """Return the counts of a batch: rows, tokens, unknown tokens, empty and zero rows, truncated texts."""
    read = embedded.known + embedded.unknown
    counts = {"rows": len(batch.keys), unit_of(model): int(read.sum()), "unknown": int(embedded.unknown.sum())}
    counts |= {"empty_rows": int((read == 0).sum()), "zero_rows": int(((embedded.matrix != 0).sum(axis=1) == 0).sum())}
    if pooling is not None and isinstance(model, PoolsTokens):
        limit = (pooling.max_tokens or model.size.max_positions) - model.tokenizer.template.added
        counts["cut_rows"] = int((read > limit).sum()) if pooling.long == TRUNCATE else 0
    return {**counts, "not_utf8": batch.not_utf8}


def batches(
    model: Model, documents: Iterable[Batch], path: str, settings: dict[str, Any]
) -> Iterator[tuple[EmbeddedBatch, dict[str, int]]]:
    """Yield embedded batches with their counts."""
    from firth.core.embedding import EmbedsTexts

    if not isinstance(model, EmbedsTexts):
        raise does_not_embed(model, path)
    waiting: deque[Batch] = deque()

    def texts() -> Iterator[list[str]]:
        for batch in documents:
            waiting.append(batch)
            yield batch.texts

    for embedded in model.embed_batches(texts(), **settings):
        batch = waiting.popleft()
        counts = count_rows(model, batch, embedded, settings.get("pooling"))
        yield EmbeddedBatch(batch.keys, embedded.matrix, embedded.unknown.tolist()), counts


def sparse_batches(
    model: Model, documents: Iterable[Batch], path: str
) -> Iterator[tuple[EmbeddedBatch, dict[str, int]]]:
    """Yield embedded batches of sparse rows with their counts."""
    from firth.documents.document_matrix import SparseModel

    if not isinstance(model, SparseModel):
        raise unsupported(model, path, "has no sparse rows", "Choose .npy, .parquet or .jsonl.")
    for batch in documents:
        weighted = model.weighted(batch.texts)
        yield (
            EmbeddedBatch(batch.keys, weighted.matrix, weighted.unknown.tolist()),
            count_rows(model, batch, weighted, None),
        )
