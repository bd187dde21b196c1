"""The releases of a stack: what ran before each deployment, to which `make rollback` returns.

CloudFormation keeps only the current template of a stack, so each deployment first saves it with the values
of its parameters. The packaged template names the code by its digest in the artefact bucket, so that code is
deployed again as it was; the bucket must keep it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from mcp_roundtrip_tools.deploy.account import Account
from mcp_roundtrip_tools.deploy.errors import Refused

MAX_RELEASES: Final = 10
"""The number of releases of an environment that are saved; older ones are deleted."""


@dataclass(frozen=True, slots=True)
class Release:
    """A template as it was deployed, and the value of each of its parameters."""

    template: str
    parameters: Mapping[str, str]


def running(account: Account, stack: str) -> Release | None:
    """Return what runs now, or None if there is no stack or it may not be read."""
    try:
        cloudformation = account.clients("cloudformation")
        [found] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
        body = cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
    except (BotoCoreError, ClientError):
        return None
    text = body if isinstance(body, str) else json.dumps(body)  # boto3 parses JSON
    values = {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}
    return Release(text, values) if values else None


def save(folder: Path, environment: str, release: Release) -> Path:
    """Save a release, unless it is the newest one that is saved; return its file."""
    directory = _directory(folder, environment)
    saved = sorted(directory.glob("*.json"))
    if saved and read(saved[-1]) == release:
        return saved[-1]
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.json"
    path.write_text(json.dumps(asdict(release)), encoding="utf-8")
    for old in sorted(directory.glob("*.json"))[:-MAX_RELEASES]:
        old.unlink()
    return path


def previous(folder: Path, environment: str, current: Release | None) -> Release:
    """Return the newest saved release that differs from the current one. Raises Refused if there is none."""
    for path in sorted(_directory(folder, environment).glob("*.json"), reverse=True):
        if (found := read(path)) != current:
            return found
    raise Refused(
        f"No earlier release of {environment} is saved in {_directory(Path(), environment)}: deploy the "
        "earlier commit, or use the files that its pipeline saved."
    )


def read(path: Path) -> Release:
    """Return a saved release. Raises Refused if the file is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Release(found["template"], found["parameters"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path} is not a saved release ({error}): delete it.") from None


def endpoint(account: Account, stack: str) -> str:
    """Return the output McpUrl of a stack. Raises Refused."""
    try:
        [found] = account.clients("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise Refused(f"The stack {stack} cannot be read: {str(error).rstrip('.')}.") from None
    outputs: Mapping[str, Any] = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
    if "McpUrl" not in outputs:
        raise Refused(f"The stack {stack} has no output McpUrl: its deployment did not end.")
    return str(outputs["McpUrl"])


def _directory(folder: Path, environment: str) -> Path:
    return folder / ".aws-sam" / "releases" / environment
