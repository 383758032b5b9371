"""What methods learn from, on the command line: each `Method.kind` with its flags, how DATA is opened, what next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from firth.cli.common import (
    ALIKE_OPTIONS,
    DATA_OPTIONS,
    EXAMPLE_OPTIONS,
    GRAPH_OPTIONS,
    LABEL_OPTIONS,
    PAIR_OPTIONS,
    QUESTION_OPTIONS,
    RATING_OPTIONS,
    TABLE_OPTIONS,
    TAGGED_OPTIONS,
    TAGS_OPTION,
    one_file,
    open_rows,
)
from firth.core.errors import FirthError

Values = Mapping[str, Any]
Flags = tuple[tuple[str, dict[str, Any]], ...]


class Kind(NamedTuple):
    """One kind of data."""

    flags: Flags
    open: Callable[[Values], Any]
    next: str  # what to do with the model, {} being its folder


def open_text(values: Values) -> Any:
    from firth.data.corpus import Corpus

    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"])


def open_maybe_text(values: Values) -> Any:
    return open_text(values) if values["data"] else None


def open_tagged(values: Values) -> Any:
    from firth.data.corpus import Corpus

    tags = values["tags"].split(",") if values["tags"] else ()
    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"], tags=tags)


def open_labelled(values: Values) -> Any:
    from firth.data.labeled_texts import LabeledTexts

    return LabeledTexts(*values["data"], column=values["column"], label=values["label"])


def open_table(values: Values) -> Any:
    from firth.data.table import Table

    columns, categories = (values[name].split(",") if values[name] else None for name in ("columns", "categories"))
    rows = open_rows(one_file(values["data"], "table"))
    if not isinstance(rows, str):
        if columns or categories:
            raise FirthError(
                "conflicting_options", "--columns and --categories are for tables; vectors are taken whole."
            )
        return rows
    return Table(rows, columns=columns, categories=categories or ())


def open_graph(values: Values) -> Any:
    from firth.data.graph import Graph

    columns = values["columns"].split(",") if values["columns"] else None
    settings = {"weighted": not values["unweighted"], "layout": values["layout"], "columns": columns}
    return Graph(one_file(values["data"], "graph"), directed=values["directed"], **settings)


def open_ratings(values: Values) -> Any:
    from firth.data.interactions import Interactions

    names = {name: values[name] for name in ("user", "item", "value", "time")}
    return Interactions(one_file(values["data"], "set of ratings"), **names)


def open_pairs(values: Values) -> Any:
    from firth.data.translation_pairs import TranslationPairs

    columns = {name: values[name] for name in ("source", "target")}
    validation = TranslationPairs(*values["validation"].split(","), **columns) if values["validation"] else None
    return TranslationPairs(*values["data"], **columns, validation=validation)


def open_examples(values: Values) -> Any:
    from firth.data.examples import Examples

    columns = values["columns"].split(",") if values["columns"] else ()
    names = {name: values[name] for name in ("text", "other", "label", "dev")}
    return Examples(one_file(values["data"], "set of examples"), **names, columns=columns)


def open_pair_examples(values: Values) -> Any:
    if not values["other"]:
        raise FirthError("missing_option", "Pairs have two columns of text: name them by --column and --other.")
    return open_examples(values)


def open_alike(values: Values) -> Any:
    from firth.data.similar_pairs import SimilarPairs

    names = {name: values[name] for name in ("text", "other", "negative", "score")}
    dev = None
    if values["dev"]:
        columns = values["dev_columns"].split(",")
        if len(columns) != 3:
            raise FirthError(
                "invalid_value",
                "--dev-columns names three columns, as in text,other,score; got {got}.",
                got=values["dev_columns"],
            )
        dev = SimilarPairs(values["dev"], **dict(zip(("text", "other", "score"), columns, strict=True)))
    return SimilarPairs(*values["data"], **names, unit=values["unit"], dev=dev)


def open_questions(values: Values) -> Any:
    from firth.data.questions import Questions

    names = {name: values[f"{name}_column"] for name in ("question", "passage", "answer", "start")}
    return Questions(one_file(values["data"], "set of questions"), **names, dev=values["dev"])


def open_tagged_words(values: Values) -> Any:
    from firth.data.tagged_sentences import TaggedSentences

    names = {name: values[name] for name in ("text", "tags", "dev")}
    return TaggedSentences(one_file(values["data"], "set of tagged words"), **names)


KINDS: dict[str, Kind] = {
    "text": Kind(DATA_OPTIONS, open_text, "firth neighbors {} WORD"),
    "maybe text": Kind(DATA_OPTIONS, open_maybe_text, "firth embed {} FILE"),
    "tagged": Kind((*DATA_OPTIONS, TAGS_OPTION), open_tagged, "firth neighbors {} KEY"),
    "labelled": Kind(LABEL_OPTIONS, open_labelled, "firth predict {} FILE"),
    "ratings": Kind(RATING_OPTIONS, open_ratings, "firth recommend {} --user USER"),
    "table": Kind(TABLE_OPTIONS, open_table, "firth embed {} TABLE -o codes.npy"),
    "graph": Kind(GRAPH_OPTIONS, open_graph, "firth neighbors {} NODE"),
    "pairs": Kind(PAIR_OPTIONS, open_pairs, "firth translate {} TEXT"),
    "alike": Kind(ALIKE_OPTIONS, open_alike, "firth embed {} FILE"),
    "questions": Kind(QUESTION_OPTIONS, open_questions, "firth answer {} --question TEXT --passage TEXT"),
    "tagged words": Kind(TAGGED_OPTIONS, open_tagged_words, "firth predict {} FILE"),
    "examples": Kind(EXAMPLE_OPTIONS, open_examples, "firth predict {} FILE"),
    "pair examples": Kind(EXAMPLE_OPTIONS, open_pair_examples, "firth predict {} FILE --column NAME --other NAME"),
}
