"""As much of CloudFormation as it takes to say what a template means for given parameters."""

from collections.abc import Mapping
from typing import Any

Template = Mapping[str, Any]
Parameters = Mapping[str, Any]

NO_VALUE = {"Ref": "AWS::NoValue"}


def parameters_of(template: Template, **given: str) -> dict[str, Any]:
    """Every parameter's value: as given, else its default."""
    defaults = {name: p["Default"] for name, p in template["Parameters"].items() if "Default" in p}
    return defaults | given


def evaluate(value: Any, template: Template, parameters: Parameters) -> Any:
    """Resolve parameters, conditions and mappings in `value`; a reference to a resource stays as it is."""

    def inner(value: Any) -> Any:
        if isinstance(value, list):
            return [inner(item) for item in value]
        match value:
            case {"Ref": name} if name in parameters:
                return parameters[name]
            case {"Condition": str(name)} if len(value) == 1:
                return condition(name, template, parameters)
            case {"Fn::Equals": [left, right]}:
                return inner(left) == inner(right)
            case {"Fn::Not": [operand]}:
                return not inner(operand)
            case {"Fn::And": operands}:
                return all(inner(operands))
            case {"Fn::If": [name, then, otherwise]}:
                return inner(then if condition(name, template, parameters) else otherwise)
            case {"Fn::FindInMap": path}:
                mapping, top, second = inner(path)
                return template["Mappings"][mapping][top][second]
            case dict():
                return {name: inner(item) for name, item in value.items()}
        return value

    return inner(value)


def condition(name: str, template: Template, parameters: Parameters) -> bool:
    """Whether the named condition holds."""
    return bool(evaluate(template["Conditions"][name], template, parameters))


def broken_rules(template: Template, parameters: Parameters) -> list[str]:
    """The descriptions of the assertions in `Rules` that refuse these parameters."""
    rules = [evaluate(rule, template, parameters) for rule in template["Rules"].values()]
    assertions = [each for rule in rules if rule["RuleCondition"] for each in rule["Assertions"]]
    return [each["AssertDescription"] for each in assertions if not each["Assert"]]
