"""template.yaml after the SAM transform, evaluated for given parameters."""

import fcntl
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from support import cloudformation
from support.interpreters import SITE
from support.project import ROOT
from support.sam_build import CACHE, SAM, run
from support.source_template import functions

TRANSFORM = Path(__file__).parents[1] / "sam/transform.py"

FRONT_DOOR = "FrontDoorFunction"
FOLDERS = functions()
WORKER_OF = {
    name.replace("WorkerFunction", "Function"): name for name in FOLDERS if name.endswith("WorkerFunction")
}
"""The functions whose tools have tasks, with their worker functions."""

TOOLS = sorted(set(FOLDERS) - {FRONT_DOOR, *WORKER_OF.values()})

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


@cache
def transform(**given: str) -> str:
    """Return the CloudFormation template in YAML, with unresolved parameters.

    Only the parameter Deployment influences the transform.
    """
    return transformed_file(ROOT / "template.yaml", **{"AuthMode": "none", **given})


def transformed_file(template: Path, **given: str) -> str:
    """Transform any template with these parameters. Processes that need the same one wait for the first."""
    overrides = [f"{name}={value}" for name, value in given.items()]
    content = [template.read_text("utf-8"), overrides, TRANSFORM.read_text("utf-8"), SAM.stat().st_mtime_ns]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    path = CACHE / f"transformed/{digest}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if known := file.read():
            return known
        done = run(
            SAM.with_name("python"), TRANSFORM, template, *overrides, PYTHONPATH=str(SITE / "fast_yaml")
        )
        assert done.returncode == 0, done.stderr
        file.write(done.stdout)
        return done.stdout


def load_template(text: str) -> Any:
    """Parse a transformed template, in a tenth of the time of yaml.safe_load."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


@cache
def transformed() -> dict[str, Any]:
    template: dict[str, Any] = load_template(transform())
    return template


def parameters(**given: str) -> dict[str, Any]:
    """Return the value of every parameter. AuthMode is none unless given."""
    return cloudformation.parameters_of(transformed(), **{"AuthMode": "none", **given})


@cache
def deployed(**given: str) -> dict[str, Any]:
    """Return the evaluated resources of a stack with these parameters."""
    return cloudformation.resources(transformed(), parameters(**given))


def outputs(**given: str) -> dict[str, Any]:
    return cloudformation.outputs(transformed(), parameters(**given))


def broken_rules(**given: str) -> list[str]:
    return cloudformation.broken_rules(transformed(), parameters(**given))


def of_type(resource_type: str, **given: str) -> dict[str, Any]:
    """Return the properties of all resources of a type."""
    stack = deployed(**given).items()
    return {name: each["Properties"] for name, each in stack if each["Type"] == resource_type}


def properties(logical_id: str, **given: str) -> Any:
    return deployed(**given)[logical_id]["Properties"]


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


def statements(function: str, **given: str) -> list[dict[str, Any]]:
    """Return the statements of a function's role: its own policies, then the managed ones."""
    stack = deployed(**given)
    role = stack[role_of(function)]["Properties"]
    managed = [stack[name_in(policy)]["Properties"] for policy in role.get("ManagedPolicyArns", [])]
    policies = [*role.get("Policies", []), *managed]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def variables(function: str, **given: str) -> Any:
    return properties(function, **given)["Environment"]["Variables"]


def with_defaults(template: Mapping[str, Any], **given: str) -> str:
    """Return a template in YAML with these values as defaults, which cfn-lint reads."""
    declared = {
        name: {**each, "Default": given[name]} if name in given else each
        for name, each in template["Parameters"].items()
    }
    return yaml.safe_dump({**template, "Parameters": declared}, sort_keys=False)


def lint(*templates: Path) -> list[Any]:
    """Return the findings of cfn-lint for some templates. Each takes 2 to 3 s."""
    done = run(SAM.with_name("cfn-lint"), "--format", "json", "--", *templates)
    findings: list[Any] = json.loads(done.stdout)
    return findings
