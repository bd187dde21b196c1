"""Who makes a call that may be parked, and which call it is."""

from __future__ import annotations

from msgspec.structs import replace

from mcp_roundtrip.canonical import canonical_json
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.tasks.parked import ParkedCaller


def parked_caller(call: FeatureCall) -> ParkedCaller:
    """Return the caller of a call. The session id identifies an anonymous caller."""
    principal = caller_binding(call.context.principal)
    binding = principal or canonical_json(["session", call.context.session_nonce]).decode()
    identity = replace(call.binding, principal=binding).identity()
    assert identity is not None
    return ParkedCaller(binding, principal, identity)
