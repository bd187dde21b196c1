"""On the path of a function's process: the time that its rounds have, and what they wait, is a fraction."""

import time
from types import SimpleNamespace

from mcp_roundtrip import wiring

TIMES_FASTER = 40

wiring.time = SimpleNamespace(
    time=time.time,
    monotonic=lambda: time.monotonic() * TIMES_FASTER,
    sleep=lambda duration_s: time.sleep(duration_s / TIMES_FASTER),
)
