"""Logging of one JSON line per event to standard error. For privacy, the log never contains texts, keys, request paths
or error messages, which may quote texts; routes are logged by their pattern."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

log = logging.getLogger("firth.server")


class Lines(logging.Formatter):
    """Formats log records as JSON lines; `always` are fields of all of them."""

    def __init__(self, always: Mapping[str, Any]) -> None:
        super().__init__()
        self.always = dict(always)

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", None)
        if fields is None:  # a record of uvicorn
            fields = {"event": record.getMessage().partition("\n")[0]}
        return json.dumps({"time": when, "level": record.levelname.lower(), **self.always, **fields})


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event."""
    if log.isEnabledFor(level):
        log.log(level, name, extra={"fields": {"event": name, **fields}})


def fault(error: BaseException) -> None:
    """Log the type and the location of an error, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    event("fault", logging.ERROR, type=type(error).__name__, where=where)


def begin(requests: bool, **always: Any) -> None:
    """Start logging to standard error; without `requests`, only warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(always))
    for name, level in (("firth.server", logging.INFO if requests else logging.WARNING), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
