"""Import one implementation and time its invocations: `invocations.py MODULE CALLS PIPE`, the event on stdin.

The import is part of the first measurement. Therefore this script imports only modules that the interpreter
has loaded already. Events and figures are marshalled, because importing json here would speed up every
first response.
"""

import marshal
import os
import sys
from time import perf_counter

RESIDENT_AFTER = 50
"""Calls after which the peak memory is read."""


class LambdaContext:
    """The members of the Lambda context object that handlers use."""

    aws_request_id = "bench"
    function_name = "bench"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:bench"

    def get_remaining_time_in_millis(self):
        return 29_000


def main(module, calls, pipe):
    event, context = marshal.load(sys.stdin.buffer), LambdaContext()
    started = perf_counter()
    handler = __import__(f"implementations.{module}", fromlist=["handler"]).handler
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
    # Not ru_maxrss: exec does not reset it, so it starts at the value of the parent process.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
