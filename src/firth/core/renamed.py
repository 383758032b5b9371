"""Names of earlier versions: saved folders that use them still open, and errors give the current name.

A method or option in config.json may be renamed only with an entry here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

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
    "context": ("context_length",),
    "decay": ("schedule",),
    "dims": ("matryoshka_dims",),
    "hidden": ("feedforward_dim",),
    "length": ("walk_length", "max_length"),
    "longer": ("overlong",),
    "noise_exponent": ("negative_exponent",),
    "pool": ("pooling",),
    "rates": ("learning_rates",),
    "vocabulary": ("vocabulary_size",),
    "walks": ("walks_per_node",),
    "widths": ("hidden_sizes",),
}

#: Values of options, by the option's current name.
VALUES = {"overlong": {"cut": "truncate", "parts": "chunk"}}

#: Options for which a stored 0 meant "chosen automatically"; None does now.
ZERO_WAS_AUTOMATIC = {
    "fasttext_classifier": ("epochs", "learning_rate"),
    "question_answerer": ("epochs", "learning_rate", "max_length"),
    "sentence_encoder": ("max_length",),
    "text_classifier": ("epochs", "learning_rate", "max_length"),
    "text_regressor": ("epochs", "learning_rate", "max_length"),
    "token_classifier": ("epochs", "learning_rate", "max_length"),
}


def current_options(method: str, options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the stored options of `method` under their current names and with their current values."""
    current = {current_option(old, known) or old: value for old, value in options.items()}
    for name, values in VALUES.items():
        if name in current:
            current[name] = values.get(current[name], current[name])
    for name in ZERO_WAS_AUTOMATIC.get(method, ()):
        if name in current and current[name] == 0:
            current[name] = None
    return current


#: Parts of the names of a network's weights, as checkpoints of training store them.
WEIGHTS = {"following.": "next_sentence.", "input.places.": "input.positions.", "positions.table": "positions.weight"}


def current_weight(name: str) -> str:
    """Return what a weight of a checkpoint is called now."""
    for old, new in WEIGHTS.items():
        if name.startswith(old) or f".{old}" in name:
            return name.replace(old, new)
    return name


def current_option(name: str, known: Collection[str]) -> str | None:
    """The current name of an option, if it is among `known`."""
    return next((new for new in (name, *OPTIONS.get(name, ())) if new in known), None)
