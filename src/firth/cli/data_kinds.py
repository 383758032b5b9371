"""The kinds of training data on the command line: the flags of each `Method.kind`, and how DATA is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from firth.cli.common import DATA_OPTIONS, UNITS, Flags, open_table_input, single_file
from firth.core.errors import FirthError

Values = Mapping[str, Any]


def column(flag: str, help: str, default: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return a flag that names a column."""
    shown = {"default": default, "show_default": True} if default else {}
    return flag, {"metavar": "NAME", "help": help, **shown}


DEV_OPTION = ("--dev", {"metavar": "FILE", "help": "Development data; the default holds out a part of DATA."})
TAGS_OPTION = (
    "--tags",
    {"metavar": "NAMES", "help": "Columns with a tag or a list of tags, as in author,topics; tags get vectors too."},
)
LABEL_OPTIONS: Flags = (
    column("--column", "The text column (jsonl, csv, tsv, Parquet)."),
    column("--label", "The label column, by default label. Text files have __label__ words."),
)
TABLE_OPTIONS: Flags = (
    ("--columns", {"metavar": "NAMES", "help": "Only these columns of the table, as in age,zip."}),
    ("--categories", {"metavar": "NAMES", "help": "Numeric columns to be read as categories, as in zip."}),
)
GRAPH_OPTIONS: Flags = (
    ("--directed", {"is_flag": True, "help": "Edges lead from the first node to the second only."}),
    ("--unweighted", {"is_flag": True, "help": "All edges have weight 1; a third column is ignored."}),
    (
        "--layout",
        {
            "type": click.Choice(("edges", "adjacency")),
            "default": "edges",
            "show_default": True,
            "help": "A line is an edge (a b, or a b weight), or a node and all its neighbors.",
        },
    ),
    ("--columns", {"metavar": "NAMES", "help": "Columns of a table with a header: from,to or from,to,weight."}),
)
INTERACTION_OPTIONS: Flags = (
    column("--user", "The user column, by default the first."),
    column("--item", "The item column, by default the second."),
    column("--value", "The column of weights or ratings, by default the third."),
    column("--time", "The time column, by default the fourth."),
)
TRANSLATION_OPTIONS: Flags = (
    column("--source", "The source column.", "source"),
    column("--target", "The target column.", "target"),
)
TRANSLATION_DEV = ("--dev", {"metavar": "FILES", "help": "Development pairs, as in val.de,val.en or val.tsv."})
EXAMPLE_OPTIONS: Flags = (
    column("--column", "The text column.", "text"),
    column("--other", "The column of the second text, for text pairs."),
    column("--label", "The column to predict.", "label"),
    ("--columns", {"metavar": "NAMES", "help": "Further input columns beside the text, as in price,colour."}),
    DEV_OPTION,
)
TAGGED_OPTIONS: Flags = (
    column("--column", "The column of words.", "text"),
    column("--tags", "The column of tags.", "tags"),
    DEV_OPTION,
)
SIMILAR_OPTIONS: Flags = (
    (
        "--unit",
        {
            "type": click.Choice((*UNITS, "sentence")),
            "default": "line",
            "show_default": True,
            "help": "What one text of a text file is.",
        },
    ),
    column("--column", "The text column (csv, tsv, jsonl, Parquet)."),
    column("--other", "Pairs: the column of similar texts."),
    column("--negative", "Pairs: the column of dissimilar texts (hard negatives)."),
    column("--score", "Pairs: the column of similarity scores; higher is more similar."),
    ("--dev", {"metavar": "FILE", "help": "Scored pairs to evaluate on; the best weights are kept."}),
    (
        "--dev-columns",
        {
            "default": "text,other,score",
            "show_default": True,
            "metavar": "NAMES",
            "help": "Their two text columns and the score column.",
        },
    ),
)
QUESTION_OPTIONS: Flags = (
    column("--question-column", "The question column.", "question"),
    column("--passage-column", "The passage column.", "passage"),
    column("--answer-column", "The answer column.", "answer"),
    column("--start-column", "The column with the character offset of the answer, if any."),
    DEV_OPTION,
)


class DataKind(NamedTuple):
    """One kind of training data."""

    flags: Flags
    open: Callable[[Values], Any]
    next: str  # a command that uses the trained model; {} is its folder


def split_names(names: str | None) -> list[str]:
    """Return the names of a list such as age,zip."""
    return names.split(",") if names else []


def open_text(values: Values) -> Any:
    from firth.data.corpus import Corpus

    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"])


def open_optional_text(values: Values) -> Any:
    return open_text(values) if values["data"] else None


def open_tagged_documents(values: Values) -> Any:
    from firth.data.corpus import Corpus

    tags = split_names(values["tags"])
    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"], tags=tags)


def open_labeled_texts(values: Values) -> Any:
    from firth.data.labeled_texts import LabeledTexts

    return LabeledTexts(*values["data"], column=values["column"], label=values["label"])


def open_table(values: Values) -> Any:
    from firth.data.table import Table

    columns, categories = split_names(values["columns"]), split_names(values["categories"])
    rows = open_table_input(single_file(values["data"], "table"))
    if not isinstance(rows, str):
        if columns or categories:
            raise FirthError(
                "conflicting_options",
                "--columns and --categories apply to tables, and {path} contains vectors. Omit them.",
                path=values["data"][0],
            )
        return rows
    return Table(rows, columns=columns or None, categories=categories)


def open_graph(values: Values) -> Any:
    from firth.data.graph import Graph

    columns = split_names(values["columns"]) or None
    settings = {"weighted": not values["unweighted"], "layout": values["layout"], "columns": columns}
    return Graph(single_file(values["data"], "graph"), directed=values["directed"], **settings)


def open_interactions(values: Values) -> Any:
    from firth.data.interactions import Interactions

    names = {name: values[name] for name in ("user", "item", "value", "time")}
    return Interactions(single_file(values["data"], "set of interactions"), **names)


def open_translation_pairs(values: Values) -> Any:
    from firth.data.translation_pairs import TranslationPairs

    columns = {name: values[name] for name in ("source", "target")}
    dev = TranslationPairs(*values["dev"].split(","), **columns) if values["dev"] else None
    return TranslationPairs(*values["data"], **columns, validation=dev)


def open_examples(values: Values) -> Any:
    from firth.data.examples import Examples

    names = {name: values[name] for name in ("other", "label", "dev")}
    path = single_file(values["data"], "set of examples")
    return Examples(path, text=values["column"], **names, columns=split_names(values["columns"]))


def open_similar_pairs(values: Values) -> Any:
    from firth.data.similar_pairs import SimilarPairs

    names = {name: values[name] for name in ("other", "negative", "score")}
    dev = None
    if values["dev"]:
        columns = values["dev_columns"].split(",")
        if len(columns) != 3:
            raise FirthError(
                "invalid_value",
                "{option} takes three column names, as in text,other,score; got {got}.",
                option="--dev-columns",
                got=values["dev_columns"],
            )
        dev = SimilarPairs(values["dev"], **dict(zip(("text", "other", "score"), columns, strict=True)))
    return SimilarPairs(*values["data"], text=values["column"], **names, unit=values["unit"], dev=dev)


def open_questions(values: Values) -> Any:
    from firth.data.questions import Questions

    names = {name: values[f"{name}_column"] for name in ("question", "passage", "answer", "start")}
    return Questions(single_file(values["data"], "set of questions"), **names, dev=values["dev"])


def open_tagged_sentences(values: Values) -> Any:
    from firth.data.tagged_sentences import TaggedSentences

    names = {"text": values["column"], "tags": values["tags"], "dev": values["dev"]}
    return TaggedSentences(single_file(values["data"], "set of tagged sentences"), **names)


DATA_KINDS: dict[str, DataKind] = {
    "text": DataKind(DATA_OPTIONS, open_text, "firth query neighbors {} WORD"),
    "optional text": DataKind(DATA_OPTIONS, open_optional_text, "firth embed {} FILE"),
    "tagged": DataKind((*DATA_OPTIONS, TAGS_OPTION), open_tagged_documents, "firth query neighbors {} KEY"),
    "labelled": DataKind(LABEL_OPTIONS, open_labeled_texts, "firth predict {} FILE"),
    "ratings": DataKind(INTERACTION_OPTIONS, open_interactions, "firth query recommend {} --user USER"),
    "table": DataKind(TABLE_OPTIONS, open_table, "firth embed {} TABLE -o codes.npy"),
    "graph": DataKind(GRAPH_OPTIONS, open_graph, "firth query neighbors {} NODE"),
    "pairs": DataKind(
        (*TRANSLATION_OPTIONS, TRANSLATION_DEV), open_translation_pairs, "firth generate translation {} TEXT"
    ),
    "alike": DataKind(SIMILAR_OPTIONS, open_similar_pairs, "firth embed {} FILE"),
    "questions": DataKind(QUESTION_OPTIONS, open_questions, "firth predict {} --question TEXT --passage TEXT"),
    "tagged words": DataKind(TAGGED_OPTIONS, open_tagged_sentences, "firth predict {} FILE"),
    "examples": DataKind(EXAMPLE_OPTIONS, open_examples, "firth predict {} FILE"),
}
