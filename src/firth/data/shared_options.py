"""File options that several types of data have. Nothing heavy is imported, because the help of many commands needs
`TEXT_OPTIONS`."""

from __future__ import annotations

from firth.core.data import FileOption

UNITS = ("line", "block", "file")
TEXT_OPTIONS: tuple[FileOption, ...] = (
    FileOption("unit", "What one document of a text file is.", "choice", UNITS),
    FileOption("column", "The text column (jsonl, csv, tsv, Parquet)."),
    FileOption("key", "The key column."),
)
DEV_OPTION = FileOption(
    "dev", "Development data; the default holds out a part of DATA.", "source", empty="hold out a part"
)
