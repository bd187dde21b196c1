"""Runs one contender in this fresh process: `probe.py CONTENDER CALLS PIPE`, the event on stdin.

What is measured starts before the first import, so only what the interpreter has anyway is imported here:
marshal carries the event and the figures, since json would be a gift to every contender.
"""

import marshal
import os
import sys
from time import perf_counter

RESIDENT_AFTER = 50
"""Calls after which the peak of the memory is read."""


class Context:
    """What a handler sees of Lambda's own context."""

    aws_request_id = "bench"
    function_name = "bench"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:bench"

    def get_remaining_time_in_millis(self):
        return 29_000


def main(contender, calls, pipe):
    event, context = marshal.load(sys.stdin.buffer), Context()
    started = perf_counter()
    handler = __import__(f"contenders.{contender}", fromlist=["handler"]).handler
    answer = handler(event, context)
    figures = {"first_ms": (perf_counter() - started) * 1000, "warm_ms": []}
    bodies = {answer["body"]}
    for call in range(2, calls + 1):
        started = perf_counter()
        answer = handler(event, context)
        figures["warm_ms"].append((perf_counter() - started) * 1000)
        bodies.add(answer["body"])
        if call == RESIDENT_AFTER:
            figures["peak_kib"] = peak_kib()
    figures["bodies"] = list(bodies)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


def peak_kib():
    # Not ru_maxrss: that one survives exec, and starts at what the parent had.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
