"""Which channels a call can use: what the author chose, the client supports, and the deployment has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.engine.channels import Channels
from mcp_roundtrip.errors import MissingClientCapability
from mcp_roundtrip.fallbacks import Fallback
from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    INPUT_CAPABILITIES,
    answers_input_requests,
    declares,
    missing_capabilities,
    shows_apps,
)
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION, TOOLS_CALL
from mcp_roundtrip.server.model import FeatureCall, RequestContext
from mcp_roundtrip.server.tools import Tool


def usable_channels(call: FeatureCall) -> Channels:
    """Return the channels of one round of a call."""
    declared, feature = call.context.request.meta.capabilities, call.feature
    if feature.parameters.context_parameter is None:  # it asks nothing
        return Channels(declared)
    chosen = feature.channels if isinstance(feature, Tool) else call.options.channels
    return Channels(declared, tuple(each for each in chosen if _is_usable(each, call)))


def task_channels(call: FeatureCall) -> Channels:
    """Return the channels of a task: no result can show an app, or instruct the model, while it runs."""
    feature, context = call.feature, call.context
    assert isinstance(feature, Tool)
    usable = {"default", "page"} if context.serves_pages else {"default"}
    return Channels(
        context.request.meta.capabilities, tuple(each for each in feature.channels if each in usable)
    )


def _is_usable(fallback: Fallback, call: FeatureCall) -> bool:
    if fallback == "default":
        return True
    if call.context.request.method != TOOLS_CALL:
        return False
    match fallback:
        case "app":
            shown = isinstance(call.feature, Tool) and call.feature.asks_in_app
            return shown and shows_apps(call.context.request.meta.capabilities)
        case "page":
            return may_park(call)
        case "model":
            return not declares(call.context.request.meta.capabilities, ELICITATION_FORM)


def require_feature_capabilities(call: FeatureCall, channels: Channels) -> None:
    """Check the capabilities that the feature requires. Raises MissingClientCapability (-32021).

    A channel that reaches the user is as good as the client's own elicitation.
    """
    feature = call.feature
    lacking = missing_capabilities(
        call.context.request.meta.capabilities,
        [path for path in feature.requires if not channels.supports(path)],
    )
    if lacking:
        needed_by, remedy = f"The {feature.kind} {feature.name!r}", remedy_for(call, lacking)
        raise MissingClientCapability(lacking, needed_by=needed_by, remedy=remedy)


def remedy_for(call: FeatureCall, lacking: Mapping[str, Any]) -> str:
    """Return what the caller can do about capabilities that the client does not declare."""
    if signing_in_helps(call, lacking):
        return "sign in, so that the user is asked on a page, or use a client that declares them"
    return "use one that declares them"


def signing_in_helps(call: FeatureCall, lacking: Mapping[str, Any]) -> bool:
    """Return whether the question page could ask in place of the client if the caller were known."""
    context, tool = call.context, call.feature
    has_page = isinstance(tool, Tool) and "page" in tool.channels and context.serves_pages
    return has_page and not context.is_identified and lacking.keys() == {"elicitation"}


def reaches_user(channels: Channels) -> bool:
    """Return whether a fallback shows questions to the user."""
    return not {"app", "page"}.isdisjoint(channels.fallbacks)


def without_input_capabilities(context: RequestContext) -> RequestContext:
    """Return the context of a call during which the client answers no input requests, and follows no task."""
    meta = context.request.meta
    declared = {name: each for name, each in meta.capabilities.items() if name not in INPUT_CAPABILITIES}
    extensions: Any = declared.get("extensions")
    if isinstance(extensions, dict):
        declared["extensions"] = {name: each for name, each in extensions.items() if name != TASKS_EXTENSION}
    return replace(context, request=replace(context.request, meta=replace(meta, capabilities=declared)))


def may_park(call: FeatureCall) -> bool:
    """Return whether the call can wait in the task table, and continue when it is made again.

    Such a call costs a read of the table in its first request. So the condition leaves out clients that show
    all questions themselves, and tools whose questions have no fallback that waits, unless their calls cannot
    continue in another way when they run out of time.
    """
    context, tool = call.context, call.feature
    return (
        isinstance(tool, Tool)
        and tool.asks
        and context.can_store_calls
        and missing_capabilities(context.request.meta.capabilities, (ELICITATION_FORM, ELICITATION_URL)) != {}
        and (not _WAITING.isdisjoint(tool.channels) or not continues_with_state(call))
    )


def is_always_parked(call: FeatureCall, channels: Channels) -> bool:
    """Return whether a call that may be parked is certain to be: it always asks, and not in another way.

    A call that lacks another capability is refused, so it is not parked.
    """
    declared, requires = call.context.request.meta.capabilities, call.feature.requires
    asks = [path for path in requires if path[0] == ELICITATION_FORM[0]]
    if missing_capabilities(declared, asks) == {} or channels.fallbacks[:1] not in (("app",), ("page",)):
        return False
    return missing_capabilities(declared, [path for path in requires if not channels.supports(path)]) == {}


def loses_steps_without_place(call: FeatureCall) -> bool:
    """Return whether a refusal above the limit of open tasks would lose the steps that the call has run.

    Such a call may have to wait for an answer, or to become a task, and its client cannot keep its state
    until there is a place.
    """
    if call.may_start_task and not may_continue_with_state(call):
        return True
    if continues_with_state(call) and not call.reservation.is_last_round:
        return False
    tool = call.feature
    return isinstance(tool, Tool) and not _WAITING.isdisjoint(tool.channels) and may_park(call)


_WAITING: Final[frozenset[Fallback]] = frozenset({"app", "page", "model"})


def continues_with_state(call: FeatureCall) -> bool:
    """Return whether the client can be relied on to continue a call that asks nothing with its state.

    Every client has to. But a client that answers no input requests may have no code for such results, and
    sends the same as one that has (`server.client_behavior`). So its call is parked where that is possible.
    """
    return answers_input_requests(call.context.request.meta.capabilities) and may_continue_with_state(call)


def may_continue_with_state(call: FeatureCall) -> bool:
    """Return whether the client is not known to fail at a result that has a state and asks nothing."""
    if not call.follows_state:
        return False
    from mcp_roundtrip.server.client_behavior import breaks_on_state_only_rounds  # rarely decides

    return not breaks_on_state_only_rounds(call.context.request.meta.info)
