"""`firth query`: questions about the vectors of a model."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Query the vectors of a model: neighbors, analogies, similarities, associations, recommendations.

    MODEL is a model folder; where only vectors are needed, it may be a vector file.
    """,
    {
        "neighbors": "The nearest words, documents, nodes or items.",
        "analogy": "A is to B as C is to what?",
        "similarity": "The similarity of two words or texts.",
        "odd-one-out": "The word that fits least among several.",
        "associations": "The contexts that a word occurs with more often than by chance.",
        "recommend": "Items for a user, or for a list of items.",
    },
    "COMMAND MODEL …",
)
