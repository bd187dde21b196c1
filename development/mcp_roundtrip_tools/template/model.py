"""The parts of a SAM template that running it on this computer needs, and what cannot run here."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.errors import McpRoundtripError

REGION = "us-east-1"
ACCOUNT = "000000000000"
STACK_NAME = "local"
LATEST = "$LATEST"

PACKAGE: Final = "mcp-roundtrip"

WORKER: Final = "_worker"
"""The end of the name of a function that runs the tasks of another, whose name is the rest."""

RUNTIMES: Final = ("python3.12", "python3.13", "python3.14")
"""Later ones than python3.11, whose Linux (Amazon Linux 2) gets no wheels of new versions of packages."""


class TemplateError(McpRoundtripError):
    """The template cannot be run; the message names the resource and the property."""


class FunctionFailed(McpRoundtripError):
    """A function raised an exception, timed out or exited; `payload` is the error of the Invoke API."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        super().__init__(f"{payload.get('errorType')}: {payload.get('errorMessage')}")
        self.payload = payload


@dataclass(frozen=True, slots=True)
class Function:
    """A Lambda function. `name` is its name in the Invoke API; `layers` are folders for PYTHONPATH."""

    name: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout_s: float
    memory_mb: int
    alias: str | None = None
    requirements: tuple[Path, ...] = ()
    """The folders into which its requirements.txt and those of its layers are installed."""
    log_format: str = ""
    """LoggingConfig.LogFormat; empty for Lambda's default, text."""
    log_level: str = ""
    """LoggingConfig.ApplicationLogLevel; empty if it is not set."""
    dead_letter: str | None = None
    """The ARN of its dead-letter queue for asynchronous invocations."""
    max_retries: int = 2
    """How often a failed asynchronous invocation is repeated: EventInvokeConfig.MaximumRetryAttempts."""
    logical_id: str = ""
    """The name of its resource in the template."""
    runtime: str = ""
    """The deployed runtime, such as python3.13. Here, functions run on another interpreter."""

    @property
    def module(self) -> Path:
        """The file of its handler, relative to `code`."""
        return handler_module(self.handler)

    @property
    def path(self) -> tuple[Path, ...]:
        """The folders of its import path, in order."""
        return (self.code, *self.requirements, *self.layers)


@dataclass(frozen=True, slots=True)
class Route:
    """A route: `method` may be `ANY`; `path` may be `$default`, or contain `{name}` and `{name+}`."""

    method: str
    path: str
    function: str

    @property
    def key(self) -> str:
        """The route key of the event."""
        return self.path if self.path == "$default" else f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Queue:
    """An SQS queue. Its event source mapping, if it has one, invokes the function `reader` for each message.

    A message that was received `max_receives` times, and was not deleted, moves to the queue `dead_letter`.
    """

    name: str
    reader: str | None = None
    visibility_timeout_s: float = 30
    max_receives: float = math.inf
    dead_letter: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """A KMS key, such as `StateKey` or `Platform.StateKey`, with the names of its aliases."""

    name: str
    id: str
    spec: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """The DynamoDB tables, by name with their CloudFormation properties, and the names of the S3 buckets."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Application:
    """A resolved template. `templates` are its file and those of its nested stacks.

    `sources` are the files and folders that it and its functions are read from, with the templates.
    `functions` are those that can run here. A route, a queue or a caller may name another function of the
    template: `left_out` has the reasons by these names. `notes` are reasons why other parts are left out.
    """

    functions: Mapping[str, Function]
    queues: Mapping[str, Queue]
    routes: tuple[Route, ...]
    sources: tuple[Path, ...]
    keys: tuple[TemplateKey, ...] = ()
    storage: Storage = field(default_factory=Storage)
    cors_configuration: Any = None
    """The CorsConfiguration of the HTTP API."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    templates: tuple[Path, ...] = ()


def function_arn(name: str, qualifier: str | None = None) -> str:
    """Return the ARN of the function, or of its alias or version `qualifier`."""
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    return f"{arn}:{qualifier}" if qualifier else arn


def function_name(reference: str) -> str:
    """Return the name of a function from its name or ARN, with or without a qualifier."""
    return reference.rpartition("function:")[2].partition(":")[0]


def handler_module(handler: str) -> Path:
    """Return the file of a handler such as ``app.handler``, relative to the code of its function."""
    return Path(f"{handler.rpartition('.')[0].replace('.', '/')}.py")


def short_name(function: str) -> str:
    """Return the name of a function without that of the stack."""
    return function.removeprefix(f"{STACK_NAME}_").removeprefix(f"{STACK_NAME}-")


def key_arn(key_id: str) -> str:
    return f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key_id}"


def queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


@dataclass(slots=True)
class LeftOut:
    """What a template does not serve, with reasons: `targets` by the name that routes use, other `notes`."""

    targets: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Leave out the part that the block reads, if it raises TemplateError."""
        try:
            yield
        except TemplateError as error:
            self.notes.append(str(error))


def describe_left_out(application: Application) -> list[str]:
    """Return one line for each part that is not served: its reason, and its routes."""
    lines = []
    for name, reason in application.left_out.items():
        routes = ", ".join(route.key for route in application.routes if route.function == name)
        lines.append(f"{reason} ({routes})" if routes else reason)
    return [*lines, *application.notes]


def hint(name: str, known: Mapping[str, str] | Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return the name nearest to an unknown one, or what `known` suggests for it; without one what exists."""
    meant = known if isinstance(known, Mapping) else {each: each for each in known}
    nearest = get_close_matches(name, meant, 1)
    exist = ", ".join(meant if listed is None else listed)
    return f"did you mean {meant[nearest[0]]}?" if nearest else f"it has {exist or 'none'}"
