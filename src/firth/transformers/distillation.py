"""Distillation of a Transformer into a static token table.

1. The teacher encodes each token (and each frequent word of the text) alone: rows t.
2. PCA reduces the rows to `dim` dimensions. A token of share p is weighted by a / (a + p) (Arora et al. 2017); p is
   counted in the text, or follows Zipf's law over the token's rank. Up to here this is Model2Vec (Tulkens & van Dongen
   2024).
3. With a text, the rows are fitted so that means over sentences approach the teacher's vectors, by ridge regression

       Σ_s n_s |mean of rows in s − y_s|² + λ Σ_t |row_t − first row_t|²

   over all rows at once, by conjugate gradients, which needs no learning rate and is deterministic. A sentence is
   weighted by its number of tokens n, because short fragments such as list items carry little information.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.components import principal_components
from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.run import Run
from firth.core.scores import correlation, ranks
from firth.core.vectors import Matrix, unit_rows
from firth.data.corpus import Corpus
from firth.data.pretokens import count_pretokens
from firth.data.sentences import split_sentences
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.bags import WordPieces
from firth.kernels.sparse import CSRMatrix, multiply
from firth.transformers.bert_model import BertModel
from firth.transformers.distil import Distil
from firth.transformers.static_model import OtherTokens, StaticModel, native_reader, tokens_of
from firth.transformers.text_encoder import WINDOW, Ids, resolve_engine
from firth.words.word_model import sif_weights

ROUNDS = 10  # maximum iterations of conjugate gradients; more do not help
HELD_OUT = 500  # maximum number of sentences, or a twentieth of them
EXACT = 1e-3  # relative tolerance of the gradient


class Vocabulary(NamedTuple):
    """The student's tokens, the teacher's input ids for each, and their counts in the text, if there is one."""

    tokens: list[str]
    read: list[list[int]]
    document: dict[str, Any]  # tokenizer.json
    counts: NDArray[np.int64] | None


def distil_teacher(method: Distil, data: Any, run: Run, start: Model | None) -> StaticModel:
    """Distil the teacher `start` into a static model."""
    teacher = teacher_of(start)
    began = time.monotonic()
    corpus = data if data is None or isinstance(data, Corpus) else Corpus(data)
    vocabulary = vocabulary_of(teacher.tokenizer, method.words, corpus, run)
    width = teacher.dim_of(teacher.pooling)
    if method.dim > width:
        raise FirthError(
            "invalid_value",
            "{option} must be at most {limit}, the teacher's dimension; got {got}.",
            option="Distil.dim",
            limit=width,
            got=method.dim,
        )
    rows = teach(teacher, vocabulary.read, "tokens through the teacher", run)
    parts = principal_components(rows)
    directions = parts.directions[: method.dim or width]
    weights = frequency_weights(len(rows), method.smoothing, vocabulary.counts)
    table = ((rows - parts.mean) @ directions.T * weights[:, None]).astype(np.float32)
    special = {token.token for token in teacher.tokenizer.special.by_role.values()}
    # Unknown words and special tokens carry no information, also in readers that keep them.
    table[[row for row, token in enumerate(vocabulary.tokens) if token in special]] = 0.0
    metrics: dict[str, Any] = {"vocabulary": len(table)}
    held_out: list[str] = []
    if corpus is not None and method.texts:
        texts, held_out = split(draw_sentences(corpus, method.texts, run.seed), run.seed)
        bags = bags_of(texts, vocabulary)
        targets = sentence_vectors(teacher, bags.texts, method.precision, run)
        targets = (targets - targets.mean(0)) @ directions.T.astype(np.float32) * bags.roots[:, None]
        table, error = fitted(table, bags, targets, method.pull, run.cores)
        metrics |= {"texts": len(bags.texts), "loss": error}
    model = StaticModel(method, vocabulary.document, table, metrics)
    if len(held_out) > 2:
        spearman = agreement(model.embed(held_out), sentence_vectors(teacher, held_out, method.precision, run))
        metrics |= {"agreement": spearman} if math.isfinite(spearman) else {}  # undefined if all texts are equal
    metrics |= {"seconds": time.monotonic() - began, "teacher": repr(teacher), "seed": run.seed}
    return model


def teacher_of(start: Model | None) -> BertModel:
    """Return `start` as a BERT, or raise an error."""
    if start is None:
        raise FirthError("missing_start", "Distil needs a BERT as teacher; pass it as start.")
    if not isinstance(start, BertModel):
        raise FirthError("incompatible_start", "The teacher of Distil must be a BERT; got {got!r}.", got=start)
    return start


# ---- tokens ----


def vocabulary_of(tokenizer: SubwordTokenizer, words: int, corpus: Corpus | None, run: Run) -> Vocabulary:
    """Return the teacher's tokens, of a WordPiece without special and unused ones and with frequent words."""
    if words and corpus is None:
        raise FirthError(
            "conflicting_options",
            "{option} counts words in a text, but no text was given; got {got:,}.",
            option="Distil.words",
            got=words,
        )
    document = json.loads(tokenizer.to_json())
    document |= {"post_processor": None, "truncation": None, "padding": None}
    model = document["model"]
    if model.get("type") != "WordPiece":
        return whole_vocabulary(tokenizer, document, words, corpus)
    document["added_tokens"] = []
    special = {each.token for each in tokenizer.special.by_role.values()} - {model["unk_token"]}
    unused = {*special, *(token for token in model["vocab"] if token.startswith("[unused"))}
    tokens = [token for token in sorted(model["vocab"], key=model["vocab"].__getitem__) if token not in unused]
    read = [tokenizer.template.text([model["vocab"][token]]) for token in tokens]
    counted: list[tuple[str, int]] = []
    if corpus is not None:
        lowercase = bool((document.get("normalizer") or {}).get("lowercase"))
        pretokens = count_pretokens(corpus, "bert", lowercase, run)
        for note in pretokens.notes:
            run.report.note(*note)
        counted = list(pretokens.words.pairs())
        known = set(tokens)
        new = [word for word, _ in counted if word not in known][:words]
        tokens += new
        read += tokenizer.ids_batch(new)
    model["vocab"] = {token: id for id, token in enumerate(tokens)}
    counts = None if corpus is None else token_counts(document, tokens, counted)
    return Vocabulary(tokens, read, document, counts)


def whole_vocabulary(
    tokenizer: SubwordTokenizer, document: dict[str, Any], words: int, corpus: Corpus | None
) -> Vocabulary:
    """Return all tokens of a teacher with another tokenizer than WordPiece, whose tokens cannot be left out."""
    if words:
        raise FirthError(
            "conflicting_options",
            "{option} adds words to a WordPiece vocabulary, but the teacher's tokenizer is {model}. Use {option}=0.",
            option="Distil.words",
            model=document["model"].get("type"),
        )
    tokens = tokens_of(document)
    read = [tokenizer.template.text([id]) for id in range(len(tokens))]
    if corpus is None:
        return Vocabulary(tokens, read, document, None)
    counts, texts = np.zeros(len(tokens), np.int64), iter(corpus)
    while batch := [text for _, text in islice(texts, WINDOW)]:
        ids = np.array([id for each in tokenizer.ids_batch(batch, special=False) for id in each], np.int64)
        counts += np.bincount(ids, minlength=len(tokens))
    return Vocabulary(tokens, read, document, counts)


def token_counts(
    document: dict[str, Any], tokens: Sequence[str], counted: Sequence[tuple[str, int]]
) -> NDArray[np.int64]:
    """Return token counts from word counts."""
    ids, ends = reader_of(document, tokens).ids([word for word, _ in counted])
    times = np.repeat([count for _, count in counted], np.diff(ends, prepend=0))
    return np.bincount(ids, times, len(tokens)).astype(np.int64)


def reader_of(document: dict[str, Any], tokens: Sequence[str]) -> WordPieces | OtherTokens:
    """Return the native tokenizer if it supports the document, or the one of the package `tokenizers`."""
    return native_reader(document, tokens) or OtherTokens(document)


def frequency_weights(tokens: int, smoothing: float, counts: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Return the SIF weights of tokens, from their counts or ranks.

    Without counts, p is proportional to 1 / rank (Zipf), because BERT's tokens are nearly in the order of frequency.
    With counts, a token that does not occur counts as half an occurrence.
    """
    seen = 1 / np.arange(2, tokens + 2) if counts is None else np.maximum(counts, 0.5)
    weights = sif_weights(seen, float(seen.sum()), smoothing)
    return np.ones(tokens) if weights is None else weights


def teach(
    teacher: BertModel, texts: Sequence[Sequence[int]], task: str, run: Run, precision: str = "float32"
) -> Matrix:
    """Return the teacher's unnormalized vectors of token ids; `precision` applies to a CPU."""
    pooling = replace(teacher.pooling, normalize=False)
    device, usual = resolve_engine("cpu" if run.deterministic else run.device, "auto")
    engine = teacher.engine(device, precision if device == "cpu" else usual)
    rows = np.empty((len(texts), teacher.dim_of(pooling)), np.float32)
    run.report.begin(task, len(texts), "texts")
    try:
        for first in range(0, len(texts), WINDOW):
            some = slice(first, first + WINDOW)
            rows[some] = teacher.finished(engine(Ids.of(texts[some]), pooling)(), pooling)
            run.report.step(min(first + WINDOW, len(texts)))
    finally:
        run.report.end()
    return rows


# ---- texts ----


def draw_sentences(corpus: Corpus, limit: int, seed: int) -> list[str]:
    """Return a uniform sample of at most `limit` sentences (Vitter 1985, algorithm R)."""
    random = np.random.default_rng(seed)
    sample, seen = list[str](), 0
    for _, text in corpus:
        for sentence in split_sentences(text):
            seen += 1
            if len(sample) < limit:
                sample.append(sentence)
            elif (index := int(random.integers(seen))) < limit:
                sample[index] = sentence
    return sample


def split(texts: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Split texts into those to fit and held-out ones for comparing student and teacher."""
    order = np.random.default_rng((seed, 1)).permutation(len(texts))
    n_held_out = min(HELD_OUT, len(texts) // 20)
    return [texts[row] for row in order[n_held_out:]], [texts[row] for row in order[:n_held_out]]


def sentence_vectors(teacher: BertModel, texts: list[str], precision: str, run: Run) -> Matrix:
    """Return the teacher's unit vectors of texts."""
    read = shortened(teacher.tokenizer.ids_batch(texts), teacher)
    return unit_rows(teach(teacher, read, "sentences through the teacher", run, precision))


def agreement(student: Matrix, teacher: Matrix) -> float:
    """Return Spearman's ρ between the cosines of student and teacher over all pairs of texts."""
    above = np.triu_indices(len(student), 1)
    both = [unit_rows(rows) for rows in (student, teacher)]
    return correlation(*(ranks((rows @ rows.T)[above]) for rows in both))


class Bags(NamedTuple):
    """Texts as bags of tokens: the share of each token times the root of the text's weight, and the transpose."""

    texts: list[str]
    roots: NDArray[np.float32]
    shares: CSRMatrix
    turned: CSRMatrix


def bags_of(texts: list[str], vocabulary: Vocabulary) -> Bags:
    """Return the bags of the texts that have known tokens."""
    from scipy import sparse

    ids, ends = reader_of(vocabulary.document, vocabulary.tokens).ids(texts)
    lengths = np.diff(ends, prepend=0)
    nonempty = np.flatnonzero(lengths)
    if not len(nonempty):
        raise FirthError(
            "empty_data", "None of the {texts:,} texts has a token of the teacher's vocabulary.", texts=len(texts)
        )
    starts = np.concatenate([[0], np.cumsum(lengths[nonempty])])
    roots = np.sqrt(lengths[nonempty] / lengths[nonempty].mean()).astype(np.float32)
    values = np.repeat(roots / lengths[nonempty], lengths[nonempty]).astype(np.float32)
    shares = sparse.csr_matrix((values, ids, starts), shape=(len(nonempty), len(vocabulary.tokens)))
    shares.sum_duplicates()
    return Bags([texts[row] for row in nonempty], roots, rows_of(shares), rows_of(shares.T.tocsr()))


def rows_of(matrix: Any) -> CSRMatrix:
    """Return a scipy CSR matrix as kernel rows."""
    return CSRMatrix(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


def shortened(texts: Sequence[list[int]], teacher: BertModel) -> list[list[int]]:
    """Truncate token ids to the teacher's maximum length, with the special tokens at the end."""
    limit = teacher.pooling.max_tokens or teacher.size.max_positions
    return [teacher.tokenizer.template.truncated(ids, limit) for ids in texts]


def fitted(first: Matrix, bags: Bags, targets: Matrix, pull: float, threads: int) -> tuple[Matrix, float]:
    """Return the table E that minimizes |S E − targets|² + λ |E − first|², and the unexplained share of |targets|².

    λ is `pull` times the mean contribution of a text to one of its tokens. The first table is scaled to fit best.
    Conjugate gradients solve (SᵀS + λ) (E − first) = Sᵀ (targets − S first) for all columns at once. The Jacobi
    preconditioner divides each row by its diagonal entry, because frequent tokens weigh thousands of times as much as
    rare ones.
    """

    def means(table: Matrix) -> Matrix:
        return multiply(bags.shares, table, threads)

    def transposed(rows: Matrix) -> Matrix:
        return multiply(bags.turned, rows, threads)

    start_means = means(first)
    start_norm = dot(start_means, start_means)
    first = first * np.float32(dot(start_means, targets) / start_norm if start_norm else 1.0)
    squares = bags.turned.values.astype(np.float64) ** 2
    scale = pull * float(squares.mean())
    totals = np.concatenate([[0.0], np.cumsum(squares)])[bags.turned.starts]
    diagonal = (np.diff(totals) + scale).astype(np.float32)[:, None]
    residual = transposed(targets - means(first))
    change, step = np.zeros_like(first), residual / diagonal
    length = dot(residual, step)
    tolerance = length * EXACT**2
    for _ in range(ROUNDS):
        if length <= tolerance:
            break
        direction = transposed(means(step)) + np.float32(scale) * step
        rate = np.float32(length / dot(step, direction))
        change += rate * step
        residual -= rate * direction
        preconditioned = residual / diagonal
        previous, length = length, dot(residual, preconditioned)
        step = preconditioned + np.float32(length / previous) * step
    table = first + change
    error = targets - means(table)
    return table, dot(error, error) / max(1e-30, dot(targets, targets))


def dot(a: Matrix, b: Matrix) -> float:
    """Return Σ a · b in double precision."""
    return float(np.einsum("ij,ij->", a, b, dtype=np.float64))
