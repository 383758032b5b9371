"""Chat templates: from a list of messages to the prompt that a model was trained on.

A template is a Jinja program in the model's files. It runs in Jinja's sandbox with the functions and settings that the
package transformers gives it, so that the prompts are the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.storage import read_json

TEMPLATE_FILE, TOKENIZER_CONFIG = "chat_template.jinja", "tokenizer_config.json"
DEFAULT = "default"  # name of the template to use if there are several
LONGEST = 1 << 20  # characters of a template

Messages = Sequence[Mapping[str, Any]]


def read_template(folder: Path) -> str | None:
    """Return the chat template of a folder; None if it has none."""
    if (folder / TEMPLATE_FILE).is_file():
        try:
            return checked((folder / TEMPLATE_FILE).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=folder / TEMPLATE_FILE, reason=str(error)
            ) from None
    config = read_json(folder / TOKENIZER_CONFIG) if (folder / TOKENIZER_CONFIG).is_file() else {}
    return template_in(config if isinstance(config, dict) else {})


def template_in(config: Mapping[str, Any]) -> str | None:
    """Return the chat template in tokenizer_config.json; of several, the one named default."""
    template = config.get("chat_template")
    if isinstance(template, list):
        named = {each.get("name"): each.get("template") for each in template if isinstance(each, dict)}
        template = named.get(DEFAULT)
    return checked(template) if isinstance(template, str) else None


def checked(template: str) -> str:
    """Return the template, or raise too_large."""
    if len(template) > LONGEST:
        raise FirthError(
            "too_large",
            "The chat template has {got:,} characters; at most {maximum:,} are allowed.",
            got=len(template),
            maximum=LONGEST,
        )
    return template


def check_messages(messages: Messages) -> None:
    """Raise invalid_value unless every message has a role and content."""
    if isinstance(messages, str) or not isinstance(messages, Sequence) or not messages:
        raise FirthError(
            "invalid_value", "{option} must be a list of messages; got {got!r}.", option="messages", got=messages
        )
    for message in messages:
        if not isinstance(message, Mapping) or not all(isinstance(message.get(k), str) for k in ("role", "content")):
            raise FirthError(
                "invalid_value",
                '{option} must have texts "role" and "content"; got {got!r}.',
                option="messages",
                got=message,
            )


def render_chat(template: str | None, messages: Messages, special: Mapping[str, str], generate: bool = True) -> str:
    """Return the prompt for messages; with `generate`, it ends where the model's answer begins.

    `special` are the special tokens by their names in tokenizer_config.json, such as bos_token.
    """
    check_messages(messages)
    if not template:
        raise FirthError(
            "unsupported_model",
            "The model has no chat template: it was not trained for conversations. Generate without one ({remedy}).",
            remedy="chat=False, or no --chat",
        )
    try:
        from jinja2 import TemplateError
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise missing_package("Chat templates need", "jinja2", "chat") from None

    class Generation(Extension):
        """The tag `generation`, which marks answers for training and changes nothing."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = to_json
    environment.globals |= {"raise_exception": raise_exception, "strftime_now": lambda f: datetime.now().strftime(f)}
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=generate,
            **special,
        )
    except Exception as error:  # any error that a foreign template raises
        raise FirthError(
            "invalid_value",
            "The chat template does not accept these messages: {reason}.",
            reason=str(error) or type(error).__name__,
        ) from None


def to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **settings: Any) -> str:
    """The filter `tojson`, which unlike Jinja's does not escape characters of HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **settings)
