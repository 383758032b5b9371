"""`firth generate`: what a model generates: text, masked tokens, translations, table rows."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Generate text, masked tokens, translations or table rows with a model.""",
    {
        "text": "Continue a prompt with a language model.",
        "fill": "Predict the tokens at the [MASK]s of a text.",
        "translation": "Translate or summarize texts.",
        "rows": "Sample table rows from a VAE, or interpolate between rows.",
    },
    "COMMAND MODEL …",
)
