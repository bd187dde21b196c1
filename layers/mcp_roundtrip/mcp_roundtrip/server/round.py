"""A round: one pass over a feature for one call, and the reply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.auth.principal import caller_binding
from mcp_roundtrip.engine.replay import Done, Failed
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.errors import ClientError, client_error
from mcp_roundtrip.server.model import FeatureCall, Reply, WireInputRequests

if TYPE_CHECKING:
    from mcp_roundtrip.state.claims import OpenState
    from mcp_roundtrip.tasks.items import Flow

TASK_TTL_MS: Final = 3_600_000
"""Time to live of a task that a call becomes by itself, because it is out of time or out of rounds."""

META_PARKED_CALL: Final = "mcp-roundtrip/parkedCall"
"""The member of a result's `_meta` that tells programs that the call is not finished. It holds the `status`,
"input_required" or "working" as of a task, and the `url` at which the user answers, if there is one."""


def asked_through(channel: str, requests: WireInputRequests) -> dict[str, tuple[str, str]]:
    """Return what `RequestEnd.asked` has about the questions of a reply."""
    return {key: (requests[key]["method"], channel) for key in sorted(requests)}


class Visits(Struct, frozen=True):
    """The URLs that the user may have visited before this call, by the keys of their questions.

    `flow_id`: the flow id of all passes of this call.
    `name`: identifies the visits in every call with the same arguments and answers.
    """

    keys: frozenset[str] = frozenset()
    flow_id: str | None = None
    name: str | None = None


class Round(Struct, frozen=True):
    """One pass of a call.

    `opened`: the state that the client has sent; None if it has none of this flow. `visits`: those of a call
    of a client that knows no rounds (`legacy.calls`).
    """

    call: FeatureCall
    run: Run
    opened: OpenState | None = None
    visits: Visits | None = None

    @property
    def number(self) -> int:
        """The number of this round, from 1."""
        return 1 if self.opened is None else self.opened.round + 1

    @property
    def flow(self) -> Flow | None:
        """The flow of which the client has a state; None in the first round."""
        if self.opened is None:
            return None
        from mcp_roundtrip.tasks.items import Flow  # few tools become tasks

        principal, flow_id = caller_binding(self.call.context.principal), self.run.history.journal.flow_id
        return Flow(principal, flow_id, self.opened.flow_ends_at)

    def reply_for(self, outcome: Done | Failed) -> Reply:
        """Build the reply to a pass that ended the call."""
        if isinstance(outcome, Failed):
            return self.reply_for_exception(outcome.error)
        call = self.call
        try:
            result = call.feature.result(call.server_info, outcome.value, is_retry=call.params.is_retry)
        except Exception as error:
            return self.reply_for_exception(error)
        return self.reply(result, "complete")

    def reply(
        self,
        body: Mapping[str, Any] | ProtocolError,
        outcome: str | None,
        *,
        reason: str | None = None,
        asked: Mapping[str, tuple[str, str]] | None = None,
        **fields: Any,
    ) -> Reply:
        """Build the reply from a result or an error, with the notifications and log fields of the round."""
        declined = self.call.params.declined()
        log_fields: dict[str, Any] = {
            **self.call.log_identity,
            "round": self.number,
            **({"declined": declined} if declined else {}),
            **self.run.notifications.log_fields(),
            **({} if asked is None else {"asked": list(asked)}),
            **fields,
        }
        if outcome is not None and not isinstance(body, ProtocolError):
            log_fields["outcome"] = outcome
        messages = tuple(self.run.notifications.messages)
        return Reply(body, messages, log_fields, reason=reason, asked=asked or {})

    def unfinished_reply(
        self, text: str, outcome: str, meta: Mapping[str, Any] | None = None, **fields: Any
    ) -> Reply:
        """Build the reply whose result is a text for the model, because the call is not finished."""
        body = results.tool_result(self.call.server_info, [results.text_content(text)], {})
        if meta:
            body = {**body, "_meta": {**body["_meta"], **meta}}
        return self.reply(body, outcome, **fields)

    def reply_for_exception(self, error: BaseException) -> Reply:
        """Build the reply for an exception of the feature, and log it."""
        return self.error_reply(client_error(self.call, error))

    def error_reply(self, failure: ClientError) -> Reply:
        """Build the reply that reports an error, in a result where the feature's results can."""
        error = failure.error
        if isinstance(error, ProtocolError):
            return self.reply(error, failure.outcome)
        body = self.call.feature.error_body(self.call.server_info, error)
        return self.reply(body, failure.outcome, reason=failure.reason)
