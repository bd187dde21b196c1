"""`make run DEBUG=1`, at a terminal."""

import os
import pty
import re
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from support.sam_applications import http, rpc

TEMPLATE = """
    Globals:
      Function:
        Handler: app.handler
        Timeout: 1
        Environment: {Variables: {MCP_AUTH_MODE: none}}
    Resources:
      Door:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/front_door
          Environment: {Variables: {MCP_OWNERS: !Sub '{"sum": "${Sum.Arn}"}', POWERTOOLS_SERVICE_NAME: door}}
          Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
      Sum:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/sum
          Environment: {Variables: {POWERTOOLS_SERVICE_NAME: sum, LOG_LEVEL: INFO}}
      Plain:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/plain
          Events: {E: {Type: HttpApi, Properties: {Path: "/plain/look", Method: GET}}}
    """
SOURCES = {
    "functions/front_door/app.py": """
        from pathlib import Path
        from mcp_roundtrip import FrontDoor

        handler = FrontDoor("all", Path(__file__).with_name("catalog.json")).lambda_handler
        """,
    "functions/front_door/catalog.json": '{"tools": []}',
    "functions/sum/parts.py": "PARTS = [20, 22]\n",
    "functions/sum/app.py": """
        import logging
        from mcp_roundtrip import Context, Server
        from parts import PARTS

        server = Server("sum")

        @server.tool
        def add(ctx: Context) -> int:
            \"\"\"Add the parts.\"\"\"
            total = sum(PARTS)
            breakpoint()
            logging.info("the total is %d", total)
            logging.getLogger(__name__).debug("too much detail")
            assert ctx.remaining_ms > 600_000
            return total

        handler = server.lambda_handler
        """,
    "functions/plain/app.py": """
        def handler(event, context):
            return {"name": context.function_name}
        """,
}


class Terminal:
    """A pseudo-terminal in which a program runs."""

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
    command = [
        sys.executable,
        "-m",
        "mcp_roundtrip_tools.run",
        "--template",
        str(template),
        "--port",
        "0",
        *arguments,
    ]
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


def test_a_breakpoint_in_a_tool_stops_at_the_terminal(template):

    with at_a_terminal(template, "--debug") as terminal, ThreadPoolExecutor() as clients:
        url = terminal.expect(r"http://127.0.0.1:\d+/mcp")[0]
        call = clients.submit(rpc, url, "tools/call", name="add", arguments={})
        terminal.expect(r"\(Pdb\) ")
        terminal.type("p total, PARTS")
        terminal.expect(r"\(42, \[20, 22\]\)")
        terminal.expect(r"\(Pdb\) ")
        other = clients.submit(http, url.replace("/mcp", "/plain/look"))
        terminal.type("total = 43")
        terminal.expect(r"\(Pdb\) ")
        terminal.type("continue")
        assert call.result(60).json()["result"]["structuredContent"] == 43
        assert other.result(60).json()["name"] == "Plain"
        terminal.expect("the total is 43", r"tools/call +add +Sum-1")  # the line of a fast call comes first
