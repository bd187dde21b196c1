"""Evaluation of a CloudFormation template for given parameters, limited to the features used here."""

import re
from collections.abc import Mapping
from typing import Any

Template = Mapping[str, Any]
Parameters = Mapping[str, Any]

NO_VALUE = {"Ref": "AWS::NoValue"}


class Refused(Exception):
    """CloudFormation refuses a parameter value; the message is the description of the constraint."""


def parameters_of(template: Template, **given: str) -> dict[str, Any]:
    """Return the value of every parameter: given or default. Raises Refused."""
    return {
        name: _parameter(name, declared, str(given.get(name, declared.get("Default"))))
        for name, declared in template["Parameters"].items()
        if name in given or "Default" in declared
    }


def _parameter(name: str, declared: Mapping[str, Any], value: str) -> str | list[str]:
    listed = declared["Type"] == "CommaDelimitedList"
    values = [item.strip() for item in value.split(",")] if listed else [value]
    allowed = [str(option) for option in declared.get("AllowedValues", [value])]
    pattern = declared.get("AllowedPattern", ".*")  # the constraint applies to each item of a list
    if value not in allowed or not all(re.fullmatch(pattern, item) for item in values):
        raise Refused(f"{name} {declared.get('ConstraintDescription', 'is not allowed')}: {value!r}")
    return values if listed else value


def evaluate(value: Any, template: Template, parameters: Parameters, prefix: str = "") -> Any:
    """Resolve parameters, conditions, mappings and functions in `value`.

    Values known only to a deployment stay as in Fn::Sub: ``${Resource}``, ``${Resource.Attribute}``, with
    `prefix` before names of resources. `parameters` may also have attributes: "Platform.Outputs.Api".
    """

    def inner(value: Any) -> Any:
        value = chosen(value)
        if isinstance(value, list):
            return [inner(item) for item in value if chosen(item) != NO_VALUE]
        match value:
            case {"Ref": name}:
                return parameters[name] if name in parameters else attribute(name)
            case {"Fn::GetAtt": path}:
                return inner({"Ref": ".".join(path)})
            case {"Condition": str(name)} if len(value) == 1:
                return condition(name, template, parameters)
            case {"Fn::Equals": [left, right]}:
                return inner(left) == inner(right)
            case {"Fn::EachMemberEquals": [members, value]}:
                return all(member == inner(value) for member in inner(members))
            case {"Fn::Not": [operand]}:
                return not inner(operand)
            case {"Fn::And": operands}:
                return all(inner(operands))
            case {"Fn::Or": operands}:
                return any(inner(operands))
            case {"Fn::FindInMap": path}:
                mapping, top, second = inner(path)
                return template["Mappings"][mapping][top][second]
            case {"Fn::Join": [delimiter, items]}:
                return delimiter.join(inner(items))
            case {"Fn::Select": [index, items]}:
                return inner(items)[int(index)]
            case {"Fn::Split": [delimiter, text]}:
                return inner(text).split(delimiter)
            case {"Fn::Sub": [text, names]}:
                return re.sub(
                    r"\$\{([^}]+)\}", lambda name: inner(names.get(name[1], {"Ref": name[1]})), text
                )
            case {"Fn::Sub": text}:
                return inner({"Fn::Sub": [text, {}]})
            case dict() as members:
                return {name: inner(item) for name, item in members.items() if chosen(item) != NO_VALUE}
            case plain:
                return plain

    def attribute(name: str) -> Any:
        resource, _, member = name.partition(".")
        match template.get("Resources", {}).get(resource), member:
            case {"Type": "AWS::SSM::Parameter", "Properties": {"Value": text}}, "Value":
                return inner(text)
            case None, _:
                return f"${{{name}}}"
        return f"${{{prefix}{name}}}"

    def chosen(value: Any) -> Any:
        match value:
            case {"Fn::If": [name, then, otherwise]}:
                return chosen(then if condition(name, template, parameters) else otherwise)
        return value

    return inner(value)


def condition(name: str, template: Template, parameters: Parameters) -> bool:
    """Return whether the named condition holds."""
    return bool(evaluate(template["Conditions"][name], template, parameters))


def resources(template: Template, parameters: Parameters, prefix: str = "") -> dict[str, Any]:
    """Return the existing resources by `prefix` and logical id, with evaluated properties."""

    def properties(resource: Mapping[str, Any]) -> Any:
        return evaluate(resource.get("Properties", {}), template, parameters, prefix)

    return {
        f"{prefix}{name}": {**resource, "Properties": properties(resource)}
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or condition(resource["Condition"], template, parameters)
    }


def outputs(template: Template, parameters: Parameters, prefix: str = "") -> dict[str, Any]:
    """Return the values of the existing outputs."""
    return {
        name: evaluate(output["Value"], template, parameters, prefix)
        for name, output in template.get("Outputs", {}).items()
        if "Condition" not in output or condition(output["Condition"], template, parameters)
    }


def broken_rules(template: Template, parameters: Parameters) -> list[str]:
    """Return the descriptions of the assertions in `Rules` that refuse these parameters."""
    rules = [evaluate(rule, template, parameters) for rule in template.get("Rules", {}).values()]
    assertions = [each for rule in rules if rule.get("RuleCondition", True) for each in rule["Assertions"]]
    return [each["AssertDescription"] for each in assertions if not each["Assert"]]
