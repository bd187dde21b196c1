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
    """Added to every function's environment; they override those of `Metadata.LocalRun` in the template."""
    python: str = sys.executable
    """The interpreter of the functions, of the version of this one; it needs awslambdaric."""
    watch_interval_s: float = 1.0
    """The least time between checks before invocations; unless 0 or infinite, also in the background."""
    retry_delay_scale: float = 1.0
    """Multiplies the delays after which Lambda repeats a failed asynchronous invocation."""
    container_host: str | None = None
    """The host name by which containers reach services, if connections are led to this computer."""
    fresh: bool = False
    """Whether each invocation gets a new process."""
    debug: bool = False
    """Whether `breakpoint()` in a function stops at the terminal: one event at a time, without timeouts."""
    development_keys: bool = False
    """Whether the KMS keys are the same in each run (`services.kms`)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the servers of a run listen: `url` is that of the HTTP API, also if it is not served.

    `aws_url` and `container_url` are those of the AWS services for functions and containers. `console_url`
    has a slash at the end; None without a console.
    """

    url: str
    aws_url: str
    container_url: str | None = None
    console_url: str | None = None
    issuer: LocalIssuer | None = None
