"""`firth compare`: several models on the same data, or two vector spaces."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Compare models with each other.""",
    {
        "models": "Which of several models is best for your data: one table, one report.",
        "spaces": "Align one vector space with another and list the words that moved.",
    },
    "COMMAND MODEL MODEL …",
)
