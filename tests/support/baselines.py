"""The templates as baselines see them, and the exceptions that docs/guides/landing-zones.md accepts."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.cloudformation import NESTED
from support.project import ROOT
from support.transformed_template import (
    DOMAIN,
    LANDING_ZONE,
    LANDING_ZONES_PAGE,
    PROVISIONED_CONCURRENCY,
    deployed,
    landing_zone,
)

NO_PARAMETER = "no parameter"

BLOCKS = (LANDING_ZONE, "Gradual deployment", PROVISIONED_CONCURRENCY)
OPTIONS = {
    **DOMAIN,
    "HostedZoneId": "Z0123456789",
    "AuthMode": "iam",
    "AllowedOrigins": "https://app.example",
    "TaskDelivery": "queue",
    "XRay": "enabled",
}
"""Everything that an organization may ask of an application: documented blocks, and options."""

OTHER_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "platform/edge/template.yaml": {"ApiHost": "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"},
    "platform/edge/routes.yaml": {"EndpointStack": "tools", "ApiId": "a1b2c3d4e5", "AuthMode": "iam"},
    "platform/pipeline/template.yaml": {
        "GitHubRepository": "example/tools",
        "GitHubEnvironment": "prod",
        "ApplicationStack": "tools",
    },
}
"""The other templates, with the parameters that they require."""

OTHER_OPTIONS = {
    "platform/edge/template.yaml": {
        "DomainName": "tools.example",
        "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1d2c3b4a",
        "ChallengeAtEdge": "enabled",
    },
    "platform/pipeline/template.yaml": {
        name: landing_zone()["Resources"]["Platform"]["Properties"]["Parameters"][name]
        for name in ("PermissionsBoundaryArn", "RolePath", "DataKeyArn")
    },
}


def excepted(prefix: str, *, with_options: bool = False) -> set[str]:
    """Return the excepted rules whose name begins with `prefix`: of the defaults, or of all options."""
    section = LANDING_ZONES_PAGE.read_text("utf-8").partition("### Exceptions")[2]
    found = set()
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rules = re.findall(r"CKV2?_AWS_\d+|CT\.[A-Z0-9]+\.PR\.\d+", " ".join(cells[:2]))
        if line.startswith("|") and rules:
            _, _, parameter, reason = cells
            assert reason, line
            if parameter == NO_PARAMETER or not with_options:
                found |= {rule for rule in rules if rule.startswith(prefix)}
    return found


def evaluated(template: Mapping[str, Any], **given: str) -> str:
    """Return a template in JSON with evaluated parameters and conditions. References remain."""
    stack = {"AWS::StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/tools/1d2c3b4a"}
    parameters = {**stack, **cloudformation.parameters_of(template, **given)}
    return _template(cloudformation.resources(template, parameters))


def _template(resources: Mapping[str, Any]) -> str:
    return json.dumps(
        {"AWSTemplateFormatVersion": "2010-09-09", "Resources": _with_references(dict(resources))}
    )


def _application(*blocks: str, **given: str) -> str:
    """Return template.yaml and its nested templates as one, like `evaluated`."""
    found = deployed(*blocks, **given)
    return _template({name: each for name, each in found.items() if each["Type"] != NESTED})


def _with_references(value: Any) -> Any:
    """Return `value` with the references that `cloudformation.evaluate` wrote as text."""
    match value:
        case dict():
            # CloudFormation converts the text of a parameter to the type of the property.
            return {
                name: int(each) if name == "RetentionInDays" else _with_references(each)
                for name, each in value.items()
            }
        case list():
            return [_with_references(each) for each in value]
        case str() if "Bucket.Arn}" in value:  # the controls know it only as an ARN
            return re.sub(r"\$\{\w*Bucket\.Arn\}", "arn:aws:s3:::bucket", value)
        case str() if reference := re.fullmatch(r"\$\{(\w+)(?:\.(\w+))?\}", value):
            name, attribute = reference.groups()
            return {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}
    return value


def with_defaults() -> dict[str, str]:
    """Return the evaluated templates by name, with nothing but the required parameters."""
    return {"template.yaml": _application(), **_others({})}


def with_options() -> dict[str, str]:
    """Return the evaluated templates by name, with every option of a landing zone."""
    return {"template.yaml": _application(*BLOCKS, **OPTIONS), **_others(OTHER_OPTIONS)}


def _others(options: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {
        path: evaluated(load(ROOT / path), **required, **options.get(path, {}))
        for path, required in OTHER_TEMPLATES.items()
    }


def write(templates: Mapping[str, str], folder: Path) -> list[Path]:
    """Write templates into a folder, and return the paths."""
    paths = [folder / f"{name.replace('/', '-')}.json" for name in templates]
    for path, text in zip(paths, templates.values(), strict=True):
        path.write_text(text, "utf-8")
    return paths
