"""What the AWS account says before a build, and the releases of a stack to which a rollback returns."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, InvalidRegionError
from botocore.exceptions import ConnectionError as NoConnection

from mcp_roundtrip_tools.deploy.environments import Refused
from mcp_roundtrip_tools.template.parameters import is_masked
from mcp_roundtrip_tools.template.yaml_reader import parse

UNRESERVED: Final = 100
"""The concurrent executions that Lambda requires to remain unreserved."""

REMEDIES: Final = {
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
    "UPDATE_FAILED": "rollback-stack",
    "ROLLBACK_FAILED": "delete-stack",
    "CREATE_FAILED": "delete-stack",
    "DELETE_FAILED": "delete-stack",
}
"""The command of `aws cloudformation` that returns a stack in this state to one that can be deployed."""

_CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2})

Clients = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Account:
    """The account and Region of a deployment. `clients` returns a boto3 client by the name of its service."""

    clients: Clients

    def check_credentials(self) -> None:
        """Raise Refused if there are no valid credentials, or AWS cannot be reached."""
        try:
            self.clients("sts").get_caller_identity()
        except (NoConnection, HTTPClientError, InvalidRegionError) as error:
            reason = str(error).rstrip(".")
            raise Refused(f"AWS cannot be reached: {reason}. Check the Region and the network.") from None
        except (BotoCoreError, ClientError) as error:
            raise Refused(
                f"AWS accepts no credentials from this computer: {error}. Sign in, for example with "
                "aws sso login, or set AWS_PROFILE."
            ) from None

    def describe(self, stack: str) -> Mapping[str, Any]:
        """Return the description of the stack; an empty one if none was deployed, or if it cannot be read."""
        with suppress(BotoCoreError, ClientError):
            [found] = self.clients("cloudformation").describe_stacks(StackName=stack)["Stacks"]
            return {} if found["StackStatus"] == "REVIEW_IN_PROGRESS" else dict(found)
        return {}

    def status(self, stack: str) -> str | None:
        """Return the status of the stack, if it can be read."""
        return self.describe(stack).get("StackStatus")

    def check_stack(self, stack: str) -> None:
        """Raise Refused if the stack is in a state in which CloudFormation refuses a deployment."""
        status = self.status(stack)
        if status in REMEDIES:
            region = self.clients("cloudformation").meta.region_name
            raise Refused(
                f"The stack {stack} is in state {status}. Run: aws cloudformation {REMEDIES[status]} "
                f"--stack-name {stack} --region {region}"
            )
        if status and status.endswith("_IN_PROGRESS"):
            raise Refused(f"The stack {stack} is being changed ({status}). Try again when it is done.")

    def delete_failed_creation(self, stack: str) -> bool:
        """Delete a stack whose first deployment was rolled back: it is empty, and cannot be updated.

        Return whether there was one. Raises Refused if it cannot be deleted.
        """
        if self.status(stack) != "ROLLBACK_COMPLETE":
            return False
        cloudformation = self.clients("cloudformation")
        deleted = cloudformation.get_waiter("stack_delete_complete")
        try:
            cloudformation.delete_stack(StackName=stack)
            deleted.wait(StackName=stack, WaiterConfig={"Delay": 2})
        except (BotoCoreError, ClientError) as error:
            raise Refused(
                f"The first deployment of {stack} had failed, and its stack cannot be deleted: {error}"
            ) from None
        return True

    def refused_concurrency(self, workers: Mapping[str, int]) -> Iterator[str]:
        """Yield a sentence if the account cannot reserve this concurrency for each function name."""
        client = self.clients("lambda")
        try:
            limits = client.get_account_settings()["AccountLimit"]
            reserved = sum(self._reserved(client, name) for name in workers)
        except (BotoCoreError, ClientError):
            return
        available = limits["UnreservedConcurrentExecutions"] + reserved
        needed = sum(workers.values())
        if needed and available - needed < UNRESERVED:
            yield (
                f"{', '.join(workers)} reserve {needed} concurrent executions, and {UNRESERVED} must remain "
                f"unreserved; this account has {available} of {limits['ConcurrentExecutions']} left in this "
                "Region. Lower or remove ReservedConcurrentExecutions and MaximumConcurrency in "
                "template.yaml, or request a higher quota."
            )

    def _reserved(self, client: Any, function: str) -> int:
        try:
            found = client.get_function_concurrency(FunctionName=function)
        except client.exceptions.ResourceNotFoundException:
            return 0
        return int(found.get("ReservedConcurrentExecutions", 0))


def connect(region: str | None, profile: str | None) -> Account:
    """Return the account that sam uses with this Region and profile. Raises Refused."""
    try:
        session = boto3.Session(region_name=region, profile_name=profile)
    except BotoCoreError as error:
        raise Refused(f"{error}.") from None
    if session.region_name is None:
        raise Refused("No Region is selected: set region in samconfig.toml, or AWS_DEFAULT_REGION.")
    make: Any = session.client
    return Account(lambda service: make(service, config=_CONFIG))


def configured_region(profile: str | None) -> str | None:
    """Return the Region that this computer's AWS configuration names."""
    with suppress(BotoCoreError):
        found: str | None = boto3.Session(profile_name=profile).region_name
        return found
    return None


MAX_RELEASES: Final = 10
"""The number of releases of an environment that are saved; older ones are deleted."""


@dataclass(frozen=True, slots=True)
class Release:
    """A template as it was deployed, and the values of its parameters, without those that AWS masks."""

    template: str
    parameters: Mapping[str, str]


def running_release(account: Account, stack: str) -> Release | None:
    """Return what runs now, or None if there is no stack or it may not be read."""
    description = account.describe(stack)
    if not description:
        return None
    try:
        found = account.clients("cloudformation").get_template(StackName=stack, TemplateStage="Original")
    except (BotoCoreError, ClientError):
        return None
    body = found["TemplateBody"]
    template = body if isinstance(body, str) else json.dumps(body)  # boto3 parses JSON
    declared = parse(template).get("Parameters", {})
    # Without a value, sam keeps that of the stack.
    values = {each["ParameterKey"]: each["ParameterValue"] for each in description.get("Parameters", [])}
    return Release(template, {name: value for name, value in values.items() if not is_masked(declared[name])})


def save_release(folder: Path, environment: str, release: Release) -> Path:
    """Save a release, unless it is the newest one that is saved; return its file."""
    directory = _directory(folder, environment)
    saved = sorted(directory.glob("*.json"))
    if saved and read_release(saved[-1]) == release:
        return saved[-1]
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.json"
    path.write_text(json.dumps(asdict(release)), encoding="utf-8")
    for old in sorted(directory.glob("*.json"))[:-MAX_RELEASES]:
        old.unlink()
    return path


def previous_release(folder: Path, environment: str, current: Release | None) -> Release:
    """Return the newest saved release that differs from the current one. Raises Refused if there is none."""
    for path in sorted(_directory(folder, environment).glob("*.json"), reverse=True):
        if (found := read_release(path)) != current:
            return found
    raise Refused(
        f"No earlier release of {environment} is saved in {_directory(Path(), environment)}: deploy the "
        "earlier commit, or use the files that its pipeline saved."
    )


def read_release(path: Path) -> Release:
    """Return a saved release. Raises Refused if the file is none: a full disk leaves an empty one."""
    try:
        return Release(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise Refused(f"{path} is not a saved release ({error}): delete it.") from None


def endpoint(account: Account, stack: str) -> str:
    """Return the output McpUrl of a stack. Raises Refused."""
    try:
        [found] = account.clients("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise Refused(f"The stack {stack} cannot be read: {error}") from None
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
    if "McpUrl" not in outputs:
        raise Refused(f"The stack {stack} has no output McpUrl: its deployment did not end.")
    return str(outputs["McpUrl"])


def _directory(folder: Path, environment: str) -> Path:
    return folder / ".aws-sam" / "releases" / environment
