"""template.yaml after the SAM transform, evaluated with its nested stacks for given parameters."""

import fcntl
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from mcp_roundtrip_tools.template.yaml_reader import load, parse
from support import forked_programs
from support.cloudformation import Stack, evaluate_stack, with_options
from support.project import ROOT, functions
from support.sam_build import CACHE, SAM, run

PLATFORM = ROOT / "platform/template.yaml"
OPTIONS_PAGE = ROOT / "docs/reference/options.md"
LANDING_ZONES_PAGE = ROOT / "docs/guides/landing-zones.md"
TRANSFORM = Path(__file__).parents[1] / "sam/transform.py"

FRONT_DOOR = "FrontDoorFunction"
FOLDERS = functions()
WORKER_OF = {
    name.replace("WorkerFunction", "Function"): name for name in FOLDERS if name.endswith("WorkerFunction")
}
"""The functions whose tools have tasks, with their worker functions."""

TOOLS = sorted(set(FOLDERS) - {FRONT_DOOR, *WORKER_OF.values()})

LANDING_ZONE = "landing zone"
PROVISIONED_CONCURRENCY = "Provisioned concurrency"

AUTH_MODES: dict[str, dict[str, str]] = {
    "none": {},
    "iam": {},
    "bearer": {"TokenIssuer": "https://issuer.example"},
    "jwt": {"TokenIssuer": "https://issuer.example"},
    "lambda": {"LambdaAuthorizerArn": "arn:aws:lambda:eu-west-1:123456789012:function:authorizer"},
}
"""The parameters that each AuthMode requires."""

DOMAIN = {
    "DomainName": "tools.example",
    "CertificateArn": "arn:aws:acm:eu-west-1:123456789012:certificate/1d2c3b4a",
}

MAX_STACK_NAME = 25
"""The longest name of a stack whose functions may have the longest names (sam/test_limits.py)."""

_STACK = "s" * MAX_STACK_NAME
_KEY = "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"
VALUES = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "us-gov-west-1",
    "AWS::StackName": _STACK,
    "Api.ApiEndpoint": "https://a1b2c3d4e5.execute-api.us-gov-west-1.amazonaws.com",
    "ApprovalTable": f"{_STACK}-ApprovalTable-A1B2C3D4E5F6",
    "AuditLogs": f"{_STACK}-Platform-1A2B3C4D5E6F7-AuditLogs-A1B2C3D4E5F6",
    "SettingsVersion": "1000",
    "StateEncryptionKey.Arn": _KEY,
    "StateKey.Arn": _KEY,
    "TaskTable": f"{_STACK}-Platform-1A2B3C4D5E6F7-TaskTable-A1B2C3D4E5F6",
    "TasksQueue": f"https://sqs.us-gov-west-1.amazonaws.com/123456789012/{_STACK}_{'x' * 30}_tasks",
    "WorkerFunctionVersion": (
        f"arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:{_STACK}_{'x' * 30}_worker:1000"
    ),
}
"""What a deployment has in place of references in variables, as long as it can be."""


def transformed_file(template: Path, **given: str) -> str:
    """Transform any template with these parameters. Processes that need the same one wait for the first."""
    overrides = [f"{name}={value}" for name, value in given.items()]
    content = [
        template.read_text("utf-8"),
        overrides,
        TRANSFORM.read_text("utf-8"),
        SAM.stat().st_mtime_ns,
    ]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    path = CACHE / f"transformed/{digest}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if known := file.read():
            return known
        done = run(forked_programs.python_of_sam(), "-P", TRANSFORM, template, *overrides)
        assert done.returncode == 0, done.stderr
        file.write(done.stdout)
        return done.stdout


@cache
def transformed() -> dict[str, Any]:
    """Return the CloudFormation template of template.yaml, with unresolved parameters."""
    template: dict[str, Any] = parse(transformed_file(ROOT / "template.yaml", AuthMode="none"))
    return template


@cache
def declared_parameters() -> dict[str, Any]:
    """Return the declarations of all parameters: those of template.yaml, and the options of the platform."""
    return {**load(PLATFORM)["Parameters"], **transformed()["Parameters"]}


@cache
def stack(*blocks: str, **given: str) -> Stack:
    """Return the evaluated stack with these parameters, options, and documented blocks.

    AuthMode is none unless given.
    """
    template = parse(with_blocks(*blocks)) if blocks else transformed()
    own = {name: value for name, value in given.items() if name in template["Parameters"]}
    options = {name: value for name, value in given.items() if name not in own}
    return evaluate_stack(with_options(template, options), ROOT, {"AuthMode": "none", **own})


def parameters(**given: str) -> dict[str, Any]:
    """Return the value of every parameter of template.yaml, and of every option."""
    whole = stack(**given)
    return {**whole.nested["Platform"].parameters, **whole.parameters}


def deployed(*blocks: str, **given: str) -> dict[str, Any]:
    """Return the evaluated resources of all stacks with these parameters, options, and documented blocks."""
    return stack(*blocks, **given).resources


def of_type(resource_type: str, *blocks: str, **given: str) -> dict[str, Any]:
    """Return the properties of all resources of a type."""
    found = deployed(*blocks, **given).items()
    return {name: each["Properties"] for name, each in found if each["Type"] == resource_type}


def routes_of(auth_mode: str) -> dict[str, Any]:
    """Return the properties of the API's routes, by route key."""
    given = {"AuthMode": auth_mode, **AUTH_MODES[auth_mode]}
    return {route["RouteKey"]: route for route in of_type("AWS::ApiGatewayV2::Route", **given).values()}


def properties(logical_id: str, *blocks: str, **given: str) -> Any:
    return deployed(*blocks, **given)[logical_id]["Properties"]


def arn(logical_id: str) -> str:
    return f"${{{logical_id}.Arn}}"


def alias(function: str) -> str:
    """Return the alias of a function, through which the API and others invoke the deployed version."""
    return f"${{{function}Aliaslive}}"


def name_in(reference: str) -> str:
    """Return the logical id in a reference to a resource or to an attribute of it."""
    return reference.removeprefix("${").removesuffix("}").partition(".")[0]


def role_of(function: str) -> str:
    return name_in(properties(function)["Role"])


def statements(function: str, *blocks: str, **given: str) -> list[dict[str, Any]]:
    """Return the statements of a function's role: its own policies, then the managed ones."""
    found = deployed(*blocks, **given)
    role = found[role_of(function)]["Properties"]
    managed = [found[name_in(policy)]["Properties"] for policy in role.get("ManagedPolicyArns", [])]
    policies = [*role.get("Policies", []), *managed]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def variables(function: str, *blocks: str, **given: str) -> dict[str, str]:
    """Return the settings that a function reads: the lines of MCP_SETTINGS, then its own variables."""
    own = dict(properties(function, *blocks, **given)["Environment"]["Variables"])
    return settings(own.pop("MCP_SETTINGS")) | own


def with_values(text: str, known: Mapping[str, str] | None = None) -> str:
    """Return an evaluated text as a deployment has it. `known` replaces VALUES."""
    values = {**VALUES, **(known or {})}
    of_tool = r"\w+(TasksQueue|WorkerFunctionVersion)\w*"
    return re.sub(r"\$\{([^}]+)\}", lambda name: values[re.sub(of_tool, r"\1", name[1])], text)


def settings(text: str) -> dict[str, str]:
    """Return the lines NAME=value of MCP_SETTINGS."""
    return dict(line.split("=", 1) for line in text.split("\n"))


@cache
def with_blocks(*blocks: str) -> str:
    """Return template.yaml after the transform, with documented blocks.

    A block is LANDING_ZONE, or a heading of options.md. It is in Globals, or for provisioned concurrency at
    every function but workers.
    """
    template = load(ROOT / "template.yaml")
    for block in blocks:
        _write(template, block)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.yaml"
        path.write_text(yaml.safe_dump(template, sort_keys=False), "utf-8")
        return transformed_file(path, AuthMode="none")


def _write(template: dict[str, Any], block: str) -> None:
    resources = template["Resources"]
    if block == LANDING_ZONE:
        documented = landing_zone()
        _merge(template["Globals"]["Function"], documented["Globals"]["Function"])
        for name, one in documented["Resources"].items():
            alike = [each for each in resources.values() if each["Type"] == one["Type"]]
            for each in [resources[name]] if name == "Platform" else alike:
                _merge(each["Properties"], one["Properties"])
    elif block == PROVISIONED_CONCURRENCY:
        for name in (FRONT_DOOR, *TOOLS):
            _merge(resources[name]["Properties"], documented_block(block))
    else:
        _merge(template["Globals"]["Function"], documented_block(block))


def landing_zone() -> dict[str, Any]:
    """Return the block of docs/guides/landing-zones.md. It has one role and one table, for all of them."""
    block: dict[str, Any] = parse(_first_block(LANDING_ZONES_PAGE.read_text("utf-8")))
    return block


def documented_block(heading: str) -> dict[str, Any]:
    """Return the first block of YAML below a heading of docs/reference/options.md."""
    section = OPTIONS_PAGE.read_text("utf-8").partition(f"\n### {heading}\n")[2]
    block: dict[str, Any] = parse(_first_block(section))
    return block


def _first_block(page: str) -> str:
    return dedent(page.partition("```yaml\n")[2].partition("```")[0])


def _merge(into: dict[str, Any], block: Mapping[str, Any]) -> None:
    for name, value in block.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def with_defaults(template: Mapping[str, Any], **given: str) -> str:
    """Return a template in YAML with these values as defaults, which cfn-lint reads."""
    declared = {name: dict(each) for name, each in template["Parameters"].items()}
    for name, value in given.items():
        is_number = declared[name]["Type"] == "Number"
        declared[name]["Default"] = int(value) if is_number else value
    return yaml.safe_dump({**template, "Parameters": declared}, sort_keys=False)
