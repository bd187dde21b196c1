"""Read the queues of a template, with the functions that their messages invoke.

Sources: SAM's event SQS of a function; CloudFormation's AWS::SQS::Queue and AWS::Lambda::EventSourceMapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from mcp_roundtrip_local.template.events import events_of
from mcp_roundtrip_local.template.model import Queue, TemplateError, function_name, queue_arn
from mcp_roundtrip_local.template.resource import TemplateResource


def queue_name(queue: TemplateResource) -> str:
    """Return the name of a queue on this computer: its own, otherwise its logical id."""
    return queue.text("QueueName", queue.name)


def read_queues(
    queues: Iterable[TemplateResource],
    mappings: Iterable[TemplateResource],
    functions: Iterable[TemplateResource],
) -> dict[str, Queue]:
    """Return the queues by name. Raises TemplateError for a mapping whose queue is not in the template."""
    by_arn = {queue_arn(queue_name(queue)): queue for queue in queues}
    readers: dict[str, str] = {}
    for source, arn, function in _readers(mappings, functions):
        if arn not in by_arn:
            raise TemplateError(f"{source}: must be a queue of this template")
        readers[arn] = function
    found = {}
    for arn, queue in by_arn.items():
        redrive = queue.get("RedrivePolicy", {})
        target = by_arn.get(redrive.get("deadLetterTargetArn", ""))
        found[queue_name(queue)] = Queue(
            queue_name(queue),
            readers.get(arn),
            queue.number("VisibilityTimeout", 30),
            float(redrive.get("maxReceiveCount", math.inf)),
            None if target is None else queue_name(target),
        )
    return found


def _readers(
    mappings: Iterable[TemplateResource], functions: Iterable[TemplateResource]
) -> Iterator[tuple[str, str, str]]:
    """Yield the property with the queue, the queue's ARN and the function's name of each mapping."""
    for mapping in mappings:
        source = f"{mapping.name}.EventSourceArn"
        yield source, mapping.text("EventSourceArn"), function_name(mapping.text("FunctionName"))
    for function in functions:
        for event in events_of(function, "SQS"):
            yield f"{event.name}.Queue", event.text("Queue"), function.text("FunctionName", function.name)
