"""Names that contain the name of the stack, and the longest that AWS accepts.

Sources: the API references of Lambda (FunctionName, LayerName), SQS (QueueName), KMS (AliasName), AppConfig
(Name of an application), CloudWatch Logs (logGroupName) and CloudFormation (StackName).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_roundtrip_tools.deploy.parameters import template_names
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


def refused_names(template: Mapping[str, Any], values: Mapping[str, str], stack: str) -> Iterator[str]:
    """Yield a sentence if the stack's name is invalid, or makes the name of a resource too long."""
    if not STACK_NAME.fullmatch(stack):
        yield (
            f"The stack's name {stack!r} must consist of at most 128 letters, digits and hyphens, "
            "and start with a letter."
        )
        return
    excess, name, maximum = max(_lengths(template, values, stack), default=(0, "", 0))
    if excess > 0:
        yield (
            f"The stack's name {stack!r} is {excess} characters too long: the name {name} would have "
            f"{len(name)} characters, and AWS accepts {maximum}."
        )


def _lengths(
    template: Mapping[str, Any], values: Mapping[str, str], stack: str
) -> Iterator[tuple[int, str, int]]:
    """Yield by how much each name exceeds its maximum, the name and the maximum."""
    names = template_names(template, values, StackName=stack)
    for resource in template["Resources"].values():
        for (kind, property_name), maximum in MAXIMUM.items():
            if resource["Type"] == kind and property_name in resource.get("Properties", {}):
                try:
                    name = resolve(resource["Properties"][property_name], names)
                except Unresolvable:  # it contains what only a deployment knows
                    continue
                yield len(str(name)) - maximum, str(name), maximum
