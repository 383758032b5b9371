"""One line of JSON for each event, on standard error. Texts, keys, paths of requests and messages of errors (which may
quote texts) never come into it: a route is told as it is declared."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import datetime, timezone
from typing import Any

log = logging.getLogger("firth.server")


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        fields = getattr(record, "facts", None)
        if fields is None:  # of uvicorn
            fields = {"event": record.getMessage().partition("\n")[0]}
        return json.dumps({"time": when, "level": record.levelname.lower(), **fields})


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    if log.isEnabledFor(level):
        log.log(level, name, extra={"facts": {"event": name, **fields}})


def fault(error: BaseException) -> None:
    """What went wrong where, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    event("fault", logging.ERROR, type=type(error).__name__, where=where)


def begin(requests: bool) -> None:
    """Events go to standard error from now on; without `requests`, only what is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name, level in (("firth.server", logging.INFO if requests else logging.WARNING), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
