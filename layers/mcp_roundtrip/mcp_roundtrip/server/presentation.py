"""Present what a suspended pass waits for, through the channel of its questions."""

from __future__ import annotations

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcome import Checkpointed, NeedsInput
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round


def present(this_round: Round, outcome: NeedsInput | Checkpointed) -> Reply:
    """Build the reply that asks the questions of the pass, or that continues a pass without questions."""
    if isinstance(outcome, Checkpointed):
        return _continue(this_round, outcome.journal)
    requests, journal = outcome.requests, outcome.journal
    match outcome.channel:
        case "model":
            from mcp_roundtrip.server import model_questions  # few tools choose it

            return model_questions.ask(this_round, requests, journal)
    return this_round.request_input(requests, journal)


def _continue(this_round: Round, journal: Journal) -> Reply:
    """Build the reply to a pass that ran out of time."""
    from mcp_roundtrip.server.continuation import way_to_continue  # most passes have time left

    match way_to_continue(this_round.call):
        case "state":
            return this_round.request_input({}, journal)
        case "task":
            from mcp_roundtrip.engine.url_polling import TASK_TTL_MS  # few calls become a task here

            return this_round.start_task(journal, TASK_TTL_MS)
    from mcp_roundtrip.server.unaskable import out_of_time_error  # most calls can continue

    return this_round.error_reply(out_of_time_error(this_round.call), "out_of_time")
