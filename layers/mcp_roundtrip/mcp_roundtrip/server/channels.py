"""Which channels a call can use: what the author chose, the client supports, and the deployment has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.engine.channels import Channels
from mcp_roundtrip.errors import MissingClientCapability
from mcp_roundtrip.protocol.capabilities import missing_capabilities
from mcp_roundtrip.server.client_abilities import abilities_of
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.server.plan import Continuation, Plan, continuation, plan_call
from mcp_roundtrip.server.tools import Tool


def plan_of(call: FeatureCall) -> Plan:
    """Return how the call is asked, and how it continues."""
    client, feature = abilities_of(call.context, knows_states=call.follows_state), call.feature
    asks = feature.parameters.context_parameter is not None
    if isinstance(feature, Tool):
        return plan_call(client, feature.channels, asks=asks)
    # Only the call of a tool can ask in its result, and can be repeated by a model.
    defaults = [each for each in call.options.channels if each == "default"]
    return plan_call(replace(client, stores_calls=False), defaults, asks=asks)


def continuation_of(call: FeatureCall) -> Continuation | None:
    """Return how a call that is out of time continues; None if it cannot continue."""
    return continuation(plan_of(call), is_in_app=call.params.is_in_app, may_start_task=call.may_start_task)


def usable_channels(call: FeatureCall) -> Channels:
    """Return the channels of one round of a call."""
    declared = call.context.request.meta.capabilities
    if call.feature.parameters.context_parameter is None:  # it asks nothing
        return Channels(declared)
    return Channels(declared, plan_of(call).fallbacks)


def task_channels(call: FeatureCall) -> Channels:
    """Return the channels of a task: no result can show an app, or instruct the model, while it runs."""
    feature, context = call.feature, call.context
    assert isinstance(feature, Tool)
    usable = {"default", "page"} if context.serves_pages else {"default"}
    return Channels(
        context.request.meta.capabilities, tuple(each for each in feature.channels if each in usable)
    )


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
