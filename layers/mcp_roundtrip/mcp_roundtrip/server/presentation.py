"""Present what a suspended pass waits for, through the channel of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.engine.channels import Channel
from mcp_roundtrip.engine.outcome import Checkpointed, NeedsInput
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.protocol.capabilities import shows_forms_in_apps
from mcp_roundtrip.server.channels import continuation_of, plan_of
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.tools import Tool
from mcp_roundtrip.server.unaskable import lost_effects


def present(this_round: Round, outcome: NeedsInput | Checkpointed) -> Reply:
    """Build the reply that asks the questions of the pass, or that continues a pass without questions."""
    if isinstance(outcome, Checkpointed):
        return _continue(this_round, outcome.journal)
    requests, journal = outcome.requests, outcome.journal
    match outcome.channel:
        case "app" if not plan_of(this_round.call).parks:
            from mcp_roundtrip.server import app_questions  # deployments with a table park the call

            return app_questions.ask(this_round, requests, journal)
        case "app" | "page":
            return _park(this_round, requests, journal, outcome.channel)
        case "model" if lost_effects(journal) and plan_of(this_round.call).parks:
            return _park(this_round, requests, journal, "model")
        case "model":
            from mcp_roundtrip.server import model_questions  # few tools choose it

            return model_questions.ask(this_round, requests, journal)
    return this_round.request_input(_in_view(this_round, requests), journal)


def _in_view(this_round: Round, requests: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Name the view of the tool in its forms, for a client that can show them there."""
    call = this_round.call
    tool = call.feature
    if not isinstance(tool, Tool) or not shows_forms_in_apps(call.context.request.meta.capabilities):
        return requests
    from mcp_roundtrip.server.views import QUESTIONS_URI, with_view  # few clients can

    uri = tool.view_uri or (QUESTIONS_URI if tool.asks_in_app else None)
    return requests if uri is None else with_view(requests, uri)


def _continue(this_round: Round, journal: Journal) -> Reply:
    """Build the reply to a pass that ran out of time."""
    match continuation_of(this_round.call):
        case "state":
            return this_round.request_input({}, journal)
        case "app":
            from mcp_roundtrip.server import app_questions  # few calls continue one that a view shows

            return app_questions.working(this_round, journal)
        case "task":
            from mcp_roundtrip.engine.url_polling import TASK_TTL_MS  # few calls become a task here

            return this_round.start_task(journal, TASK_TTL_MS)
        case "parked":
            return _park(this_round, {}, journal)
    from mcp_roundtrip.server.unaskable import out_of_time_error  # most calls can continue

    return this_round.error_reply(out_of_time_error(this_round.call), "out_of_time")


def _park(
    this_round: Round,
    requests: Mapping[str, Mapping[str, Any]],
    journal: Journal,
    channel: Channel | None = None,
) -> Reply:
    """Store the call, and build the reply that asks its questions, or that says how it continues."""
    from mcp_roundtrip.server.parked_calls import park  # few calls are parked

    return park(this_round, requests, journal, channel)
