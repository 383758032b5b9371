"""Names of earlier versions: saved folders that use them still open, and errors give the current name.

A method or option in config.json may be renamed only with an entry here.
"""

from __future__ import annotations

from collections.abc import Collection

#: Methods.
METHODS = {
    "answer": "question_answerer",
    "classify": "text_classifier",
    "label": "ordinal",
    "normalize": "minmax",
    "regress": "text_regressor",
    "sentence": "sentence_encoder",
    "tags": "token_classifier",
}
#: Options. If methods shared an old name, each has one of the new ones.
OPTIONS: dict[str, tuple[str, ...]] = {
    "anneal": ("kl_annealing",),
    "batch": ("batch_size",),
    "batch_rows": ("batch_size",),
    "category": ("categorical",),
    "clip": ("max_grad_norm",),
    "decay": ("schedule",),
    "dims": ("matryoshka_dims",),
    "length": ("walk_length", "max_length"),
    "longer": ("overlong",),
    "noise_exponent": ("negative_exponent",),
    "pool": ("pooling",),
    "rates": ("learning_rates",),
    "walks": ("walks_per_node",),
    "widths": ("hidden_sizes",),
}


def current_option(name: str, known: Collection[str]) -> str | None:
    """The current name of an option, if it is among `known`."""
    return next((new for new in (name, *OPTIONS.get(name, ())) if new in known), None)
