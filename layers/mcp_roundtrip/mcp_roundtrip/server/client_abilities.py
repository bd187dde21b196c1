"""What a client can do during a call: facts from what it declares, what it is known to do, and who calls."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    INPUT_CAPABILITIES,
    answers_input_requests,
    declares,
    shows_apps,
)
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from mcp_roundtrip.server.model import RequestContext

StateSupport = Literal["follows", "may_follow", "fails"]
"""What a client does with a result that has a state and asks nothing: it sends the state, or ends the call.

Every client of 2026-07-28 has to send it. But a client that answers no input requests may have no code for
such results, and sends the same as one that has ("may_follow").
"""


class ClientAbilities(Struct, frozen=True):
    """What a client can do during a call.

    `forms`, `urls`: it answers elicitations in this mode. `apps`: it shows MCP Apps. `stores_calls`: its
    calls can wait in the task table, because the deployment has one and the caller is known.
    """

    forms: bool
    urls: bool
    apps: bool
    state: StateSupport
    stores_calls: bool

    @property
    def shows_all(self) -> bool:
        """Whether it shows every question to its user."""
        return self.forms and self.urls


def abilities_of(context: RequestContext, *, knows_states: bool = True) -> ClientAbilities:
    """Return what the client of a call can do. `knows_states`: its version has results with a state."""
    declared = context.request.meta.capabilities
    return ClientAbilities(
        declares(declared, ELICITATION_FORM),
        declares(declared, ELICITATION_URL),
        shows_apps(declared),
        _state_support(context) if knows_states else "fails",
        context.can_store_calls,
    )


def _state_support(context: RequestContext) -> StateSupport:
    from mcp_roundtrip.server.client_behavior import breaks_on_state_only_rounds  # most calls do not ask

    if breaks_on_state_only_rounds(context.request.meta.info):
        return "fails"
    return "follows" if answers_input_requests(context.request.meta.capabilities) else "may_follow"


def abilities_for_lists(context: RequestContext) -> ClientAbilities:
    """Return what the client that requests a list can do during calls."""
    if not context.request.is_legacy:
        return abilities_of(context)
    return abilities_of(without_input_capabilities(context), knows_states=False)


def without_input_capabilities(context: RequestContext) -> RequestContext:
    """Return the context of a call during which the client answers no input requests, and follows no task."""
    meta = context.request.meta
    declared = {name: each for name, each in meta.capabilities.items() if name not in INPUT_CAPABILITIES}
    extensions: Any = declared.get("extensions")
    if isinstance(extensions, dict):
        declared["extensions"] = {name: each for name, each in extensions.items() if name != TASKS_EXTENSION}
    return replace(context, request=replace(context.request, meta=replace(meta, capabilities=declared)))
