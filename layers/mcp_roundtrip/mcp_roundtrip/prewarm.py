"""Import modules during initialization, for Lambda SnapStart and provisioned concurrency.

These are modules that the first request that needs them would otherwise import. Nothing else happens here:
requests create keys, caches, clients and connections, so environments that are restored from one snapshot
share none (https://docs.aws.amazon.com/lambda/latest/dg/snapstart-uniqueness.html).
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Final

SNAP_START: Final = "snap-start"

MODULES: Final = (
    # states and tokens
    *("ssl", "mcp_roundtrip.aws.clients", "cryptography.hazmat.backends.openssl.backend"),
    *("cryptography.hazmat.primitives.asymmetric.utils", "cryptography.hazmat.primitives.ciphers.aead"),
    *("mcp_roundtrip.aws.kms", "mcp_roundtrip.state.codec", "mcp_roundtrip.state.delegation"),
    *(
        "mcp_roundtrip.auth.bearer",
        "mcp_roundtrip.auth.public_keys",
        "mcp_roundtrip.auth.fetch",
        "mcp_roundtrip.schema.json_schema",
    ),
    # the front door and tasks
    *("mcp_roundtrip.aws.forwarder", "mcp_roundtrip.aws.dispatchers", "mcp_roundtrip.aws.dynamodb"),
    *("mcp_roundtrip.tasks.service", "mcp_roundtrip.server.task_methods"),
)
"""Each costs a first request some milliseconds."""


def prewarm_environment(initialization_type: str) -> None:
    """Import MODULES. `initialization_type` is the value of AWS_LAMBDA_INITIALIZATION_TYPE."""
    for name in MODULES:
        with suppress(ImportError):  # the request that needs it fails
            import_module(name)
    if initialization_type == SNAP_START:
        _reseed_after_restore()


def _reseed_after_restore() -> None:
    """Seed `random` after a restore: environments of one snapshot share its state, and a tool may use it."""
    import random

    # Only runtimes with SnapStart have this module.
    import_module("snapshot_restore_py").register_after_restore(random.seed)
