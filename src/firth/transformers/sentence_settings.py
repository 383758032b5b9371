"""Settings of a sentence model besides its pooling: prompts by name and role, similarity, dimensions in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firth.core.arguments import check_choice
from firth.core.errors import FirthError

#: The prompts of a role, as sentence-transformers looks for them: the first that is not empty.
ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


@dataclass(frozen=True)
class SentenceSettings:
    """The settings in config_sentence_transformers.json, and whether text is lowercased before the tokenizer."""

    prompts: Mapping[str, str] = field(default_factory=dict)  # by name; put before a text
    default_prompt: str | None = None  # name of the prompt that is used if none is given
    similarity: str | None = None
    truncate_dim: int | None = None  # vectors have only their first dimensions
    lowercase: bool = False

    def __post_init__(self) -> None:
        texts = isinstance(self.prompts, Mapping) and all(
            isinstance(name, str) and isinstance(text, str) for name, text in self.prompts.items()
        )
        for option, valid, got in (
            ("prompts", texts, self.prompts),
            ("default_prompt_name", self.default_prompt in (None, *self.known_names), self.default_prompt),
            ("similarity_fn_name", self.similarity in (None, *SIMILARITIES), self.similarity),
            ("truncate_dim", self.truncate_dim is None or is_count(self.truncate_dim), self.truncate_dim),
            ("do_lower_case", isinstance(self.lowercase, bool), self.lowercase),
        ):
            if not valid:
                raise FirthError(
                    "damaged_model",
                    "The sentence settings have an invalid {option}: {got!r:.80}.",
                    option=option,
                    got=got,
                )

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names of prompts; the roles always exist, without a text if the model has none for them."""
        names = self.prompts if isinstance(self.prompts, Mapping) else {}
        return tuple(dict.fromkeys([*names, *ROLES]))

    def prompt(self, name: str | None = None, text: str | None = None) -> str:
        """Return the text to put before a text: `text`, or the prompt of a name, or the default prompt."""
        if text is not None:
            if not isinstance(text, str):
                raise FirthError("invalid_type", "prompt_text must be a str; got {got!r:.60}.", got=text)
            return text
        name = self.default_prompt if name is None else name
        if name is None or name == "":
            return ""
        check_choice("prompt", name, self.known_names)
        return self.prompts.get(name, "") if name not in ROLES else self.role_prompt(name)

    def role_prompt(self, role: str) -> str:
        """Return the prompt of a role, query or document; empty if the model has none.

        sentence-transformers adds an empty document prompt to every folder it saves, so empty ones are passed over.
        """
        return next((text for name in ROLES[role] if (text := self.prompts.get(name))), "")

    def document(self) -> dict[str, Any]:
        """Return config_sentence_transformers.json."""
        optional = {} if self.truncate_dim is None else {"truncate_dim": self.truncate_dim}
        return {
            "__version__": {},
            "prompts": dict(self.prompts),
            "default_prompt_name": self.default_prompt,
            "similarity_fn_name": self.similarity or "cosine",
            **optional,
        }

    @classmethod
    def of(cls, config: Any, lowercase: Any = False) -> SentenceSettings:
        """Return the settings of config_sentence_transformers.json and `do_lower_case`."""
        if not isinstance(config, dict):
            raise FirthError(
                "damaged_model", "The sentence settings must be a JSON object; got {got!r:.60}.", got=config
            )
        similarity = config.get("similarity_fn_name")
        return cls(
            config.get("prompts") or {},
            config.get("default_prompt_name"),
            similarity,
            config.get("truncate_dim"),
            False if lowercase is None else lowercase,
        )


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 1."""
    return type(value) is int and value >= 1
