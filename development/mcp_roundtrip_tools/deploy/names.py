"""Names that contain the name of the stack, and the longest that AWS accepts.

Sources: the API references of Lambda (FunctionName, LayerName), SQS (QueueName), KMS (AliasName), AppConfig
(Name of an application), CloudWatch Logs (logGroupName) and CloudFormation (StackName).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcp_roundtrip_tools.deploy.stacks import Stack
from mcp_roundtrip_tools.template.intrinsics import Unresolvable, resolve

STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")

MAXIMUM = {
    ("AWS::Serverless::Function", "FunctionName"): 64,
    ("AWS::Serverless::LayerVersion", "LayerName"): 140,
    ("AWS::SQS::Queue", "QueueName"): 80,
    ("AWS::KMS::Alias", "AliasName"): 256,
    ("AWS::AppConfig::Application", "Name"): 64,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::ApiGatewayV2::Api", "Name"): 128,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
}
"""The characters that a property of a resource type may have."""


def refused_names(stacks: Iterable[Stack], name: str) -> Iterator[str]:
    """Yield a sentence if the stack's name is invalid, or makes the name of a resource too long.

    `stacks` are the stack `name` and its nested stacks.
    """
    if not STACK_NAME.fullmatch(name):
        yield (
            f"The stack's name {name!r} must consist of at most 128 letters, digits and hyphens, "
            "and start with a letter."
        )
        return
    lengths = (length for stack in stacks for length in _lengths(stack))
    excess, longest, maximum = max(lengths, default=(0, "", 0))
    if excess > 0:
        yield (
            f"The stack's name {name!r} is {excess} characters too long: the name {longest} would have "
            f"{len(longest)} characters, and AWS accepts {maximum}."
        )


def _lengths(stack: Stack) -> Iterator[tuple[int, str, int]]:
    """Yield by how much each name exceeds its maximum, the name and the maximum."""
    for resource in stack.tree.document["Resources"].values():
        for (kind, property_name), maximum in MAXIMUM.items():
            if resource["Type"] == kind and property_name in resource.get("Properties", {}):
                try:
                    name = resolve(resource["Properties"][property_name], stack.names)
                except Unresolvable:  # it contains what only a deployment knows
                    continue
                yield len(str(name)) - maximum, str(name), maximum
