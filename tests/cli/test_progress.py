"""Progress as JSON lines for other programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def test_the_environment_variable(tmp_path):
    command = [sys.executable, "-m", "firth", "corpus", "python", "--package", "json", "-o", str(tmp_path / "a.jsonl")]
    done = subprocess.run(
        command, env={**os.environ, "FIRTH_PROGRESS": "json"}, capture_output=True, text=True, check=True
    )
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert events[0]["event"] == "begin" and events[-1]["event"] in ("end", "note")
    assert any(event["event"] == "step" for event in events)
