"""What audit records prove when processes are killed: real processes, and a log over HTTP."""

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from support.audit_lines import collapse
from support.audited_function import charge
from support.processes import WITHIN_S, new_process

GROUP = "shop-audit"

Fault = Callable[[str, Callable[[], Response]], Response]
"""Takes what a request is for and what answers it, and answers in its place."""


@dataclass
class AuditedFunction:
    """A function with an effect, and the log of its processes. `fault` changes the answers of the log."""

    effects_path: Path
    logs: FakeLogs = field(default_factory=lambda: FakeLogs(lambda group: group == GROUP))
    fault: Fault = lambda name, answer: answer()
    url: str = ""
    pid: int = 0
    requests: list[str] = field(default_factory=list)

    def respond(self, request: Request) -> Response:
        given = json.loads(request.body)
        self.pid = int(given["logStreamName"])
        lines = given.get("logEvents", [])
        name = json.loads(lines[0]["message"])["phase"] if lines else "stream"
        self.requests.append(name)
        return self.fault(name, lambda: self.logs.respond(request))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def records(self) -> list[dict[str, Any]]:
        return collapse([json.loads(line) for line in self.logs.lines(GROUP)])

    def effects(self) -> int:
        return len(self.effects_path.read_text().splitlines()) if self.effects_path.exists() else 0

    def invoke(self, dies: str | None = None) -> Any:
        """Run one invocation in a new process; return its response, or None if the process was killed."""
        variables = {
            "MCP_AUTH_MODE": "none",
            "MCP_AUDIT": f"principal:{GROUP}",
            "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": self.url,
            "AWS_REGION": "eu-west-1",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
        }
        with new_process(variables) as process:
            try:
                return process.submit(charge, self.effects_path, dies).result(WITHIN_S)
            except BrokenProcessPool:
                return None


@pytest.fixture
def deployment(tmp_path):
    function = AuditedFunction(tmp_path / "effects")
    with closing(HttpServer(function.respond).start()) as log:
        function.url = log.url
        yield function


def text_of(response):
    return str(response["result"]["content"][0]["text"])


def test_a_call_makes_two_requests_besides_the_one_that_creates_the_stream(deployment):
    assert text_of(deployment.invoke()) == "charged"
    assert deployment.requests == ["stream", "begun", "ended"]
    assert [record["outcome"] for record in deployment.records()] == ["complete"]


KILLS = {
    "before the stream is created": ("stream", False, 0, []),
    "after the stream is created": ("stream", True, 0, []),
    "before the first line is stored": ("begun", False, 0, []),
    "after the first line is stored": ("begun", True, 0, ["unknown"]),
    "before the last line is stored": ("ended", False, 1, ["unknown"]),
    "after the last line is stored": ("ended", True, 1, ["complete"]),
}


@pytest.mark.parametrize(("at", "is_stored", "effects", "outcomes"), KILLS.values(), ids=KILLS)
def test_a_process_that_is_killed_leaves_at_most_one_record_and_no_effect_without_one(
    deployment, at, is_stored, effects, outcomes
):
    def fault(name: str, answer: Callable[[], Response]) -> Response:
        if name != at:
            return answer()
        response = answer() if is_stored else json_response(500, {})
        deployment.kill()
        return response

    deployment.fault = fault
    assert deployment.invoke() is None
    assert deployment.effects() == effects
    assert [record["outcome"] for record in deployment.records()] == outcomes


@pytest.mark.parametrize(("dies", "effects"), [("before", 0), ("after", 1)])
def test_a_process_that_is_killed_beside_its_effect_leaves_one_record_with_an_unknown_outcome(
    deployment, dies, effects
):
    assert deployment.invoke(dies) is None
    assert deployment.effects() == effects
    [record] = deployment.records()
    assert (record["outcome"], record["feature"]) == ("unknown", "charge")


def test_a_line_whose_response_was_lost_is_stored_twice_and_is_one_record(deployment):
    lost = []

    def fault(name: str, answer: Callable[[], Response]) -> Response:
        response = answer()
        if name in lost:
            return response
        lost.append(name)
        return json_response(503, {})

    deployment.fault = fault
    assert text_of(deployment.invoke()) == "charged"
    assert len(deployment.logs.lines(GROUP)) == 4
    assert [record["outcome"] for record in deployment.records()] == ["complete"]
    assert deployment.effects() == 1


def test_nothing_runs_if_the_first_line_cannot_be_stored(deployment):
    deployment.logs = FakeLogs(lambda group: False)
    response = deployment.invoke()
    assert response["error"]["code"] == -32603
    assert (deployment.effects(), deployment.records()) == (0, [])
