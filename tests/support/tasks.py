"""One task, as it is at its creation."""

from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.tasks.model import Asked, Running, Status, Task

NOW = 1_795_000_000_000
LEASE_MS = 1_000
TTL_MS = 60_000
MAX_ATTEMPTS = 2

NEW = Task(
    pk="principal#task",
    status=Status.WORKING,
    running=Running.READY,
    version=1,
    created_at_ms=NOW,
    updated_at_ms=NOW,
    ttl_ms=TTL_MS,
    worker="7",
    flow_id="run",
)

END = {"error": {"code": -32603, "message": "gone"}, "message": "Gone."}
"""What `fail`, `expire` and `exhaust` say."""


def asked(*keys: str) -> dict[str, Asked]:
    """Outstanding requests."""
    return {
        key: Asked(key, Fingerprint("message", "form"), {"method": "elicitation/create"}, order)
        for order, key in enumerate(keys)
    }
