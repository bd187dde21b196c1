"""MCP clients as their users install them. Those of one Python environment share a process.

A test talks to it in JSON lines (tests/clients/drivers/lines.py).
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support import skips
from support.client_pins import pinned_versions
from support.interpreters import answering
from support.project import ROOT

FOLDER = ROOT / "tests/clients"
DRIVERS = FOLDER / "drivers"

Answer = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""An `ElicitResult`, or a function that makes one of the parameters of the question."""


@dataclass(frozen=True)
class RealClient:
    """A row of matrix.toml, which describes the members."""

    id: str
    name: str
    package: str
    environment: str
    driver: str
    opens_with: str
    sends_name: str
    asks: Sequence[str]
    state_only_rounds: bool
    tasks: bool
    max_rounds: int | None = None
    stack: Sequence[str] = ()
    session_per_call: bool = False
    initialize: bool = False
    profiles: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def version(self) -> str:
        """The version that is pinned and tested."""
        return pinned_versions(self.environment)[self.package]

    def command(self) -> list[str]:
        """Return the command of its driver; skip the test if there is no Node.js for it."""
        folder = ROOT / self.environment
        if self.driver.endswith(".py"):
            python = folder / "bin/python"
            assert python.exists(), f"{self.environment} is missing: run `make test` once, which installs it"
            return [str(python), str(DRIVERS / "serve.py")]
        node = skips.find_node(self.name, folder / "node_modules" / self.package)
        drivers = folder / "drivers"  # Node.js looks for packages in the folders above a module
        if drivers.resolve() != DRIVERS:  # also if it is a link to those of another copy of the project
            link = folder / f"drivers-{os.getpid()}"
            link.symlink_to(DRIVERS)
            link.replace(drivers)
        return [node, "--preserve-symlinks", "--preserve-symlinks-main", str(drivers / self.driver)]


def real_clients() -> list[RealClient]:
    """Return the rows of matrix.toml."""
    rows = tomllib.loads((FOLDER / "matrix.toml").read_text("utf-8"))["client"]
    return [RealClient(**row) for row in rows]


@dataclass(frozen=True)
class Called:
    """How a call ended; `failure` is an error of the protocol or of the client, in place of a result."""

    asked: tuple[Mapping[str, Any], ...]
    text: str = ""
    structured: Any = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    failure: Mapping[str, Any] | None = None

    @property
    def value(self) -> Any:
        """The structured content, or the JSON of the text where the client gives its model only that."""
        assert not self.is_error, self
        assert self.failure is None, self
        return json.loads(self.text) if self.structured is None else self.structured

    @property
    def error(self) -> str:
        """The message of the error that the call ended with."""
        if self.failure is not None:
            return str(self.failure["message"])
        assert self.is_error, self
        return self.text


class ClientProcess:
    """A client in its process: it connects as often as a test wants, to one server at a time."""

    def __init__(self, client: RealClient, exchange: Callable[[Any], Any]) -> None:
        self._exchange = exchange
        self._driver = Path(client.driver).stem

    @contextmanager
    def connected(
        self, url: str, *, asks: bool = True, tasks: bool = False, initialize: bool = False
    ) -> Iterator[None]:
        """Connect until the block ends: with a handler of questions, with tasks, opened by `initialize`."""
        options = {"url": url, "asks": asks, "tasks": tasks, "initialize": initialize}
        self.run("connect", {**options, "driver": self._driver})
        try:
            yield
        finally:
            self.run("close", {})

    def tools(self) -> list[dict[str, Any]]:
        return list(self.run("list", {}))

    def call(self, tool: str, arguments: Mapping[str, Any], *answers: Answer) -> Called:
        """Call a tool and answer its questions in their order; questions without an answer are cancelled."""
        message, asked = self._send("call", {"tool": tool, "arguments": arguments}, answers)
        if "failed" in message:
            return Called(asked, failure=message["failed"])
        return Called(asked, **message["done"])

    def run(self, command: str, given: Mapping[str, Any]) -> Any:
        message, _ = self._send(command, given)
        assert "done" in message, message
        return message["done"]

    def _send(
        self, command: str, given: Mapping[str, Any], answers: Sequence[Answer] = ()
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        message = self._exchange({command: given})
        asked: list[Mapping[str, Any]] = []
        remaining = list(answers)
        while "asked" in message:
            question = message["asked"]
            asked.append(question)
            answer = remaining.pop(0) if remaining else {"action": "cancel"}
            message = self._exchange(answer(question) if callable(answer) else answer)
        return message, tuple(asked)


@pytest.fixture(params=real_clients(), ids=lambda client: client.id)
def client(request: pytest.FixtureRequest) -> RealClient:
    """Each client of the matrix."""
    found: RealClient = request.param
    return found


@pytest.fixture(scope="module")
def process_of() -> Iterator[Callable[[RealClient], ClientProcess]]:
    """Return the process of a client. It lives until the end of the module: some take seconds to start."""
    with ExitStack() as stack:

        @cache
        def process(*command: str) -> Callable[[Any], Any]:
            return stack.enter_context(answering(*command))

        yield lambda client: ClientProcess(client, process(*client.command()))


@pytest.fixture
def process(client: RealClient, process_of: Callable[[RealClient], ClientProcess]) -> ClientProcess:
    return process_of(client)
