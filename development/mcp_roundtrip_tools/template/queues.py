"""Read what invokes the functions of a template: messages of queues, and failed asynchronous invocations.

Sources: SAM's event SQS and property EventInvokeConfig of a function; CloudFormation's AWS::SQS::Queue,
AWS::Lambda::EventSourceMapping and AWS::Lambda::EventInvokeConfig.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import name_of_function, queue_name
from mcp_roundtrip_tools.template.model import (
    EventInvokeConfig,
    Queue,
    TemplateError,
    function_name,
    queue_arn,
)
from mcp_roundtrip_tools.template.resources import TemplateResource


def events_of(function: TemplateResource, kind: str) -> Iterator[TemplateResource]:
    """Yield the properties of a function's events of this type. Raises TemplateError."""
    for name, event in function.members("Events"):
        if isinstance(event, dict) and event.get("Type") == kind:
            yield function.part(f"Events.{name}", event.get("Properties") or {})


def read_queues(
    queues: Iterable[TemplateResource],
    mappings: Iterable[TemplateResource],
    functions: Iterable[TemplateResource],
    left_out: LeftOut,
) -> dict[str, Queue]:
    """Return the queues by name. Mappings whose queue is not in the template are left out."""
    by_arn: dict[str, TemplateResource] = {}
    for queue in queues:
        with left_out.noting():
            by_arn[queue_arn(queue_name(queue))] = queue
    readers: dict[str, str] = {}
    for source, member, function in _readers(mappings, functions):
        with left_out.noting():
            arn = source.text(member)
            if arn not in by_arn:
                raise TemplateError(f"{source.name}.{member}: must be a queue of this template")
            readers[arn] = function_name(function or source.text("FunctionName"))
    found = {}
    for arn, queue in by_arn.items():
        with left_out.noting():
            found[queue_name(queue)] = _queue(queue, readers.get(arn), by_arn)
    return found


def _queue(queue: TemplateResource, reader: str | None, by_arn: Mapping[str, TemplateResource]) -> Queue:
    redrive = queue.get_known("RedrivePolicy")
    target = by_arn.get(redrive.get("deadLetterTargetArn", ""))
    return Queue(
        queue_name(queue),
        reader,
        queue.number("VisibilityTimeout", 30),
        float(redrive.get("maxReceiveCount", math.inf)),
        None if target is None else queue_name(target),
    )


def _readers(
    mappings: Iterable[TemplateResource], functions: Iterable[TemplateResource]
) -> Iterator[tuple[TemplateResource, str, str | None]]:
    """Yield what maps a queue to a function, the property with the queue, and the function of an event."""
    for mapping in mappings:
        yield mapping, "EventSourceArn", None
    for function in functions:
        for event in events_of(function, "SQS"):
            yield event, "Queue", name_of_function(function)


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
    return EventInvokeConfig(
        int(config.number("MaximumRetryAttempts", default.max_retries)),
        config.number("MaximumEventAgeInSeconds", default.max_age_s),
    )
