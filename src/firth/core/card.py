"""Model cards: README.md in a model's folder, written when it is saved, for people and for model hubs.

The card is derived from the model: method, options, training data, evaluation and limits. It is not read back, so that
it can be edited; `config.json` therefore does not list its hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from firth.core.notebook import html_lines, html_table
from firth.core.options import options_of
from firth.version import __version__

if TYPE_CHECKING:
    from firth.core.model import Model

CARD = "README.md"
UNKNOWN_LICENSE = "not recorded"
#: Keys of training.json that describe the training data, and those that measure the model.
DATA = (
    *("documents", "texts", "examples", "sentences", "questions", "tokens", "vocabulary", "labels", "rows", "columns"),
    *("features", "nodes", "edges", "users", "items", "ratings"),
)
METRICS = (
    *("score", "accuracy", "f1", "matthews", "spearman", "pearson", "exact_match", "perplexity", "held_out_loss"),
    *("masked_accuracy", "next_accuracy", "loss"),
)
LIMITS = (
    "The model reflects its training data, including their errors and biases. Evaluate it on your own data before use "
    "(`firth compare`, `firth evaluate`)."
)


def card_values(model: Model) -> dict[str, Any]:
    """What the card says, as values: `firth info` shows them too."""
    training = model.training
    return {
        "data": {name: training[name] for name in DATA if is_scalar(training.get(name))},
        "license": training.get("license") or UNKNOWN_LICENSE,
        "evaluation": {name: training[name] for name in METRICS if is_scalar(training.get(name))}
        | held_out_scores(training.get("held_out_score")),
        "limits": [limit for limit in (*type(model.method).limits, LIMITS) if limit],
    }


def held_out_scores(record: Any) -> dict[str, Any]:
    """The score on held-out rows beside those of the baselines."""
    if not isinstance(record, dict):
        return {}
    metric = record.get("metric", "score")
    scores = {f"held-out {metric}": record.get("score"), "held-out rows": record.get("rows")}
    baselines = {f"held-out {metric} of {name}": value for name, value in record.get("baselines", {}).items()}
    return {name: value for name, value in (scores | baselines).items() if is_scalar(value)}


def is_scalar(value: Any) -> bool:
    """Return whether a value is a number or a text."""
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def card_text(model: Model) -> str:
    """The card in Markdown, with the metadata that model hubs read."""
    return "\n".join([*front_matter(model), *body(model)]) + "\n"


def card_html(model: Model) -> str:
    """A summary for notebooks: data, options that were set, evaluation."""
    values = card_values(model)
    parts = {"data": values["data"], "options": set_options(model), "evaluation": values["evaluation"]}
    lines = {title: [f"{name} {cell(value)}" for name, value in entries.items()] for title, entries in parts.items()}
    rows = [[title, ", ".join(texts)] for title, texts in lines.items() if texts]
    return html_lines(repr(model)) + html_table(["", "value"], rows)


def set_options(model: Model) -> dict[str, Any]:
    """The options that differ from their defaults and were not chosen by the size of the data."""
    defaults = {item.name: item.default for item in options_of(type(model.method))}
    defaults |= dict(model.training.get("automatic", {}))
    return {name: value for name, value in model.method.options().items() if value != defaults[name]}


def front_matter(model: Model) -> Iterator[str]:
    """Yield the YAML block that registries of models read."""
    values = card_values(model)
    yield from ("---", "library_name: firth", "tags:", "  - firth", f"  - {type(model.method).method_name()}")
    if values["license"] != UNKNOWN_LICENSE:
        yield f"license_name: {cell(values['license'])}"
    yield from ("---", "")


def body(model: Model) -> Iterator[str]:
    """Yield the lines of the card."""
    method, values = type(model.method), card_values(model)
    yield from (f"# {method.__name__}", "", f"{sentence(method.summary)}", "")
    yield from (f"Made with Firth {__version__}.", "")
    yield from ("## Use", "", "```python", "import firth", "", 'model = firth.load("FOLDER")', "```", "")
    yield from ("## Training data", "")
    fingerprint = {"fingerprint": model.training["data"]} if model.training.get("data") else {}
    yield from table({**values["data"], **fingerprint, "license": values["license"]}, "property")
    yield from ("## Options", "", "Options that were set to other values than their defaults are in bold.", "")
    given = set_options(model)
    options = {f"**{name}**" if name in given else name: value for name, value in model.method.options().items()}
    yield from table(options, "option")
    yield from ("## Evaluation", "")
    if values["evaluation"]:
        yield from table(values["evaluation"], "metric")
    else:
        yield from ("Not evaluated in training.", "")
    yield from ("## Limits", "", *(f"- {limit}" for limit in values["limits"]))


def table(values: Mapping[str, Any], title: str) -> Iterator[str]:
    """Yield the lines of a table of names and values."""
    yield from (f"| {title} | value |", "| --- | --- |")
    yield from (f"| {name} | {cell(value)} |" for name, value in values.items())
    yield ""


def cell(value: Any) -> str:
    """A value on one line of a table."""
    text = f"{value:,}" if type(value) is int else f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ") or "(empty)"


def sentence(text: str) -> str:
    """Return a summary as a sentence, with a capital letter and a period."""
    return text[:1].upper() + text[1:].rstrip(".") + "."
