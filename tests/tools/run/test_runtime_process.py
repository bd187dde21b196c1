import json
import os
import sys
from contextlib import closing

import pytest

from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest, RuntimeApi
from mcp_roundtrip_tools.run.execution.runtime_process import (
    ProcessEnvironment,
    ProcessOutput,
    process_variables,
)
from mcp_roundtrip_tools.template.model import Function, FunctionFailed
from support.sam_applications import http, wait_until
from support.skips import LINUX

KEY_PREFIX = "arn:aws:kms:us-east-1:000000000000:key/"


def failure_of(running, function, do=""):
    with pytest.raises(FunctionFailed) as caught:
        running.app.invoke(function, {"do": do})
    return caught.value


def wait_for(running, text):
    """Wait until the output has a text. Another thread reads the output."""
    wait_until(lambda: any(text in line for line in running.log))


def test_a_function_runs_in_its_folder_with_its_layers_and_variables(running):
    answer = running.app.invoke("Echo", {"x": 1}, client_context={"custom": {"who": "Zoë"}})
    assert answer["event"] == {"x": 1}
    assert answer["cwd"] == str(running.folder / "echo")
    assert answer["layer"] == "from the layer"
    assert answer["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:Echo"
    assert answer["memory"] == "128"
    assert answer["custom"] == {"who": "Zoë"}
    assert 0 < answer["remaining_ms"] <= 5000
    assert answer["environment"]["STAGE"] == "test"
    assert answer["environment"]["KEY"].startswith(KEY_PREFIX)
    assert answer["environment"]["AWS_LAMBDA_FUNCTION_NAME"] == "Echo"
    assert answer["environment"]["AWS_ENDPOINT_URL"] == running.app.endpoints["AWS_ENDPOINT_URL"]
    assert answer["environment"]["AWS_EXECUTION_ENV"].startswith("AWS_Lambda_python3.")
    assert "PYTHONDONTWRITEBYTECODE" not in answer["environment"]


def test_an_exception_is_reported_and_the_process_continues(running):
    before = running.app.invoke("Odd", {"do": "pid"})["pid"]
    assert failure_of(running, "Odd", "raise").payload["errorType"] == "ValueError"
    assert failure_of(running, "Odd", "raise_long").payload["errorMessage"] == "x" * 300_000
    assert running.app.invoke("Odd", {"do": "pid"})["pid"] == before
    wait_for(running, "ValueError: a secret of the function")


@pytest.mark.parametrize(
    ("function", "do", "error", "text"),
    [
        ("Odd", "sleep", "Sandbox.Timedout", "1.00 seconds"),
        ("Odd", "exit", "Runtime.ExitError", "exit status 3"),
        ("Odd", "huge", "Function.ResponseSizeTooLarge", "6291556 bytes"),
        ("Broken", "", "Runtime.ImportModuleError", "'no_such_module'"),
        ("Leaves", "", "Runtime.ExitError", "exit status 7"),
    ],
)
def test_a_process_that_fails_is_reported_and_replaced(running, function, do, error, text):
    before = running.app.invoke("Odd", {"do": "pid"})["pid"]
    failed = failure_of(running, function, do)
    assert failed.payload["errorType"] == error
    assert text in failed.payload["errorMessage"]
    wait_for(running, text)
    assert (running.app.invoke("Odd", {"do": "pid"})["pid"] == before) is (function != "Odd")


DIES = """
import os

def handler(event, context):
    os.kill(os.getpid(), event)
"""
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason=f"{LINUX}: real-time signals")


@pytest.mark.parametrize(
    ("number", "name"), [(9, "SIGKILL"), pytest.param(40, "40", marks=ON_LINUX)], ids=["named", "real-time"]
)
def test_the_signal_that_ended_a_process_is_reported(number, name, tmp_path):
    (tmp_path / "app.py").write_text(DIES)
    function = Function("F", "app.handler", tmp_path, (), {}, 60, 128)
    variables = process_variables(function, {}, {})
    process = ProcessEnvironment(function, variables, python=sys.executable, log=lambda line: None)
    try:
        error = json.loads(process.invoke(InvokeRequest("F", str(number).encode())).payload)
    finally:
        process.stop()
    assert error["errorType"] == "Runtime.ExitError"
    assert error["errorMessage"].endswith(f"signal: {name}")


def test_a_long_line_is_passed_on_in_parts_while_it_is_printed():
    """A function that prints without end does not fill the memory of the run."""
    printed = list[str]()
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb", buffering=0) as process:
        output = ProcessOutput(pipe, printed.append)
        for _ in range(150):
            process.write(b"x" * 16 * 1024)
            output.drain()
        assert [len(line) for line in printed] == [65 * 16 * 1024] * 2
        process.write(b"y\nz\n")
        output.drain()
    assert [line.lstrip("x") for line in printed] == ["", "", "y", "z"]


def test_only_the_first_response_to_the_event_that_runs_is_accepted():
    with closing(RuntimeApi()) as api:
        api.pending.put((InvokeRequest("F", b"{}", request_id="id-1"), 1))
        runtime = f"http://{api.address}/2018-06-01/runtime/invocation"
        http(f"{runtime}/next")
        paths = ("id-2/response", "id-1/other", "id-1/response", "id-1/response")
        statuses = [http(f"{runtime}/{path}", method="POST", body=b"1").status for path in paths]
    assert statuses == [400, 404, 202, 400]
