"""File options that several types of data have, or commands other than `train`. Nothing heavy is imported, because the
help of commands needs them. Defaults are those of the constructors."""

from __future__ import annotations

from firth.core.data import FileOption

UNITS = ("line", "block", "file")
TEXT_OPTIONS: tuple[FileOption, ...] = (
    FileOption("unit", "What one document of a text file is.", "choice", UNITS),
    FileOption("column", "The text column (jsonl, csv, tsv, Parquet)."),
    FileOption("key", "The key column."),
)
INTERACTION_OPTIONS: tuple[FileOption, ...] = (
    FileOption("user", "The user column, by default the first."),
    FileOption("item", "The item column, by default the second."),
    FileOption("value", "The column of weights or ratings, by default the third."),
    FileOption("time", "The time column, by default the fourth."),
    FileOption("session", "The session column: which events of a user are one visit.", empty="recognized by name"),
)
#: Tables about users and items, for training.
FEATURE_OPTIONS: tuple[FileOption, ...] = (
    FileOption("user_features", "A table with one row per user: the key, then what is known about the user.", "source"),
    FileOption("item_features", "A table with one row per item: the key, then what is known about the item.", "source"),
)
QUESTION_OPTIONS: tuple[FileOption, ...] = (
    FileOption("question", "The question column.", flag="question-column", default="question"),
    FileOption("passage", "The passage column.", flag="passage-column", default="passage"),
    FileOption("answer", "The answer column.", flag="answer-column", default="answer"),
)
TRANSLATION_OPTIONS: tuple[FileOption, ...] = (
    FileOption("source", "The source column.", default="source"),
    FileOption("target", "The target column.", default="target"),
)
DEV_OPTION = FileOption(
    "dev", "Development data; the default holds out a part of DATA.", "source", empty="hold out a part"
)
