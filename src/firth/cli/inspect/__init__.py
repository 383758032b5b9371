"""`firth inspect`: what happens inside a model."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Inspect a model: attention weights, contextual word vectors, reconstruction errors.""",
    {
        "attention": "Attention weights of a network, as a table, picture or page.",
        "senses": "One word in several texts: distances of its vectors per layer.",
        "words": "Contextual word vectors of texts, or their mean per word.",
        "reconstruction": "Reconstruction errors of an autoencoder, and the outliers.",
    },
    "COMMAND MODEL …",
)
