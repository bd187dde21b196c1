"""dynalite, a third-party DynamoDB in a process of Node.js, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixtures. Its tests are skipped if
`make test` found no Node.js to install it with.

Differences from AWS that concern this project (4.0.0): a failed condition is returned without
the item, also with ReturnValuesOnConditionCheckFailure; sizes of text are counted in UTF-16 code units
instead of bytes; TransactWriteItems and UpdateTimeToLive are not implemented.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from support import dynamodb_clients, skips

DYNALITE = Path(__file__).parents[2] / ".cache/dynalite/node_modules/dynalite"

PROGRAM = "require(process.argv[1])({createTableMs: 0}).listen({fd: Number(process.argv[2])})"
"""dynalite's own command can neither take a socket nor choose a free port. Tables are in memory."""

START_S = 30
"""Starting takes 0.25 s, but longer on a busy computer."""


@contextmanager
def running(node: str, log: Path) -> Iterator[str]:
    """Run dynalite until the block ends and yield its endpoint URL. Its output goes to `log`.

    It inherits a listening socket, so that the first request waits for the start.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening, log.open("wb") as output:
        descriptor = listening.fileno()
        process = subprocess.Popen(
            [node, "--eval", PROGRAM, DYNALITE, str(descriptor)],
            pass_fds=[descriptor],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with process:
        try:
            yield url
        finally:
            process.kill()  # it has no data to save


@pytest.fixture(scope="session")
def dynalite_dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a client of dynalite, which runs for the whole test run."""
    node = shutil.which("node")
    if node is None or not DYNALITE.exists():
        skips.skip(skips.NODE, "dynalite")
    log = tmp_path_factory.mktemp("dynalite") / "log"
    with running(node, log) as url:
        connected = dynamodb_clients.client(url, timeout_s=START_S)
        try:
            connected.list_tables()
        except BotoCoreError as error:
            raise AssertionError(f"dynalite did not start: {log.read_text()}") from error
        yield connected
        connected.close()
