"""What a template says, as far as running it here needs it, and what passes over its HTTP faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError

REGION = "us-east-1"
ACCOUNT = "000000000000"
STACK_NAME = "local"
LATEST = "$LATEST"


class TemplateError(McpRoundtripError):
    """The template cannot be run here; the message names the resource and the property."""


class FunctionFailed(McpRoundtripError):
    """A function raised, timed out or ended; `payload` is what the Invoke API says about it."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        super().__init__(f"{payload.get('errorType')}: {payload.get('errorMessage')}")
        self.payload = payload


@dataclass(frozen=True, slots=True)
class Function:
    """One Lambda function: `name` is what the Invoke API knows it by, `layers` are folders for PYTHONPATH."""

    name: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout_s: float
    memory_mb: int
    alias: str | None = None
    requirements: Path | None = None
    """The folder where what its requirements.txt names is installed."""
    log_format: str = ""
    """Of LoggingConfig; empty for Lambda's default, text."""
    log_level: str = ""
    """Of LoggingConfig.ApplicationLogLevel; empty for none."""

    @property
    def arn(self) -> str:
        return function_arn(self.name)

    @property
    def path(self) -> tuple[Path, ...]:
        """The folders it imports from, in this order."""
        own = () if self.requirements is None else (self.requirements,)
        return (self.code, *own, *self.layers)


@dataclass(frozen=True, slots=True)
class Route:
    """`method` may be `ANY`; `path` has `{name}` and `{name+}` variables, or is `$default`."""

    method: str
    path: str
    function: str

    @property
    def key(self) -> str:
        """The route key, as API Gateway spells it in the event."""
        return self.path if self.path == "$default" else f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Queue:
    """An SQS queue. `reader` is the function that an event source mapping hands its messages to.

    A message that it fails comes back after the visibility timeout, up to `max_receives` times in all.
    """

    name: str
    reader: str
    visibility_timeout_s: float
    max_receives: float


@dataclass(frozen=True, slots=True)
class Storage:
    """The DynamoDB tables, by name with their CloudFormation properties, and the names of the S3 buckets."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Application:
    """The functions and queues by name, the routes, and the files and folders all of it was read from."""

    functions: Mapping[str, Function]
    queues: Mapping[str, Queue]
    routes: tuple[Route, ...]
    sources: tuple[Path, ...]
    storage: Storage = field(default_factory=Storage)
    cors_configuration: Any = None
    """The property of the HTTP API, with intrinsic functions resolved."""


def function_arn(name: str, qualifier: str | None = None) -> str:
    """The ARN of the function, or of its alias or version `qualifier`."""
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    return f"{arn}:{qualifier}" if qualifier else arn
