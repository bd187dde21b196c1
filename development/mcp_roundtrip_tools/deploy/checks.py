"""What would fail during or after a deployment and can be known before the build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_roundtrip_tools.deploy import identity
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Environment
from mcp_roundtrip_tools.deploy.names import refused_names
from mcp_roundtrip_tools.deploy.parameters import (
    Declared,
    broken_rules,
    defaults,
    template_names,
    unknown,
)
from mcp_roundtrip_tools.template.allowed_values import refused_value
from mcp_roundtrip_tools.template.intrinsics import Unresolvable, resolve

IN_THE_REGION = (
    *("CertificateArn", "StateKeyArn", "TrustedStateKeyArns", "StateEncryptionKeyArn"),
    *("TrustedStateEncryptionKeyArns", "DataKeyArn", "AlarmTopicArn", "LambdaAuthorizerArn"),
)
"""Parameters with ARNs of resources that must be in the Region of the stack."""

_ARN_REGION = re.compile(r"arn:[^:]+:[^:]+:([a-z0-9-]+):")


def values_of(template: Mapping[str, Any], environment: Environment) -> dict[str, str]:
    """Return the value of every parameter: of the environment, otherwise the default."""
    return {**defaults(declared_parameters(template)), **environment.parameters}


def declared_parameters(template: Mapping[str, Any]) -> Declared:
    """Return the parameters of the template."""
    declared: Declared = template.get("Parameters") or {}
    return declared


def refusals(template: Mapping[str, Any], environment: Environment, region: str | None) -> Iterator[str]:
    """Yield a sentence for each reason to refuse this deployment. `region` is None if it is not known."""
    declared, values = declared_parameters(template), values_of(template, environment)
    for name, hint in unknown(declared, environment.parameters):
        yield f"{hint} {environment.file_of(name)} sets it: change or delete that line."
    missing = [name for name in declared if name not in values]
    yield from (f"{name} has no value. Set it with {how_to_set(environment, name)}" for name in missing)
    checked = [refused_value(name, declared[name], values[name]) for name in declared if name in values]
    wrong = [problem for problem in checked if problem]
    yield from wrong
    if not missing and not wrong:  # rules compare valid values
        yield from broken_rules(template, values)
        yield from filter(None, (rule(values) for rule in identity.RULES))
    yield from _other_regions(values, region)
    stack = environment.option("stack_name")
    if stack is None:
        yield f"The stack has no name. Set stack_name in [{environment.name}.global.parameters]."
    else:
        yield from refused_names(template, values, stack)


def how_to_set(environment: Environment, name: str) -> str:
    """Return the command that sets a parameter of the template."""
    selected = "" if environment.name == DEFAULT else f" ENV={environment.name}"
    return f'make deploy{selected} PARAMETERS="{name}=…"'


def workers(template: Mapping[str, Any], values: Mapping[str, str], stack: str) -> dict[str, int]:
    """Return the reserved concurrency of each function that reserves some, by the function's name."""
    names = template_names(template, values, StackName=stack)
    found = {}
    for logical_id, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        try:
            reserved = resolve(properties.get("ReservedConcurrentExecutions"), names)
            name = resolve(properties.get("FunctionName", logical_id), names)
        except Unresolvable:
            continue
        if reserved is not None:
            found[str(name)] = int(reserved)
    return found


def _other_regions(values: Mapping[str, str], region: str | None) -> Iterator[str]:
    for name in IN_THE_REGION:
        for arn in values.get(name, "").split(","):
            match = _ARN_REGION.match(arn.strip())
            if region and match and match[1] != region:
                yield f"{name} names a resource in {match[1]}; it must be in {region}, as the stack."
