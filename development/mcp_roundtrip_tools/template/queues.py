"""Read the queues of a template, with the functions that their messages invoke.

Sources: SAM's event SQS of a function; CloudFormation's AWS::SQS::Queue and AWS::Lambda::EventSourceMapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from mcp_roundtrip_tools.template.events import events_of
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import name_of_function, queue_name
from mcp_roundtrip_tools.template.model import Queue, TemplateError, function_name, queue_arn
from mcp_roundtrip_tools.template.resource import TemplateResource


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
