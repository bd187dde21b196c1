"""Measure the first hour of a new user: seconds, commands and edits to the first answers (`make first-hour`).

A clean clone and an empty folder, with the package cache of this computer. The commands are those of the
README. It also measures the lines of template.yaml that an application takes when it grows, and ends with an
error if a figure is above its limit. Run it twice if the cache is empty.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from threading import Thread
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSION = "2026-07-28"
DEADLINE_S = 600

MAX_STEPS, MAX_SECONDS = 12, 180
"""From an empty folder to an own tool with its test: commands and edits, and seconds of the computer."""

OWN_TOOL = ("application: an own tool", "application: the tool is called")

TEXT = {"text": "stop and ask the user"}
EDIT = ("Count words or characters?", "What should be counted?")
"""The reader's edit: a text in the source of the new tool, and its replacement."""

TEMPERATURE_C = 21.5
"""What the weather service of this computer answers."""


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
        rows = [*in_a_checkout(home), *in_an_own_project(home), *growth(home)]
        lines = [*figures(home)]
    print("| from there to | commands | edits | seconds |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.step} | {row.commands} | {row.edits} | {row.seconds:.0f} |")
    print("\n| lines of template.yaml | measured | at most |\n|---|---|---|")
    for step, measured, limit in lines:
        print(f"| {step} | {measured} | {limit} |")
    cpus, load = os.cpu_count(), os.getloadavg()[0]
    print(f"\nPython {sys.version_info.major}.{sys.version_info.minor}, {cpus} CPUs, load {load:.1f}")
    check(rows, lines)


def in_a_checkout(home: Path) -> Iterator[Row]:
    """Measure from a clean clone: the examples, and a tool that is added to them."""
    clone = home / "mcp-roundtrip"
    run(f"git clone --quiet '{ROOT}' '{clone}'", home)
    began = time.monotonic()
    with serving(clone) as url:
        answer(url, "get_weather", {"location": "Hyderabad"})
        yield Row("clone: the first answered question", 1, 0, time.monotonic() - began)
        began = time.monotonic()
        run("make new-function NAME=count_text", clone)
        answer(url, "count_text", TEXT)
        edit(clone / "functions/count_text/app.py")
        answer(url, "count_text", TEXT, question=EDIT[1])
        yield Row("clone: the first own tool", 1, 1, time.monotonic() - began)


def in_an_own_project(home: Path) -> Iterator[Row]:
    """Measure from an empty folder to a tool that asks, becomes a task and calls an API, with its test.

    The commands and the edits are those of the README and of docs/guides/your-own-project.md.
    """
    clone, application = home / "mcp-roundtrip", home / "shop"
    guide = (clone / "docs/guides/your-own-project.md").read_text("utf-8")
    readme = (clone / "README.md").read_text("utf-8")
    [new] = re.findall(r"^ {4}(\S+mcp-roundtrip new \S+)", readme, re.MULTILINE)
    [new_tool] = re.findall(r"make new-tool NAME=\w+ TASKS=1", guide)
    name = re.findall(r"NAME=(\w+)", new_tool)[0]
    began = time.monotonic()
    run(new, clone)
    run(new_tool, application)
    source, of_source = code_blocks(guide)
    (application / f"functions/server/{name}.py").write_text(source, "utf-8")
    (application / f"tests/test_{name}.py").write_text(of_source, "utf-8")
    run("make test", application)
    yield Row(f"{OWN_TOOL[0]}: asks, becomes a task, calls an API; its test", 4, 2, seconds_since(began))
    began = time.monotonic()
    with weather_service() as service, serving(application, f"VARIABLES=WEATHER_API_URL={service}") as url:
        assert answer(url, name, {})["content"][0]["text"] == f"{TEMPERATURE_C} °C in Oslo."
        yield Row("application: the tool is called", 2, 0, seconds_since(began))


def growth(home: Path) -> Iterator[Row]:
    """Measure how long the steps of docs/guides/your-own-project.md take, each with the tests."""
    application = home / "shop"
    began = time.monotonic()
    run("make new-tool NAME=count_text && make test", application)
    yield Row("application: a second tool", 2, 0, seconds_since(began))
    began = time.monotonic()
    run("make new-function NAME=translate && make test", application)
    yield Row("application: a second function, and the front door", 2, 0, seconds_since(began))


def figures(home: Path) -> Iterator[tuple[str, int, int]]:
    """Yield what a new application and its growth take in template.yaml, and the limits."""
    with TemporaryDirectory() as folder:
        application = Path(folder) / "orders"
        tools = f"'{home}/mcp-roundtrip/.venv/bin/mcp-roundtrip'"
        run(f"{tools} new '{application}'", home)
        template = application / "template.yaml"
        lines = lines_of(template)
        yield "template.yaml of a new application", lines, 100
        for step, command, limit in (
            ("a further tool in the same function", "new-tool one_more", 0),
            ("the first tool with tasks in it: the worker", "new-tool first_task --tasks", 85),
            ("each further tool with tasks in it", "new-tool second_task --tasks", 0),
            ("the second function, with the front door", "new-function second", 60),
            ("a further function with its role", "new-function third", 30),
            ("a further function with tasks", "new-function fourth --tasks", 85),
        ):
            run(f"{tools} {command}", application)
            added, lines = lines_of(template) - lines, lines_of(template)
            yield step, added, limit


def check(rows: Sequence[Row], lines: Iterable[tuple[str, int, int]]) -> None:
    """End with an error if a figure is above its limit."""
    own = [row for row in rows if row.step.startswith(("clone: the first answered", *OWN_TOOL))]
    steps, seconds = sum(row.commands + row.edits for row in own), sum(row.seconds for row in own)
    print(f"\nEmpty folder to an own tool with its test: {steps + 1} commands and edits, {seconds:.0f} s")
    exceeded = [step for step, measured, limit in lines if measured > limit]
    if steps + 1 > MAX_STEPS or seconds > MAX_SECONDS or exceeded:
        raise SystemExit(f"above the limit: {', '.join(exceeded) or f'{MAX_STEPS} steps, {MAX_SECONDS} s'}")


def code_blocks(text: str) -> list[str]:
    """Return the blocks of Python of a page."""
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [dedent(block) for _, block in blocks]


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def seconds_since(began: float) -> float:
    return time.monotonic() - began


@contextmanager
def weather_service() -> Iterator[str]:
    """Serve one temperature for every place; yield the URL."""

    class Weather(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"current": {"temperature_2m": TEMPERATURE_C}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Weather) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


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
def serving(folder: Path, *variables: str) -> Iterator[str]:
    """Run `make run`; yield the URL of its endpoint at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        process = subprocess.Popen(
            ["make", "run", f"PORT={port}", *variables],
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


def answer(url: str, tool: str, arguments: Mapping[str, Any], question: str | None = None) -> dict[str, Any]:
    """Call a tool until it asks (this `question`), answer, and return its result."""
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
    return result


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
