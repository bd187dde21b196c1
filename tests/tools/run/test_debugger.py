import os
import pty
import re
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module

from mcp_roundtrip_tools.run.execution.debugged_runtime import LIMITS
from support.sam_applications import ONE_SERVER, rpc

TEMPLATE = ONE_SERVER.replace("Timeout: 20", "Timeout: 1").replace("none}", "none, LOG_LEVEL: INFO}")
SOURCES = {
    "f/parts.py": "PARTS = [20, 22]\n",
    "f/app.py": """
        import logging
        from mcp_roundtrip import Context, Server
        from parts import PARTS

        server = Server("sum")

        @server.tool
        def add(ctx: Context) -> int:
            total = sum(PARTS)
            breakpoint()
            logging.info("the total is %d", total)
            logging.getLogger(__name__).debug("too much detail")
            assert ctx.remaining_ms > 600_000
            return total

        handler = server.lambda_handler
        """,
}


class Terminal:
    def __init__(self, descriptor):
        self._descriptor = descriptor
        self.shown = ""

    def expect(self, *patterns):
        """Wait until the program prints the patterns, in any order, after the previous ones."""
        while None in (found := [re.search(pattern, self.shown) for pattern in patterns]):
            readable, _, _ = select.select([self._descriptor], [], [], 60)
            assert readable, f"{patterns} did not come: {self.shown}"
            self.shown += os.read(self._descriptor, 65_536).decode("utf-8", "replace")
        last = max((each for each in found if each is not None), key=re.Match.end)
        self.shown = self.shown[last.end() :]
        return last

    def type(self, line):
        os.write(self._descriptor, f"{line}\n".encode())


@contextmanager
def at_a_terminal(template, *arguments):
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "mcp_roundtrip_tools", "run"]
    command = [*program, "--template", str(template), "--port=0", *arguments]
    variables = {**os.environ, "TERM": "dumb", "PYTHON_COLORS": "0"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.terminate()
        assert process.wait(20) == 0
        os.close(ours)


def test_the_limits_that_a_debugger_lifts_are_those_of_the_layer():
    for module, (name, _) in LIMITS.items():
        assert hasattr(import_module(module), name)


def test_a_breakpoint_in_a_tool_stops_at_the_terminal(template):
    with at_a_terminal(template, "--debug") as terminal, ThreadPoolExecutor() as clients:
        url = terminal.expect(r"http://127.0.0.1:\d+/")[0]
        call = clients.submit(rpc, url, "tools/call", name="add", arguments={})
        terminal.expect(r"\(Pdb\) ")
        terminal.type("p total, PARTS")
        terminal.expect(r"\(42, \[20, 22\]\)")
        terminal.expect(r"\(Pdb\) ")
        terminal.type("total = 43")
        terminal.expect(r"\(Pdb\) ")
        terminal.type("continue")
        assert call.result(60).json()["result"]["structuredContent"] == 43
        terminal.expect("the total is 43", r"tools/call +add +F-1")
        assert "too much detail" not in terminal.shown
