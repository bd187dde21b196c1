"""A Docker network in which a container leads connections to servers of this computer."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.sam_local.relay import LISTENING, Relay, connect_here
from mcp_roundtrip_tools.template.model import TemplateError

STOP_S: Final = 10
"""Longest time in seconds until the container has ended; otherwise it is killed."""

_RELAY: Final = Path(__file__).with_name("relay.py")


@contextmanager
def network(name: str, image: str, ports: Sequence[int]) -> Iterator[None]:
    """Create a network until the block ends, in which the host `name` serves these ports of 127.0.0.1.

    `image` has python3; Docker pulls it if it is missing. Raises TemplateError if Docker cannot be used.
    """
    is_created = False
    try:
        _docker("network", "create", name)
        is_created = True
        process = _start(name, image, ports)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.read(len(LISTENING)) != LISTENING:
                raise TemplateError(f"the container {name} of {image} did not start: see Docker's message")
            relay = Relay(process.stdout, process.stdin, connect_here)  # type: ignore[arg-type]  # IO[bytes]
            threading.Thread(target=relay.run, daemon=True).start()
            yield
        finally:
            _stop(process)
    finally:
        try:
            _docker("network", "rm", name)
        except TemplateError as error:  # such as a container of `sam local` that is still in it
            if is_created:
                print(error, file=sys.stderr)


def _start(name: str, image: str, ports: Sequence[int]) -> subprocess.Popen[bytes]:
    program = ["python3", image, "-c", _RELAY.read_text("utf-8"), *map(str, ports)]
    return subprocess.Popen(  # noqa: S603 - the command of the person's own PATH
        ["docker", "run", "--rm", "-i", "--name", name, "--network", name, "--entrypoint", *program],  # noqa: S607
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches this process, which then ends the container
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the container: its program ends with its standard input."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _docker(*arguments: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the command of the person's own PATH
            ["docker", *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # Ctrl-C reaches this process only, as below
        )
    except FileNotFoundError:
        raise TemplateError("docker is not on PATH: install Docker, or use `mcp-roundtrip invoke`") from None
    if done.returncode != 0:
        reason = done.stderr.strip().partition("\n")[0]
        raise TemplateError(f"`docker {' '.join(arguments)}` failed: {reason}")
