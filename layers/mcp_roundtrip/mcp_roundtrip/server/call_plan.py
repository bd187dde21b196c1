"""How a call is asked, and how it continues: facts about the client, and tables over them.

A call that cannot end has two independent properties. Its *presenter* is the channel through which its
questions reach somebody who answers. Its *carrier* is where its journal waits. Calls and `tools/list` use the
same tables, so that what is listed is what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mcp_roundtrip.protocol.capabilities import answers_input_requests, breaks_on_state_only_rounds

if TYPE_CHECKING:
    from mcp_roundtrip.engine.question_channels import Channel
    from mcp_roundtrip.protocol.request_validation import RequestMeta

# -- facts --------------------------------------------------------------------------------------------------

StateSupport = Literal["follows", "may_follow", "fails"]
"""What a client does with a result that has a state and asks nothing: it sends the state, or ends the call.
Every client of 2026-07-28 has to send it. But a client that answers no input requests may have no code for
such results, and declares the same as one that has ("may_follow")."""


class ClientAbilities(Struct, frozen=True):
    """What a client can do during a call.

    `forms`, `urls`: it answers elicitations in this mode. `apps`: it shows MCP Apps. `stores_calls`: its
    calls can wait in the task table of the deployment. `signed_in`: its caller has an identity, by which the
    next call finds one that waits; other callers need a code.
    """

    forms: bool
    urls: bool
    apps: bool
    state_support: StateSupport
    stores_calls: bool
    signed_in: bool = True

    @property
    def shows_all(self) -> bool:
        """Whether it shows every question to its user."""
        return self.forms and self.urls


def state_support(meta: RequestMeta) -> StateSupport:
    """Return what the client of a request does, whose version has results that ask (SEP-2322)."""
    if breaks_on_state_only_rounds(meta.info):
        return "fails"
    return "follows" if answers_input_requests(meta.capabilities) else "may_follow"


# -- tables -------------------------------------------------------------------------------------------------

Carrier = Literal["state", "parked", "restart", "task"]
"""Where the journal of a call waits: in the state that the client sends again, in the task table until the
call is made again, nowhere (the call is made again and starts from its beginning), or in a task."""

_FALLBACKS: Final[Mapping[Channel, Callable[[ClientAbilities], bool]]] = {
    "app": lambda client: client.apps and not client.shows_all,
    "page": lambda client: client.stores_calls and not client.shows_all,
    "model": lambda client: not client.forms,
    "default": lambda client: True,
}
"""Fallback -> whether it can carry a question for a client."""

_WAITING: Final[frozenset[Channel]] = frozenset({"app", "page", "model"})
"""The fallbacks whose answers come in a later call."""


class Plan(Struct, frozen=True):
    """How the calls of one tool by one client are asked, and how they continue.

    `fallbacks`: the ways to ask what the client cannot show, in the author's order. `parks`: whether a call
    can wait in the task table, and continue when it is made again. Such a call reads the table already in its
    first request. So `parks` is False if the call never has to wait there: its client shows every question,
    or no chosen fallback waits and the client sends states again.
    """

    fallbacks: tuple[Channel, ...]
    parks: bool
    state_support: StateSupport

    @property
    def may_end_unfinished(self) -> bool:
        """Whether a call may end with a text in the place of its result."""
        return not _WAITING.isdisjoint(self.fallbacks) or (self.parks and self.state_support != "follows")


def plan_call(client: ClientAbilities, chosen: Sequence[Channel], *, asks: bool) -> Plan:
    """Return the plan for a tool with the fallbacks that its author chose. `asks`: it takes a context."""
    usable = tuple(each for each in chosen if _FALLBACKS[each](client)) if asks else ()
    may_wait = not _WAITING.isdisjoint(chosen) or client.state_support != "follows"
    parks = asks and client.stores_calls and not client.shows_all and may_wait
    return Plan(usable, parks, client.state_support)


def carrier_of_questions(plan: Plan, channel: Channel, *, has_effects: bool, takes_rounds: bool) -> Carrier:
    """Return where a call waits that asks through a channel. `has_effects`: a new call would repeat some."""
    match channel:
        case "app":
            return "parked" if plan.parks else "state"
        case "page":
            return "parked"
        case "model":
            return "parked" if has_effects and plan.parks else "restart"
    return "state" if takes_rounds else "restart"


def presenter_of_repeated(plan: Plan, *, is_for_model: bool, shows_requests: bool) -> Channel:
    """Return the channel of the open questions for the client that makes a parked call again."""
    if is_for_model and "model" in plan.fallbacks:
        return "model"
    if shows_requests:
        return "client"
    return next((each for each in plan.fallbacks if each in ("app", "page")), "page")


def carrier_of_unfinished(plan: Plan, *, is_in_app: bool, may_start_task: bool) -> Carrier | None:
    """Return where a call waits that is out of time, and asks nothing; None if it cannot continue."""
    if is_in_app or plan.state_support == "follows":  # a view sends its state again
        return "state"
    if may_start_task:
        return "task"
    if plan.parks:
        return "parked"
    return None if plan.state_support == "fails" else "state"
