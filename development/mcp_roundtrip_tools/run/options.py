"""The options of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer


@dataclass(frozen=True, slots=True)
class Options:
    """How the functions of the template run."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    """Those of the template."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of every function; they override those of `Metadata.LocalRun` in the template
    (see `services.stand_ins`)."""
    python: str = sys.executable
    """The interpreter of the functions, of the version of this one; it needs awslambdaric."""
    watch_interval_s: float = 1.0
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
    development_keys: bool = False
    """Whether the KMS keys are the same in each run (`services.kms`)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the servers of a run listen.

    `url` is that of the HTTP API, also if it is not served. `aws_url` is that of the emulated AWS services,
    and `container_url` that for containers, if there are any. `console_url` has a slash at the end; it is
    None if the console is not served.
    """

    url: str
    aws_url: str
    container_url: str | None = None
    console_url: str | None = None
    issuer: LocalIssuer | None = None
