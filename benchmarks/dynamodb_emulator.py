"""Run ministack, which emulates DynamoDB, in a separate process and virtual environment."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import urlopen

from measure import BenchmarkError

HYPERCORN = Path(__file__).parents[1] / ".venv-ministack/bin/hypercorn"
ENVIRONMENT = {"SERVICES": "dynamodb", "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "WARNING"}
"""The complete environment of ministack. Without the second variable it also listens on 0.0.0.0."""

START_S = 30


@contextmanager
def ministack() -> Iterator[str]:
    """Run ministack until the block ends, and yield its endpoint URL. Raise BenchmarkError if it fails.

    It inherits a listening socket, so the first request waits until ministack has started.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [HYPERCORN, "--workers", "0", "--bind", f"fd://{listening.fileno()}", "ministack.app:app"],
            pass_fds=[listening.fileno()],
            env=ENVIRONMENT,
            stdout=log,
            stderr=log,
        )
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.close()  # otherwise requests would block if ministack has exited
        with process:
            try:
                _wait_until_ready(url, log)
                yield url
            finally:
                process.kill()  # it has no state to save


def _wait_until_ready(url: str, log: IO[bytes]) -> None:
    try:
        with urlopen(f"{url}/_ministack/health", timeout=START_S) as response:
            services = json.load(response)["services"]
    except OSError as error:
        log.seek(0)
        output = log.read().decode(errors="replace")
        raise BenchmarkError(f"ministack did not start ({error}):\n{output[-2000:]}") from error
    if services != {"dynamodb": "available"}:
        raise BenchmarkError(f"ministack runs {services}")
