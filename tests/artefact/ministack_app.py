"""ministack 1.5.33, extended by what template.yaml needs. It runs in ministack's own interpreter.

- ministack does not know `AWS::IAM::RolePolicy`. It is handled like `AWS::IAM::Policy`.
- ministack does not evaluate `Fn::Join` in Conditions.
- ministack refuses alarms on metric math. They are created without a metric and never fire.
- ministack's policies do not know the condition keys of KMS, so conditional permissions never apply.
- ministack leaves the MaximumConcurrency of an event source mapping as text if it is a parameter, and
  then polls no queue.

Every request that a policy allows is printed, so that tests can compare a role with its use.
"""

import json
from collections.abc import Callable
from typing import Any

from ministack.app import app
from ministack.core import iam_actions, iam_evaluator
from ministack.services.cloudformation import changesets, engine, handlers, stacks
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS as HANDLERS

__all__ = ["app"]

INLINE_POLICY = HANDLERS["AWS::IAM::Policy"]
ALARM = HANDLERS["AWS::CloudWatch::Alarm"]
KMS_CONDITION_KEYS = ("MacAlgorithm", "MessageType", "SigningAlgorithm")

Properties = dict[str, Any]

_evaluate_conditions = engine._evaluate_conditions
_request_tag_context = iam_actions.request_tag_context
_enforce = iam_evaluator.enforce


def of_one_role(properties: Properties) -> Properties:
    """Return properties of an AWS::IAM::Policy equivalent to those of an AWS::IAM::RolePolicy."""
    return {**properties, "Roles": [properties["RoleName"]]}


def of_one_metric(properties: Properties) -> Properties:
    """Return the properties of an alarm with a missing metric in place of metric math."""
    if "Metrics" not in properties:
        return properties
    remaining = {name: value for name, value in properties.items() if name != "Metrics"}
    return {"Namespace": "none", "MetricName": "none", "Statistic": "Sum", "Period": 60, **remaining}


def evaluate_conditions(template: dict[str, Any], parameters: dict[str, Any]) -> dict[str, bool]:
    conditions = joined(template.get("Conditions", {}), parameters)
    return _evaluate_conditions({**template, "Conditions": conditions}, parameters)


def joined(value: Any, parameters: dict[str, Any]) -> Any:
    """Return the condition with each Fn::Join of a list parameter replaced by its value."""
    match value:
        case {"Fn::Join": [delimiter, {"Ref": parameter}]}:
            return delimiter.join(item.strip() for item in parameters[parameter]["Value"].split(","))
        case dict():
            return {name: joined(each, parameters) for name, each in value.items()}
        case list():
            return [joined(each, parameters) for each in value]
    return value


def condition_keys(service: str, action: str, body: bytes, parameters: Any) -> dict[str, Any]:
    """Return the condition keys of a request."""
    given = json.loads(body) if service == "kms" else {}
    of_kms = {f"kms:{name}": given[name] for name in KMS_CONDITION_KEYS if name in given}
    return {**_request_tag_context(service, action, body, parameters), **of_kms}


def enforce_and_print(access_key: str, action: str, *rest: Any, **names: Any) -> Any:
    """Return the denial of a request, or None; print an allowed one."""
    denied = _enforce(access_key, action, *rest, **names)
    if not denied:
        print("allowed", action, access_key, flush=True)
    return denied


def handler(of: dict[str, Any], translate: Callable[[Properties], Properties]) -> dict[str, Any]:
    """Return a handler that passes the translated properties to the one of `of`."""
    return {
        **of,
        "create": lambda name, new, stack: of["create"](name, translate(new), stack),
        "update": lambda physical_id, old, new, *rest, **names: of["update"](
            physical_id, translate(old), translate(new), *rest, **names
        ),
        "delete": lambda physical_id, old: of["delete"](physical_id, translate(old)),
    }


def of_numbers(properties: Properties) -> Properties:
    """Return the properties of an event source mapping with numeric scaling."""
    scaling = properties.get("ScalingConfig")
    if scaling is None:
        return properties
    return {**properties, "ScalingConfig": {name: int(value) for name, value in scaling.items()}}


HANDLERS["AWS::Lambda::EventSourceMapping"] = handler(HANDLERS["AWS::Lambda::EventSourceMapping"], of_numbers)
HANDLERS["AWS::IAM::RolePolicy"] = handler(INLINE_POLICY, of_one_role)
HANDLERS["AWS::CloudWatch::Alarm"] = handler(ALARM, of_one_metric)
iam_actions.request_tag_context = condition_keys
iam_evaluator.enforce = enforce_and_print
for module in (changesets, engine, handlers, stacks):
    module._evaluate_conditions = evaluate_conditions
