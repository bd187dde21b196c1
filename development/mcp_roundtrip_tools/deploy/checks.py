"""What would fail during or after a deployment and can be known before the build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from mcp_roundtrip_tools.deploy.environments import DEFAULT, Environment
from mcp_roundtrip_tools.deploy.identity import refused_identity
from mcp_roundtrip_tools.deploy.stacks import (
    Stack,
    defaults,
    known_values,
    read_stacks,
    refused_by_nested,
    refused_names,
    unknown_parameter,
)
from mcp_roundtrip_tools.template.intrinsics import Unresolvable, resolve
from mcp_roundtrip_tools.template.parameters import refused_value
from mcp_roundtrip_tools.template.template_tree import TemplateTree
from mcp_roundtrip_tools.template.validation import broken_assertions

IN_THE_REGION = (
    *("CertificateArn", "StateKeyArn", "TrustedStateKeyArns", "StateEncryptionKeyArn"),
    *("TrustedStateEncryptionKeyArns", "DataKeyArn", "AlarmTopicArn", "LambdaAuthorizerArn"),
)
"""Parameters with ARNs of resources that must be in the Region of the stack."""

_ARN_REGION = re.compile(r"arn:[^:]+:[^:]+:([a-z0-9-]+):")


def values_of(tree: TemplateTree, environment: Environment) -> dict[str, str]:
    """Return the value of every parameter of the template: of the environment, otherwise the default."""
    return {**defaults(tree.declared), **environment.parameters}


def refusals(tree: TemplateTree, environment: Environment, region: str | None) -> Iterator[str]:
    """Yield a sentence for each reason to refuse this deployment. `region` is None if it is not known."""
    declared, values = tree.declared, values_of(tree, environment)
    for name, value in environment.parameters.items():
        if name not in declared:
            problem = unknown_parameter(name, value, tree)
            yield f"{problem} {environment.file_of(name)} sets it: change or delete that line."
    missing = [name for name in declared if name not in values]
    yield from (f"{name} has no value. Set it with {how_to_set(environment, name)}" for name in missing)
    checked = [refused_value(name, declared[name], values[name]) for name in declared if name in values]
    wrong = [problem for problem in checked if problem]
    yield from wrong
    stack_name = environment.option("stack_name")
    root, *nested = stacks = read_stacks(tree, values, stack_name)
    known = known_values(stacks)
    if not missing and not wrong:  # rules compare valid values
        broken = broken_assertions(tree.document, root.names)
        yield from (f"{assertion['AssertDescription']}." for assertion in broken)
        for stack in nested:
            yield from refused_by_nested(stack)
        yield from refused_identity(known)
    yield from _other_regions(known, region)
    if stack_name is None:
        yield f"The stack has no name. Set stack_name in [{environment.name}.global.parameters]."
    else:
        yield from refused_names(stacks, stack_name)


def how_to_set(environment: Environment, name: str) -> str:
    """Return the command that sets a parameter of the template."""
    selected = "" if environment.name == DEFAULT else f" ENV={environment.name}"
    return f'make deploy{selected} PARAMETERS="{name}=…"'


def workers(stacks: Iterable[Stack]) -> dict[str, int]:
    """Return the reserved concurrency of each function that reserves some, by the function's name."""
    found = {}
    for stack in stacks:
        for logical_id, resource in stack.tree.document["Resources"].items():
            properties = resource.get("Properties", {})
            try:
                reserved = resolve(properties.get("ReservedConcurrentExecutions"), stack.names)
                name = resolve(properties.get("FunctionName", logical_id), stack.names)
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
