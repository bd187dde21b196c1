"""The log lines of this process."""

import json
from typing import Any

import pytest


def logged_lines(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """Return the log lines since the last call, without lines that only hold counts."""
    text = capsys.readouterr().out
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if "message" in line]
