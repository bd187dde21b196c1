"""A built function under AWS's own Runtime Interface Emulator, which ships inside aws-sam-cli.

The emulator runs awslambdaric, the runtime client that Lambda itself runs, as one execution environment.
`protection()` names the way in which the code is read-only:

- "mounts": in a separate mount namespace, where /var/task, /opt and /var/runtime are as on
  Lambda, and read-only;
- "permissions": if this computer permits no such namespace, in copies without write permission, which
  do not protect against root, in folders with other names.

Unlike Lambda, the emulator limits neither payloads nor memory.
"""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from support.lambda_runtime import Runtime
from support.sam_applications import http
from support.sam_build import SAM
from support.served_application import unused_ports

START_S = 30
INVOKE_S = 60

PATHS_ON_LAMBDA = ("/var/task", "/opt", "/var/runtime")

# Killing unshare kills all processes of the namespace.
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
MOUNTS = """
mount -t tmpfs none /var
for folder in /var/task /opt /var/runtime; do
    mkdir -p $folder
    mount --bind "$1" $folder
    mount -o remount,bind,ro $folder
    shift
done
cd /var/task
exec "$@"
"""


class InvocationFailed(Exception):
    """An invocation ended without a response. The message is the error that Lambda reports."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A built function: the folders for /var/task and /opt, the handler, and the runtime."""

    code: Path
    layer: Path
    handler: str
    runtime: Runtime

    @property
    def folders(self) -> tuple[Path, Path, Path]:
        return self.code, self.layer, self.runtime.packages


@dataclass(frozen=True, slots=True)
class Environment:
    """An execution environment that runs one invocation at a time."""

    url: str
    log: Path

    def invoke(self, event: Any) -> Any:
        """Return the response of the handler. Raises InvocationFailed."""
        response = http(self.url, method="POST", body=json.dumps(event).encode()).json()
        if isinstance(response, dict) and "errorType" in response:
            raise InvocationFailed(
                f"{response['errorType']}: {response['errorMessage']}\n{self.log.read_text()}"
            )
        return response


@contextmanager
def started(artefact: Artefact, variables: Mapping[str, str]) -> Iterator[Environment]:
    """Run a new execution environment with these variables until the block ends."""
    with tempfile.TemporaryDirectory(prefix="rie-") as scratch:
        log, (port, api_port) = Path(scratch) / "log", islice(unused_ports(), 2)
        addresses = [f"--runtime-interface-emulator-address=127.0.0.1:{port}"]
        addresses += [f"--runtime-api-address=127.0.0.1:{api_port}"]
        runtime: list[str | Path] = [artefact.runtime.python, "-S", "-m", "awslambdaric", artefact.handler]
        with (
            log.open("wb") as output,
            _running(
                artefact, [_emulator(), *addresses, *runtime], variables, stdout=output, stderr=output
            ) as process,
        ):
            _wait_until_it_listens(port, process, log)
            yield Environment(f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations", log)


def run_inside(artefact: Artefact, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in the environment of the function, with the same import path."""
    command: list[str | Path] = [artefact.runtime.python, "-S", *options, "-c", program]
    with _running(
        artefact, command, {}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        output, errors = process.communicate(timeout=INVOKE_S)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _emulator() -> Path:
    rapid = "lib/python3*/site-packages/samcli/local/rapid"
    [emulator] = SAM.parent.parent.glob(f"{rapid}/aws-lambda-rie-{NATIVE_ARCHITECTURE}")
    return emulator


@contextmanager
def _running(
    artefact: Artefact, command: Sequence[str | Path], variables: Mapping[str, str], **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    launcher, folders, cwd = _launcher(artefact)
    process = subprocess.Popen(
        [*launcher, *command],
        cwd=cwd,
        env={**_variables(artefact, folders), **variables},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a separate process group, so that all child processes can be killed
        **options,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _launcher(artefact: Artefact) -> tuple[list[str | Path], Sequence[str], str | None]:
    """Return the prefix of a command, its folders, and its working directory."""
    if protection() == "mounts":
        return [*NAMESPACES, "sh", "-euc", MOUNTS, "sh", *artefact.folders], PATHS_ON_LAMBDA, None
    copies = [_copy(folder) for folder in artefact.folders]
    return [], copies, copies[0]


def _variables(artefact: Artefact, folders: Sequence[str]) -> dict[str, str]:
    """Return the variables of the Lambda developer guide ("Defined runtime environment variables")."""
    task, layer, packages = folders
    name = artefact.runtime.name
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{layer}/python/lib/{name}/site-packages:{layer}/python:{packages}",
        "LAMBDA_TASK_ROOT": task,
        "LAMBDA_RUNTIME_DIR": packages,
        "_HANDLER": artefact.handler,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{name}",
        "AWS_LAMBDA_FUNCTION_NAME": artefact.code.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
    }


@cache
def protection() -> Literal["mounts", "permissions"]:
    """Return how code is made read-only on this computer."""
    if shutil.which("unshare") is None:
        return "permissions"
    mount = "mount -t tmpfs none /var"
    tried = subprocess.run([*NAMESPACES, "sh", "-euc", mount], capture_output=True, check=False)
    return "mounts" if tried.returncode == 0 else "permissions"


@cache
def _copy(folder: Path) -> str:
    scratch = tempfile.TemporaryDirectory(prefix="rie-")
    atexit.register(scratch.cleanup)
    copy = Path(scratch.name) / folder.name
    shutil.copytree(folder, copy)
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    return str(copy)


def _wait_until_it_listens(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.005)  # the emulator does not report that it listens
        else:
            return
    raise AssertionError(f"the emulator did not start: {log.read_text()}")
