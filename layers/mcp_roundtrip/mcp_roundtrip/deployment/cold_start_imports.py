"""Shorten cold starts: little garbage collection, and imports before the first request.

With Lambda SnapStart and provisioned concurrency, the initialization imports modules that a request would
otherwise import. Requests create keys, caches, clients and connections, so environments that are restored
from one snapshot share none (https://docs.aws.amazon.com/lambda/latest/dg/snapstart-uniqueness.html).
"""

from __future__ import annotations

import gc
import os
import random
from contextlib import suppress
from importlib import import_module
from typing import Final, Literal

THRESHOLD: Final = 50_000
"""New containers until a garbage collection. A server with one tool creates 38,000 up to its first response.

With Python's default, dozens of collections look for garbage among modules, classes and schemas, which all
stay, and take a twelfth of the CPU time of a cold start. The price is some MB of garbage in reference cycles.
"""

ON_DEMAND: Final = "on-demand"
SNAP_START: Final = "snap-start"

_EVERY_FUNCTION: Final = (
    # callers
    *("auth.bearer", "auth.issuer_keys"),
    "server.public_documents",
    # lists, discovery and clients of the earlier versions
    *("protocol.session_id", "protocol.trace", "protocol.resource_uris", "server.discover_and_initialize"),
    *("server.legacy_tasks", "server.lists"),
    # skills
    "server.skills",
    # tasks and audit records
    *("deployment.aws_ports", "deployment.aws_tasks", "server.task_methods", "aws.audit_log"),
)
_SERVER: Final = (
    # arguments, results and steps
    *("content.structured_output", "engine.async_pass", "engine.steps", "engine.typed_step_values"),
    "schema.json_schema_validator",
    # calls that ask, and their states
    *("arguments.elicitation_form", "deployment.state_codec_factory", "engine.asking"),
    "server.question_presenters",
    # calls that become tasks or are parked
    "server.parked_carrier",
)
"""Modules of this package that a request may import, some milliseconds each."""

_LIBRARIES: Final = (
    *("ssl", "encodings.idna", "cryptography.hazmat.backends.openssl.backend"),
    *("cryptography.hazmat.primitives.asymmetric.utils", "cryptography.hazmat.primitives.ciphers.aead"),
    "jwt.algorithms",
)
"""Modules that these import when they run."""

_PYDANTIC: Final = ("pydantic._internal._dataclasses", "pydantic.plugin._loader")
"""Modules that pydantic imports for the first type."""


def collect_rarely() -> None:
    """Set the threshold on Lambda, unless the function has set one that is higher, or 0 for never."""
    if "AWS_LAMBDA_RUNTIME_API" in os.environ and 0 < gc.get_threshold()[0] < THRESHOLD:
        gc.set_threshold(THRESHOLD)


def initialization_type() -> str:
    return os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", ON_DEMAND)


def prewarm(function: Literal["server", "front_door"]) -> None:
    """Import modules now if Lambda initializes this environment before its first request."""
    if initialization_type() == ON_DEMAND:
        return
    own, libraries = list(_EVERY_FUNCTION), list(_LIBRARIES)
    if function == "server":
        own += _SERVER
        libraries += _PYDANTIC
    for name in (*(f"mcp_roundtrip.{each}" for each in own), *libraries):
        with suppress(ImportError):  # the request that needs it fails
            import_module(name)
    if initialization_type() == SNAP_START:
        # Environments of one snapshot share the state of `random`, which a tool may use. Only runtimes with
        # SnapStart have this module.
        import_module("snapshot_restore_py").register_after_restore(random.seed)
