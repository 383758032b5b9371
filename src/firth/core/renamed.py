"""Names of earlier versions. Saved folders that have them still open, and errors say what a name has become.

A name that is stored (a method in config.json, an option there) changes only with an entry here.
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
#: Options; where several methods had the same name, each has one of the new ones.
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

#: Parts of the names of a network's weights, as checkpoints of training store them.
WEIGHTS = {"following.": "next_sentence.", "input.places.": "input.positions."}


def current_weight(name: str) -> str:
    """Return what a weight of a checkpoint is called now."""
    for old, new in WEIGHTS.items():
        if name.startswith(old) or f".{old}" in name:
            return name.replace(old, new)
    return name


def current_option(name: str, known: Collection[str]) -> str | None:
    """The option among `known` that `name` means: itself, or what it has become."""
    return next((new for new in (name, *OPTIONS.get(name, ())) if new in known), None)
