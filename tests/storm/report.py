"""The table of the storm: how long a task waits for its next worker."""

from __future__ import annotations

import math
from collections.abc import Iterable

from storm.deployment import Delivery
from storm.outcome import Outcome
from storm.plan import ENDS

GOAL_S = 90.0


def slowest_claims(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[float]]:
    """Return the longest time to the next claim, in whole seconds, by delivery and polls, for each end.

    Leaves out workers that were lost before the message that started them was hidden for a lease.
    """
    measured = [
        (outcome.case, seconds)
        for outcome in outcomes
        if (seconds := outcome.seconds_to_next_claim) is not None and not outcome.case.precedes_lease
    ]
    return {
        (str(delivery), "yes" if polls else "no"): [
            max(
                math.floor(s + 0.5)
                for c, s in measured
                if (c.delivery, c.polls, c.loss.end) == (delivery, polls, end)
            )
            for end in ENDS
        ]
        for delivery in Delivery
        for polls in (True, False)
    }


def as_table(outcomes: Iterable[Outcome]) -> str:
    """Return the table in Markdown."""
    rows = ["| Delivery | Polls | SIGKILL, s | Out of memory, s | Timeout, s |", "|---|---|--:|--:|--:|"]
    for (delivery, polls), figures in slowest_claims(outcomes).items():
        rows.append(f"| `{delivery}` | {polls} | {' | '.join(f'{figure:.0f}' for figure in figures)} |")
    return "\n".join(rows)
