"""Which channels a call can use: what the author chose, the client supports, and the deployment has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mcp_roundtrip.engine.channels import Channels, Fallback
from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    declares,
    missing_capabilities,
    shows_apps,
)
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION, TOOLS_CALL
from mcp_roundtrip.server.model import FeatureCall, RequestContext
from mcp_roundtrip.server.tools import Tool

SERVED: Final[frozenset[Fallback]] = frozenset({"app", "page", "model", "default"})
"""The fallbacks that this version of the package has."""


def usable_channels(call: FeatureCall) -> Channels:
    """Return the channels of one round of a call."""
    declared, feature = call.context.request.meta.capabilities, call.feature
    if feature.parameters.context_parameter is None:  # it asks nothing
        return Channels(declared)
    chosen = feature.channels if isinstance(feature, Tool) else call.options.channels
    return Channels(declared, tuple(each for each in chosen if each in SERVED and _is_usable(each, call)))


def task_channels(call: FeatureCall) -> Channels:
    """Return the channels of a task: no result can show an app, or instruct the model, while it runs."""
    feature, context = call.feature, call.context
    assert isinstance(feature, Tool)
    has_page = "page" in SERVED and context.serves_pages
    usable = {"default", "page"} if has_page else {"default"}
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


def reaches_user(channels: Channels) -> bool:
    """Return whether a fallback shows questions to the user."""
    return not {"app", "page"}.isdisjoint(channels.fallbacks)


def without_input_capabilities(context: RequestContext) -> RequestContext:
    """Return the context of a call during which the client answers no input requests, and follows no task."""
    meta = context.request.meta
    declared = {name: each for name, each in meta.capabilities.items() if name not in _INPUT_CAPABILITIES}
    extensions: Any = declared.get("extensions")
    if isinstance(extensions, dict):
        declared["extensions"] = {name: each for name, each in extensions.items() if name != TASKS_EXTENSION}
    return replace(context, request=replace(context.request, meta=replace(meta, capabilities=declared)))


_INPUT_CAPABILITIES: Final = frozenset({"elicitation", "sampling", "roots"})


def may_park(call: FeatureCall) -> bool:
    """Return whether the call can wait in the task table, and continue when it is made again.

    A client that shows all questions itself continues its calls with `requestState` instead. The condition
    costs a read of the table in the first request of a call, so it leaves out such clients.
    """
    context = call.context
    return (
        "page" in SERVED
        and context.request.method == TOOLS_CALL
        and call.feature.parameters.context_parameter is not None
        and missing_capabilities(context.request.meta.capabilities, (ELICITATION_FORM, ELICITATION_URL)) != {}
        and context.can_store_calls
    )
