"""ministack, which stands in for DynamoDB: a process of its own, in its own virtual environment."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import urlopen

from measure import DidNotRun

HYPERCORN = Path(__file__).parents[1] / ".venv-ministack/bin/hypercorn"
ENVIRONMENT = {"SERVICES": "dynamodb", "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "WARNING"}
"""All it gets to see: without the second variable it listens on 0.0.0.0 as well."""

START_S = 30


@contextmanager
def ministack() -> Iterator[str]:
    """Run it until the block ends; yields its endpoint URL. Raises DidNotRun.

    It inherits a socket that listens already, so the first request waits for its start.
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
        listening.close()  # or requests would wait for ever for one that has died
        with process:
            try:
                _check(url, log)
                yield url
            finally:
                process.kill()  # there is nothing it would have to save


def _check(url: str, log: IO[bytes]) -> None:
    try:
        with urlopen(f"{url}/_ministack/health", timeout=START_S) as answer:
            services = json.load(answer)["services"]
    except OSError as error:
        log.seek(0)
        said = log.read().decode(errors="replace")
        raise DidNotRun(f"ministack did not start ({error}):\n{said[-2000:]}") from error
    if services != {"dynamodb": "available"}:
        raise DidNotRun(f"ministack runs {services}")
