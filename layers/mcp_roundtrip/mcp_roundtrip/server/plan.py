"""How a call is asked, and how it continues: tables over what is known of client, tool and deployment.

Calls and `tools/list` use the same tables, so that what is listed is what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from mcp_roundtrip.fallbacks import Fallback
from mcp_roundtrip.server.client_abilities import ClientAbilities, StateSupport

Continuation = Literal["app", "state", "task", "parked"]
"""How a call that is out of time continues: the app calls again, the client sends the state, the call becomes
a task, or the model calls again and the call is found in the task table."""


_FALLBACKS: Final[Mapping[Fallback, Callable[[ClientAbilities], bool]]] = {
    "app": lambda client: client.apps and not client.shows_all,
    "page": lambda client: client.stores_calls and not client.shows_all,
    "model": lambda client: not client.forms,
    "default": lambda client: True,
}
"""Fallback -> whether it can carry a question for a client."""

_WAITING: Final[frozenset[Fallback]] = frozenset({"app", "page", "model"})
"""The fallbacks whose answers come in a later call."""


def waits_for_answers(fallbacks: Sequence[Fallback]) -> bool:
    """Return whether one of the fallbacks gets its answers in a later call."""
    return not _WAITING.isdisjoint(fallbacks)


class Plan(Struct, frozen=True):
    """How the calls of one tool by one client are asked, and how they continue.

    `fallbacks`: the ways to ask what the client cannot show, in the author's order. `parks`: whether a call
    can wait in the task table, and continue when it is made again. Such a call reads the table in its first
    request, so calls that never wait, and that their clients continue, are not parked.
    """

    fallbacks: tuple[Fallback, ...]
    parks: bool
    state: StateSupport

    @property
    def waits(self) -> bool:
        """Whether a question may be answered in a later call."""
        return waits_for_answers(self.fallbacks)

    @property
    def may_end_unfinished(self) -> bool:
        """Whether a call may end with a text in the place of its result."""
        return self.waits or (self.parks and self.state != "follows")


def plan_call(client: ClientAbilities, chosen: Sequence[Fallback], *, asks: bool) -> Plan:
    """Return the plan for a tool with the fallbacks that its author chose. `asks`: it takes a context."""
    usable = tuple(each for each in chosen if _FALLBACKS[each](client)) if asks else ()
    waits = waits_for_answers(chosen)
    parks = asks and client.stores_calls and not client.shows_all and (waits or client.state != "follows")
    return Plan(usable, parks, client.state)


def continuation(plan: Plan, *, is_in_app: bool, may_start_task: bool) -> Continuation | None:
    """Return how a call that is out of time continues; None if it cannot. `is_in_app`: the app asks."""
    table: Sequence[tuple[bool, Continuation]] = (
        (is_in_app, "app"),
        (plan.state == "follows", "state"),
        (may_start_task, "task"),
        (plan.parks, "parked"),
        (plan.state != "fails", "state"),
    )
    return next((way for applies, way in table if applies), None)
