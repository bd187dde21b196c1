"""Forks a process for each invocation: `python audited_process.py effects`, then one JSON object per line.

`{"event": …, "dies": "before" | "after" | null}` runs an invocation, which kills itself before or after the
effect of its tool. The answer is one line: the response, or null if the process was killed. The log stream of
a process is its id, so that the server of the log can kill it.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

from mcp_roundtrip import Context, Server

server = Server("audited")
dies: list[str | None] = [None]


@server.tool
def charge(ctx: Context) -> str:
    def effect() -> None:
        if dies[0] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with Path(sys.argv[1]).open("a") as effects:
            effects.write(f"{os.getpid()}\n")
        if dies[0] == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    ctx.step("charge", effect)
    return "charged"


def run(given: dict[str, object], answer: int) -> None:
    """Run one invocation in this process, and write its response to the pipe."""
    os.environ["AWS_LAMBDA_LOG_STREAM_NAME"] = str(os.getpid())
    dies[0] = given["dies"] if isinstance(given["dies"], str) else None
    context = SimpleNamespace(aws_request_id="request", get_remaining_time_in_millis=lambda: 20_000)
    response = server.lambda_handler(given["event"], context)
    os.write(answer, json.dumps(response).encode())


def main() -> None:
    for line in sys.stdin:
        receiving, sending = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(receiving)
            os.dup2(2, 1)  # its log
            run(json.loads(line), sending)
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving, "rb") as pipe:
            response = pipe.read()
        os.waitpid(pid, 0)
        print(json.dumps({"pid": pid, "response": json.loads(response) if response else None}), flush=True)


if __name__ == "__main__":
    main()
