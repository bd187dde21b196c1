"""ministack 1.5.33, extended by what template.yaml needs. It runs in ministack's own interpreter.

- ministack writes no JSON system logs, and log streams of a shared group do not name the function.
- ministack does not evaluate `Fn::Join` in Conditions.
- ministack does not transform the templates of nested stacks.
- ministack updates every resource of a nested stack, also an unchanged one, and forgets attributes.
- ministack refuses alarms on metric math. They are created without a metric and never fire.
- ministack's policies do not know the condition keys of KMS, so conditional permissions never apply, and
  compare a request that names an alias with the alias instead of its key.
- ministack compares requests about log streams with the ARN of their group, which ends with `:*` in policies.
- ministack leaves the MaximumConcurrency of an event source mapping as text if it is a parameter, and
  then polls no queue.
- ministack deploys in less than a second, and keeps the names of change sets, for which sam takes the second.
- ministack has no CodeDeploy. Its resources exist only in their stack.
- Events of ministack name its own host, where AWS writes the domain that it assigned to the API.
- ministack unpacks the layer for each execution environment, in half a second. Here they share a folder.
- ministack counts the depth of invocations, for which each execution environment imports botocore.

Every request that a policy allows is printed, so that tests can compare a role with its use.
"""

import json
import tempfile
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from ministack.app import app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import apigateway, cloudwatch_logs, kms, lambda_svc
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS as HANDLERS

__all__ = ["app"]

ALARM = HANDLERS["AWS::CloudWatch::Alarm"]
KMS_CONDITION_KEYS = ("MacAlgorithm", "MessageType", "SigningAlgorithm")

COUNT_DEPTH = "    _ms_install_invoke_depth()\n"
FILES_OF_A_LAYER = 100
UNPACKED: dict[frozenset[tuple[str, int]], Path] = {}
UNPACKING = Lock()

Properties = dict[str, Any]

ATTRIBUTES: dict[str, Properties] = {}
"""The attributes of resources by physical id."""

_evaluate_conditions = engine._evaluate_conditions
_extract_resource_arn = iam_actions.extract_resource_arn
_request_tag_context = iam_actions.request_tag_context
_enforce = iam_evaluator.enforce
_create_change_set = changesets._create_change_set
_emit_lambda_logs = lambda_svc._emit_lambda_logs
_provision_resource = provisioners._provision_resource
_update_resource = provisioners._update_resource


def emit_logs(
    function: dict[str, Any], request_id: str, text: str, error: bool, duration_ms: int, **more: Any
) -> None:
    """Write the logs of an invocation as Lambda does with LogFormat JSON (developer guide, "Log formats")."""
    config = function.get("config") or function
    logging = config.get("LoggingConfig") or {}
    if logging.get("LogFormat") != "JSON" or "LogGroup" not in logging:
        _emit_lambda_logs(function, request_id, text, error, duration_ms, **more)
        return
    now = datetime.now(UTC)
    version = config.get("Version", "$LATEST")
    started = {"requestId": request_id, "version": version}
    report = {
        "requestId": request_id,
        "status": "error" if error else "success",
        "metrics": {"durationMs": duration_ms, "memorySizeMB": config.get("MemorySize", 128)},
    }
    lines = [system_line("start", started), *text.splitlines(), system_line("report", report)]
    stream = f"{now:%Y/%m/%d}/{config['FunctionName']}[{version}]{uuid4().hex}"
    cloudwatch_logs._create_log_stream({"logGroupName": logging["LogGroup"], "logStreamName": stream})
    events = [{"timestamp": int(time.time() * 1000), "message": line} for line in lines]
    cloudwatch_logs._put_log_events(
        {"logGroupName": logging["LogGroup"], "logStreamName": stream, "logEvents": events}
    )


def system_line(kind: str, record: dict[str, Any]) -> str:
    return json.dumps({"time": datetime.now(UTC).isoformat(), "type": f"platform.{kind}", "record": record})


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


def resource_arn(service: str, *request: Any) -> str:
    """Return the ARN that policies are compared with."""
    arn: str = _extract_resource_arn(service, *request)
    if arn in kms._aliases:
        return f"{arn.partition(':alias/')[0]}:key/{kms._aliases[arn]}"
    return f"{arn}:log-stream:" if ":log-group:" in arn else arn


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


def transforming(operation: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return the operation of a nested stack, with the SAM transform of its template.

    `position` is that of the properties among the arguments. No other stack may be deployed meanwhile.
    """

    def run(*arguments: Any, **names: Any) -> Any:
        given = arguments[position].get("Parameters") or {}
        parse = engine._parse_template
        engine._parse_template = lambda body: transformed(parse(body), given)
        try:
            return operation(*arguments, **names)
        finally:
            engine._parse_template = parse

    return run


def transformed(template: dict[str, Any], given: dict[str, Any]) -> Any:
    """Return the template after the SAM transform, which ministack gives no values but the defaults."""
    declared = template.get("Parameters", {})
    parameters = {name: {"Default": given[name], **each} for name, each in declared.items() if name in given}
    return engine._apply_transforms({**template, "Parameters": {**declared, **parameters}})


def remembered(run: Callable[..., tuple[str, Properties]]) -> Callable[..., tuple[str, Properties]]:
    """Return a function that creates or updates a resource, and knows the attributes that it had before."""

    def provision(kind: str, name: str, *given: Any, **named: Any) -> tuple[str, Properties]:
        if run is _update_resource and given[0] == given[1] and name in ATTRIBUTES:
            return name, ATTRIBUTES[name]
        physical_id, attributes = run(kind, name, *given, **named)
        ATTRIBUTES[physical_id] = {**ATTRIBUTES.get(physical_id, {}), **attributes}
        return physical_id, ATTRIBUTES[physical_id]

    return provision


def create_change_set(parameters: dict[str, Any]) -> Any:
    """Create a change set. Those of `sam deploy`, which addresses them by their ids, have unique names."""
    [name] = parameters["ChangeSetName"]
    if name.startswith("samcli-deploy"):
        parameters = {**parameters, "ChangeSetName": [f"{name}-{uuid4().hex}"]}
    return _create_change_set(parameters)


class SharedLayer(zipfile.ZipFile):
    """An archive of a layer or a function. A layer, which has many files, is unpacked once, and linked."""

    def namelist(self) -> list[str]:
        return []  # ministack resolves each name twice, which takes longer than to unpack it

    def extractall(self, path: Any = None, *more: Any) -> None:
        names = super().namelist()
        if len(names) < FILES_OF_A_LAYER:
            super().extractall(path, names)
            return
        content = frozenset((each.filename, each.CRC) for each in self.filelist)
        with UNPACKING:
            if content not in UNPACKED:
                folder = tempfile.mkdtemp(prefix="layer-")
                super().extractall(folder, names)
                UNPACKED[content] = Path(folder)
        for entry in UNPACKED[content].iterdir():
            Path(path, entry.name).symlink_to(entry)


NESTED = HANDLERS["AWS::CloudFormation::Stack"]
apigateway._HOST = "us-east-1.amazonaws.com"
HANDLERS["AWS::CloudFormation::Stack"] = {
    **NESTED,
    "create": transforming(NESTED["create"], 1),
    "update": transforming(NESTED["update"], 2),
}
HANDLERS["AWS::Lambda::EventSourceMapping"] = handler(HANDLERS["AWS::Lambda::EventSourceMapping"], of_numbers)
for kind in ("Application", "DeploymentGroup"):
    HANDLERS[f"AWS::CodeDeploy::{kind}"] = {
        "create": lambda name, properties, stack: (f"{stack}-{name}", {}),
        "update": lambda physical_id, old, new, stack: (physical_id, {}),
        "delete": lambda physical_id, properties: None,
    }
HANDLERS["AWS::CloudWatch::Alarm"] = handler(ALARM, of_one_metric)
handlers._ACTION_HANDLERS["CreateChangeSet"] = create_change_set
iam_actions.extract_resource_arn = resource_arn
iam_actions.request_tag_context = condition_keys
iam_evaluator.enforce = enforce_and_print
lambda_svc._emit_lambda_logs = emit_logs
assert COUNT_DEPTH in lambda_runtime._PYTHON_WORKER_SCRIPT
lambda_runtime._PYTHON_WORKER_SCRIPT = lambda_runtime._PYTHON_WORKER_SCRIPT.replace(COUNT_DEPTH, "")
lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": SharedLayer})
for module in (changesets, engine, handlers, stacks):
    module._evaluate_conditions = evaluate_conditions
provisioners._provision_resource = remembered(_provision_resource)
provisioners._update_resource = remembered(_update_resource)
