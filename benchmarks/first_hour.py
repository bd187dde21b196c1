"""Measure the first hour of a new user: seconds, commands and edits to the first answers (`make first-hour`).

A clean clone and an empty folder, with the package cache of this computer. The commands are those of the
README and of docs/guides/your-own-project.md. Run it twice if the cache is empty.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSION = "2026-07-28"
DEADLINE_S = 600

TEXT = {"text": "stop and ask the user"}
EDIT = ("Count words or characters?", "What should be counted?")
"""The reader's edit: a text in the source of the new tool, and its replacement."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a reader did, and the seconds that the computer took."""

    step: str
    commands: int
    edits: int
    seconds: float


def main() -> None:
    with TemporaryDirectory(prefix="first-hour-") as folder:
        home = Path(folder)
        rows = [*in_a_checkout(home), *in_an_own_project(home)]
    print("| from there to | commands | edits | seconds |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.step} | {row.commands} | {row.edits} | {row.seconds:.0f} |")
    cpus, load = os.cpu_count(), os.getloadavg()[0]
    print(f"\nPython {sys.version_info.major}.{sys.version_info.minor}, {cpus} CPUs, load {load:.1f}")


def in_a_checkout(home: Path) -> Iterator[Row]:
    """Measure from a clean clone: the examples, and a tool that is added to them."""
    clone = home / "mcp-roundtrip"
    run(f"git clone --quiet '{ROOT}' '{clone}'", home)
    began = time.monotonic()
    with serving(clone) as url:
        answer(url, "get_weather", {"location": "Hyderabad"})
        yield Row("clone: the first answered question", 1, 0, time.monotonic() - began)
        began = time.monotonic()
        run("make new-tool NAME=count_text", clone)
        answer(url, "count_text", TEXT)
        edit(clone / "functions/count_text/app.py")
        answer(url, "count_text", TEXT, question=EDIT[1])
        yield Row("clone: the first own tool", 1, 1, time.monotonic() - began)


def in_an_own_project(home: Path) -> Iterator[Row]:
    """Measure from an empty folder and a clone: a new application, a tool of its own, and a test of it."""
    began = time.monotonic()
    run("python3 -m pip wheel --quiet --no-deps --wheel-dir wheels ./mcp-roundtrip", home)
    run("python3 -m venv tools", home)
    run('tools/bin/pip install --quiet "$(echo wheels/mcp_roundtrip-*.whl)[local]"', home)
    run("tools/bin/mcp-roundtrip new shop", home)
    application = home / "shop"
    with serving(application) as url:
        answer(url, "order_status", {})
        yield Row("empty folder: the first answered question", 5, 0, time.monotonic() - began)
        began = time.monotonic()
        run("make new-tool NAME=count_text", application)
        edit(application / "src/count_text.py")
        answer(url, "count_text", TEXT, question=EDIT[1])
        yield Row("application: the first own tool", 1, 1, time.monotonic() - began)
    began = time.monotonic()
    run("make test", application)
    yield Row("application: a test of it", 1, 0, time.monotonic() - began)


def edit(path: Path) -> None:
    """Change the question of a new tool, as its author would."""
    text = path.read_text("utf-8")
    assert EDIT[0] in text, path
    path.write_text(text.replace(*EDIT), "utf-8")


def run(command: str, folder: Path) -> None:
    """Run a shell command that must succeed, with `python3` as this interpreter."""
    done = subprocess.run(command, shell=True, cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")


def environment() -> dict[str, str]:
    """Return the environment without what the make of this command has set."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return {
        **inherited,
        "PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run `make run`; yield the URL of its endpoint at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        process = subprocess.Popen(
            ["make", "run", f"PORT={port}"],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()


def answer(url: str, tool: str, arguments: Mapping[str, Any], question: str | None = None) -> None:
    """Call a tool until it asks (this `question`), answer, and expect a result."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        asked = call(url, tool, arguments)
        texts = [each["params"]["message"] for each in asked.get("inputRequests", {}).values()]
        if texts and question in (None, *texts):
            break
        if time.monotonic() > deadline:
            raise SystemExit(f"{tool} did not ask within {DEADLINE_S} s: {asked}")
        time.sleep(0.2)
    responses = {key: accept(each["params"]) for key, each in asked["inputRequests"].items()}
    result = call(url, tool, arguments, inputResponses=responses, requestState=asked["requestState"])
    if result.get("resultType") != "complete" or result.get("isError"):
        raise SystemExit(f"{tool} did not return a result: {result}")


def accept(params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a form: the first choice of each field."""
    fields = params["requestedSchema"]["properties"].items()
    return {"action": "accept", "content": {name: first(schema) for name, schema in fields}}


def first(schema: Mapping[str, Any]) -> Any:
    """Return the first choice of a field."""
    return schema["enum"][0] if "enum" in schema else schema["oneOf"][0]["const"]


def call(url: str, tool: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Send a round of a call; return its result, or nothing while no server answers it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "first-hour", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    params = {"name": tool, "arguments": arguments, **more, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
            message = json.load(response)
    except (OSError, urllib.error.HTTPError):
        return {}
    result: dict[str, Any] = message.get("result", {})
    return result


if __name__ == "__main__":
    main()
