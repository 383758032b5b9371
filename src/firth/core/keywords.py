"""Keywords of other libraries (gensim, fastText, scikit-learn, implicit, PyTorch, Hugging Face) and Firth's names for
them: an unknown keyword is answered with the one that was probably meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar

from firth.core.errors import FirthError
from firth.core.renamed import current_option

P = ParamSpec("P")
R = TypeVar("R")

#: Keyword elsewhere -> options or parameters here; the first that exists is meant.
KEYWORDS: dict[str, tuple[str, ...]] = {
    "alpha": ("learning_rate",),
    "batch_size": ("batch_tokens",),
    "bucket": ("buckets",),
    "dbow_words": ("train_words",),
    "dimensions": ("dim",),
    "embedding_dim": ("dim",),
    "factors": ("dim",),
    "hidden_layer_sizes": ("hidden_sizes",),
    "hidden_size": ("dim",),
    "iter": ("epochs",),
    "iterations": ("epochs",),
    "latent_dim": ("dim",),
    "lr": ("learning_rate",),
    "max_features": ("max_vocabulary",),
    "max_final_vocab": ("max_vocabulary",),
    "max_iter": ("epochs",),
    "max_n": ("maxn",),
    "min_df": ("min_count",),
    "min_n": ("minn",),
    "minCount": ("min_count",),
    "n_components": ("dim",),
    "n_epochs": ("epochs",),
    "n_factors": ("dim",),
    "n_features": ("dim",),
    "n_iter": ("epochs",),
    "n_layers": ("layers",),
    "n_neighbors": ("k",),
    "neg": ("negatives",),
    "negative": ("negatives",),
    "ngram_range": ("word_ngrams",),
    "ns_exponent": ("negative_exponent",),
    "num_attention_heads": ("heads",),
    "num_epochs": ("epochs",),
    "num_hidden_layers": ("layers",),
    "num_layers": ("layers",),
    "num_train_epochs": ("epochs",),
    "num_walks": ("walks_per_node",),
    "reg": ("regularization",),
    "sample": ("subsample",),
    "size": ("dim",),
    "sublinear_tf": ("tf",),
    "t": ("subsample",),
    "thr": ("subsample",),
    "top_k": ("k",),
    "top_n": ("k",),
    "topk": ("k",),
    "topn": ("k",),
    "vector_size": ("dim",),
    "vocab_size": ("vocabulary_size", "vocabulary", "max_vocabulary"),
    "wordNgrams": ("word_ngrams",),
    "ws": ("window",),
}
#: Keywords whose meaning is not an option of a method.
ELSEWHERE = {
    **dict.fromkeys(("workers", "n_jobs", "num_threads", "thread", "threads"), "Pass fit(data, Run(threads=…))."),
    **dict.fromkeys(("seed", "random_state"), "Pass fit(data, Run(seed=…))."),
    **dict.fromkeys(("device", "use_gpu", "gpu"), "Pass fit(data, Run(device=…))."),
    **dict.fromkeys(("sentences", "corpus_file", "documents", "input"), "Pass the data to fit(data)."),
    "sg": "Use SkipGram or CBOW.",
    "cbow_mean": "Use CBOW(combine=…).",
    "hs": 'Use loss="hierarchical".',
    "dm": "Use Doc2Vec(mode=…).",
}


def keyword_hint(name: str, known: Collection[str]) -> str:
    """A sentence that says what to write instead of an unknown keyword; empty if nothing is close."""
    renamed = current_option(name, known)
    if renamed:
        return f" It is called {renamed!r} now."
    meant = next((here for here in KEYWORDS.get(name, ()) if here in known), None)
    meant = meant or next(iter(difflib.get_close_matches(name, known, n=1)), None)
    if meant:
        return f" Did you mean {meant!r}?"
    return f" {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def unknown_keyword(function: str, name: str, known: Collection[str]) -> FirthError:
    """Return the error for a keyword that a function does not have, with the one that was probably meant."""
    return FirthError(
        "unknown_option",
        "{kind} has no parameter {name!r}.{hint} It has {available}.",
        kind=function,
        name=name,
        hint=keyword_hint(name, known),
        available=", ".join(known),
    )


def checks_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which answers an unknown keyword with a FirthError that names the one that was probably meant."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        unknown = next((name for name in keywords if name not in known), None)
        if unknown is not None:
            raise unknown_keyword(function.__name__, unknown, known)
        return function(*args, **keywords)

    return checked
