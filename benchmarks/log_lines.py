"""Time log lines: `log_lines.py CALLS PIPE`.

A line is that of a request that has ended, and its metrics are those of a call that asked. The lines are
discarded.
"""

import sys
from functools import partial
from io import StringIO
from unittest.mock import patch

from interleaved import us_per_call, write_figures
from mcp_roundtrip.observing.logs_and_metrics import LogObserver

REQUEST = {"method": "tools/call", "tool": "add", "round": 1, "status": 200}


class Discard(StringIO):
    """Drops what is written."""

    def write(self, text: str) -> int:
        return len(text)


def main(calls: int, pipe: int) -> None:
    observer = LogObserver(service="bench")
    observer.begin("request-1")
    observer.tag(flow="f")
    record = partial(observer.record, "request_completed", **REQUEST)
    measured = {
        "a line": partial(record, outcome="complete"),
        "a line with metrics": partial(record, outcome="input_required", asked=["confirm"]),
    }
    with patch.object(sys, "stdout", Discard()):
        figures = us_per_call(measured, calls)
    write_figures(figures, pipe)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
