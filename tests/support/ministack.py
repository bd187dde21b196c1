"""ministack, a third-party emulator of AWS services, in its own virtual environment and process.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixtures, and all of them together
have one process.

What it does otherwise than AWS, of what concerns this project (1.5.33): Sign and Verify take more than 4,096
bytes, and no DryRun; GetPublicKey hands out the key of a withdrawn KMS key; a key pending deletion can be
enabled and disabled; a P-256 key can be made for encryption; key administration and CreateAlias take an alias
for a key. Key policies count for nothing. ADD is exact to 28 digits only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from mypy_boto3_kms import KMSClient

from support import dynamodb_clients, kms_clients

HYPERCORN = Path(__file__).parents[2] / ".venv-ministack/bin/hypercorn"

SERVICES = ("dynamodb", "kms", "sqs")

APP = "ministack.app:app"
ONLY_SERVICES = {"SERVICES": ",".join(SERVICES)}

ENVIRONMENT = {"IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "WARNING"}
"""All it gets to see: no second listener (on 0.0.0.0:8883), and, by default, nothing stored."""

START_S = 30
"""The longest it may take to start: a quarter of a second, but for a busy computer and without bytecode."""


@contextmanager
def running(log: Path, app: str = APP, variables: Mapping[str, str] = ONLY_SERVICES) -> Iterator[str]:
    """Run ministack until the block ends and yield its endpoint URL; `log` takes what it prints.

    It inherits a socket that listens already. So it can bind to nothing else, no port can be lost to another
    process, and the first request waits for the start without asking again and again.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening, log.open("wb") as output:
        descriptor, port = listening.fileno(), listening.getsockname()[1]
        process = subprocess.Popen(
            [HYPERCORN, "--workers", "0", "--bind", f"fd://{descriptor}", app],
            pass_fds=[descriptor],
            env={**ENVIRONMENT, "GATEWAY_PORT": str(port), **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the functions it runs are killed with it
        )
        url = f"http://127.0.0.1:{port}"
    with process:
        try:
            _wait_until_it_answers(url, log)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # there is nothing it would have to save


def _wait_until_it_answers(url: str, log: Path) -> None:
    try:
        services = _request(f"{url}/_ministack/health")["services"]
    except OSError as error:
        raise AssertionError(f"ministack did not start: {log.read_text()}") from error
    assert {services.get(name) for name in SERVICES} == {"available"}


def _request(url: str, method: str = "GET") -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=START_S) as response:
        return json.load(response)


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint URL of the test run's ministack."""
    assert HYPERCORN.exists(), f"{HYPERCORN} does not exist: `make test` installs it"
    with running(tmp_path_factory.mktemp("ministack") / "log") as url:
        yield url


@pytest.fixture
def ministack_kms(ministack: str) -> Iterator[KMSClient]:
    """A client of ministack's KMS, without any keys."""
    _request(f"{ministack}/_ministack/reset", "POST")
    connected = kms_clients.client(ministack)
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def ministack_dynamodb(ministack: str) -> Iterator[DynamoDBClient]:
    """A client of ministack's DynamoDB; tables last for a test."""
    connected = dynamodb_clients.client(ministack)
    yield connected
    connected.close()
