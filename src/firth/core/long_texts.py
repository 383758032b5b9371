"""The policy for texts with more tokens than a model reads at once: choices, meanings, note and error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firth.core.errors import FirthError
from firth.core.options import option

if TYPE_CHECKING:
    from firth.core.report import Report

TRUNCATE, CHUNK, REFUSE = "truncate", "chunk", "refuse"
MEANINGS = {TRUNCATE: "truncated (with a note)", CHUNK: "processed in chunks", REFUSE: "refused"}


def long_option(*choices: str) -> Any:
    """Declare an option for the policy with the choices that are supported; the first is the default."""
    meanings = [MEANINGS[choice] for choice in choices]
    before = ", ".join(meanings[:-1]) + ("," if len(meanings) > 2 else "")
    text = f"{before} or {meanings[-1]}" if before else meanings[-1]
    return option(choices[0], f"longer texts are {text}", choices=choices)


class TooLongError(FirthError):
    """A text has more tokens than the model reads at once."""

    def __init__(self, number: int, tokens: int, limit: int, remedy: str, name: str = "") -> None:
        super().__init__(
            "text_too_long",
            "{name} has {tokens:,} tokens; the limit is {limit:,}. {remedy}",
            name=name or f"Text {number + 1:,}",
            tokens=tokens,
            limit=limit,
            remedy=remedy,
        )
        self.number, self.remedy = number, remedy

    def named(self, name: str) -> TooLongError:
        """The same error with another name for the text."""
        return TooLongError(self.number, self.values["tokens"], self.values["limit"], self.remedy, name)


def note_truncated(report: Report, truncated: int, texts: int, limit: int, remedy: str = "") -> None:
    """Report how many texts were truncated, if any were."""
    if truncated:
        report.note(
            f"{truncated:,} of {texts:,} texts were truncated to {limit:,} tokens.{remedy and ' '}{remedy}",
            "texts_truncated",
        )
