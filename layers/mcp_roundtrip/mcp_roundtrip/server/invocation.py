"""What a front door sends along with a call, in the Lambda client context, and what its owner does with it.

Only callers with lambda:InvokeFunction can set it, and they could write the whole event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.http import MAX_RESPONSE_BYTES

_DEADLINE: Final = "mcpDeadlineMs"
_DEFINITION: Final = "mcpDefinition"
_CORRELATION_ID: Final = "mcpCorrelationId"
_SERVER_INFO: Final = "mcpServerInfo"
_HIDES: Final = "mcpHideUnauthorized"

DRIFT_REMEDY: Final = "run `make catalog`, and deploy the front door together with this function"
"""What the log says where an owner differs from the front door's catalog."""

FORWARD_S: Final = 26
"""How long a front door waits for an owner at most."""


def patience_s(remaining_ms: float) -> int:
    """How long it waits, in whole seconds, with so much time left for its answer.

    Less than is left, by the second that connecting may take: the caller gets an answer that says what
    happened, and no gateway's 5xx.
    """
    return max(1, min(FORWARD_S, int(remaining_ms / 1_000) - 1))


@dataclass(frozen=True, slots=True)
class Forwarded:
    """`deadline_ms` is when the front door stops waiting (epoch milliseconds), `definition` the digest of the
    tool's definition in its catalog, `correlation_id` what both functions' logs say,
    `server_info` the name under which both answer, `hides` whether callers do not learn of what they may not
    call."""

    deadline_ms: float | None = None
    definition: str | None = None
    correlation_id: str | None = None
    server_info: Mapping[str, Any] | None = None
    hides: bool = False

    @classmethod
    def read(cls, lambda_context: Any) -> Forwarded:
        """What came with an invocation; nothing for one that no front door forwarded."""
        custom = getattr(getattr(lambda_context, "client_context", None), "custom", None)
        if not isinstance(custom, Mapping):
            return cls()
        deadline = custom.get(_DEADLINE)
        definition, correlation_id = custom.get(_DEFINITION), custom.get(_CORRELATION_ID)
        return cls(
            deadline if isinstance(deadline, (int, float)) else None,
            definition if isinstance(definition, str) else None,
            correlation_id if isinstance(correlation_id, str) else None,
            _implementation(custom.get(_SERVER_INFO)),
            custom.get(_HIDES) is True,
        )

    def custom(self) -> dict[str, Any]:
        """The client context's `custom` member."""
        return {
            _DEADLINE: self.deadline_ms,
            _DEFINITION: self.definition,
            _CORRELATION_ID: self.correlation_id,
            _SERVER_INFO: self.server_info,
            _HIDES: self.hides,
        }


def _implementation(value: Any) -> Mapping[str, Any] | None:
    """`value`, if it is an Implementation object of text."""
    if isinstance(value, Mapping) and {"name", "version"} <= value.keys():
        return value if all(isinstance(member, str) for member in value.values()) else None
    return None


def definition_digest(definition: Mapping[str, Any]) -> str:
    """Tells two definitions of one tool apart."""
    return digest("mcp-rs/v1/definition", definition, size=12)


@dataclass(frozen=True, slots=True)
class Invocation:
    """Facts about the Lambda invocation. `correlation_id` is what callers quote to whoever reads the log."""

    correlation_id: str
    deadline_ms: float
    lambda_context: Any = None
    event: Mapping[str, Any] | None = None
    forwarded: Forwarded = field(default_factory=Forwarded)
    max_response_bytes: int = MAX_RESPONSE_BYTES
    """Bytes that the event source takes as a response's body."""


def invocation_id(context: Any) -> str:
    """Lambda's id of the invocation with this context object; "unknown" outside of Lambda."""
    return getattr(context, "aws_request_id", None) or "unknown"
