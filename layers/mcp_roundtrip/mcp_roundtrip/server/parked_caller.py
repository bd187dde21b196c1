"""Who makes a call that may be parked, and which call it is."""

from __future__ import annotations

from msgspec.structs import replace

from mcp_roundtrip.canonical import canonical_json
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.tasks.parked import ParkedCaller


def session_caller(call: FeatureCall) -> str | None:
    """Return a text that distinguishes the session of a call; None if it has none."""
    nonce = call.context.session_nonce
    return None if nonce is None else canonical_json(["session", nonce]).decode()


def parked_caller(call: FeatureCall) -> ParkedCaller:
    """Return the caller of a call. The session id identifies an anonymous caller."""
    principal = caller_binding(call.context.principal)
    binding = principal or session_caller(call)
    assert binding is not None  # see `RequestContext.can_store_calls`
    identity = replace(call.binding, principal=binding).identity()
    assert identity is not None
    return ParkedCaller(binding, principal, identity)
