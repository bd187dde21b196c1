"""Read how Lambda treats failed asynchronous invocations of the functions of a template.

Sources: SAM's property EventInvokeConfig of a function, and CloudFormation's AWS::Lambda::EventInvokeConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_roundtrip_local.template.model import EventInvokeConfig, function_name
from mcp_roundtrip_local.template.resource import TemplateResource

PROPERTIES = ("MaximumRetryAttempts", "MaximumEventAgeInSeconds", "DestinationConfig")


def read_invoke_configs(
    functions: Iterable[TemplateResource], separate: Iterable[TemplateResource]
) -> dict[str, EventInvokeConfig]:
    """Return the configurations by function name, of functions and of resources of their own.

    All versions of a function are the same here, so the qualifier does not matter.
    """
    found = [(each.text("FunctionName", each.name), each.get("EventInvokeConfig")) for each in functions]
    for each in separate:
        found.append(
            (function_name(each.text("FunctionName")), {name: each.get(name) for name in PROPERTIES})
        )
    return {name: _event_invoke_config(given) for name, given in found if given}


def _event_invoke_config(given: Mapping[str, Any]) -> EventInvokeConfig:
    default = EventInvokeConfig()
    retries, age_s = given.get("MaximumRetryAttempts"), given.get("MaximumEventAgeInSeconds")
    destination = ((given.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination")
    return EventInvokeConfig(
        default.max_retries if retries is None else int(retries),
        default.max_age_s if age_s is None else float(age_s),
        destination,
    )
