"""The options of a run, and its servers, which listen already and start after the application exists."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.kms import FakeKms


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run: how the functions of the template run."""

    parameters: Mapping[str, str]
    """Those of the template."""
    variables: Mapping[str, str]
    """Added to the environment of every function; they override those of `Metadata.LocalRun` in the template
    (see `services.stand_ins`)."""
    python: str = sys.executable
    """The interpreter of the functions; it needs awslambdaric."""
    watch_interval_s: float = math.inf
    """Sources are checked before invocations, at most once in this time, and in the background unless it is
    0 or infinite."""
    retry_delay_scale: float = 1.0
    """Multiplies the delays after which Lambda repeats a failed asynchronous invocation."""
    container_host: str | None = None
    """Containers that know this host name reach the emulated services and the stand-ins by it, if their
    connections are led to this computer."""
    fresh: bool = False
    """Whether each invocation gets a new process."""
    debug: bool = False
    """Whether `breakpoint()` in a function stops at the terminal: one event at a time, without timeouts."""
    checks: bool = False
    """Whether functions are imported when their sources are saved, and callers of one that cannot run get the
    reason."""
    development_keys: bool = False
    """Whether the KMS keys are the same in each run (`services.template_keys`)."""

    def python_version(self) -> str:
        """Return the version of the interpreter, such as 3.13. Raises OSError and CalledProcessError."""
        if self.python == sys.executable:
            return f"{sys.version_info.major}.{sys.version_info.minor}"
        command = [self.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # The interpreter is the caller's choice.
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


@dataclass(frozen=True, slots=True)
class EmulatedServices:
    """The services that functions call. `endpoints` has their URL by the variable that AWS SDKs read.

    `container_url` is their URL for containers, which have other credentials; None without containers.

    `writes` has the writes of tasks.
    """

    credentials: Credentials
    kms: FakeKms
    emulator: Emulator
    writes: JournalWrites
    endpoints: Mapping[str, str]
    servers: tuple[HttpServer, ...]
    container_url: str | None = None


@dataclass(frozen=True, slots=True)
class WebServers:
    """What clients call. `url` is that of the HTTP API, also if it is not served."""

    url: str
    servers: tuple[HttpServer, ...] = ()
    console_url: str | None = None
    """The URL of the console, with a slash at the end."""
    issuer: LocalIssuer | None = None
