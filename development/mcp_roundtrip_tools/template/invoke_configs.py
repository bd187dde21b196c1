"""Read how Lambda treats failed asynchronous invocations of the functions of a template.

Sources: SAM's property EventInvokeConfig of a function, and CloudFormation's AWS::Lambda::EventInvokeConfig.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import name_of_function
from mcp_roundtrip_tools.template.model import EventInvokeConfig, function_name
from mcp_roundtrip_tools.template.resource import TemplateResource


def read_invoke_configs(
    functions: Iterable[TemplateResource], separate: Iterable[TemplateResource], left_out: LeftOut
) -> dict[str, EventInvokeConfig]:
    """Return the configurations by function name, of functions and of resources of their own.

    All versions of a function are the same here, so the qualifier does not matter. What cannot be resolved is
    left out.
    """
    found = {}
    for function in functions:
        with left_out.noting():
            config = function.part("EventInvokeConfig", dict(function.members("EventInvokeConfig")))
            found[name_of_function(function)] = _event_invoke_config(config)
    for config in separate:
        with left_out.noting():
            found[function_name(config.text("FunctionName"))] = _event_invoke_config(config)
    return found


def _event_invoke_config(config: TemplateResource) -> EventInvokeConfig:
    default = EventInvokeConfig()
    on_failure = config.get_known("DestinationConfig").get("OnFailure") or {}
    return EventInvokeConfig(
        int(config.number("MaximumRetryAttempts", default.max_retries)),
        config.number("MaximumEventAgeInSeconds", default.max_age_s),
        on_failure.get("Destination"),
    )
