"""What Lambda SnapStart and provisioned concurrency initialise before anybody waits for it.

Modules are imported that otherwise the first request imports that needs them. That is all: keys, caches,
clients and connections are made by requests, so environments that are made from one snapshot share none
(https://docs.aws.amazon.com/lambda/latest/dg/snapstart-uniqueness.html).
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Final

SNAP_START: Final = "snap-start"

FIRST_USED: Final = (
    # by states and tokens
    *("boto3", "jwt.algorithms", "cryptography.hazmat.backends.openssl.backend"),
    *("cryptography.hazmat.primitives.asymmetric.utils", "cryptography.hazmat.primitives.ciphers.aead"),
    *("mcp_roundtrip.aws.kms", "mcp_roundtrip.state.codec", "mcp_roundtrip.state.delegation"),
    *("mcp_roundtrip.auth.bearer", "mcp_roundtrip.auth.fetch", "mcp_roundtrip.schema.generate"),
    # by the front door and by tasks
    *("mcp_roundtrip.aws.forwarder", "mcp_roundtrip.aws.dispatcher", "mcp_roundtrip.aws.dynamodb"),
    *("mcp_roundtrip.tasks.service", "mcp_roundtrip.server.task_methods"),
    # by the first client of an AWS service
    *("botocore.signers", "botocore.regions", "botocore.endpoint", "botocore.httpsession"),
)
"""Each costs a first request some milliseconds, boto3 with what it brings 130."""


def get_ready(initialization_type: str) -> None:
    """`initialization_type` is AWS_LAMBDA_INITIALIZATION_TYPE, where it is not `on-demand`."""
    for name in FIRST_USED:
        with suppress(ImportError):  # of another version of the runtime's boto3: whoever needs it says so
            import_module(name)
    if initialization_type == SNAP_START:
        _have_random_numbers_differ()


def _have_random_numbers_differ() -> None:
    """A tool may use `random`, whose state environments of one snapshot share. This package does not."""
    import random

    # Only runtimes with SnapStart have it.
    import_module("snapshot_restore_py").register_after_restore(random.seed)
