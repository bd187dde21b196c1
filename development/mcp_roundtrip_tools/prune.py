"""``mcp-roundtrip prune``: list the versions of workers that no open task needs; --delete deletes them.

With ``TaskDelivery: invoke``, the version of the worker that created a task runs it to its end, so the stack
retains every version. CloudFormation never deletes them. Exit status: 1 if a version could not be deleted, 2
if the account could not be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mcp_roundtrip.deployment.settings import read_variables
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.tasks.model import TASK, WorkState
from mcp_roundtrip_tools.deploy.account import Clients, connect
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Refused, read_environment
from mcp_roundtrip_tools.template.model import WORKER

Version = Mapping[str, Any]
"""A published version of a function: a FunctionConfiguration of the Lambda API reference."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The worker functions of a stack. `clients` returns a boto3 client by the name of its service.

    Needs cloudformation:ListStackResources, lambda:ListVersionsByFunction, ListAliases,
    GetFunctionConfiguration and DeleteFunction, and dynamodb:Scan. Methods raise ClientError.
    """

    clients: Clients
    names: tuple[str, ...]

    @classmethod
    def of_stack(cls, clients: Clients, stack: str) -> Workers:
        """Return the workers of tools among the functions of the stack and of its nested stacks."""
        names = {*_function_names(clients("cloudformation"), stack)}
        return cls(clients, tuple(sorted(f"{tool}{WORKER}" for tool in names if f"{tool}{WORKER}" in names)))

    def versions(self) -> list[Version]:
        """Return the published versions of all workers by function and number."""
        paginator = self.clients("lambda").get_paginator("list_versions_by_function")
        found = [
            each
            for name in self.names
            for each in paginator.paginate(FunctionName=name).search("Versions[?Version != '$LATEST']")
        ]
        return sorted(found, key=lambda each: (each["FunctionName"], int(each["Version"])))

    def reasons(self, versions: Sequence[Version], now_s: int) -> dict[str, str]:
        """Return why versions are needed, by their ARN. Reads the whole task table."""
        # A deployment in progress publishes a version before anything names it.
        newest = {each["FunctionName"]: each["FunctionArn"] for each in versions}
        found = dict.fromkeys(newest.values(), "the newest version")
        # Read before the tasks: a version that is replaced meanwhile can still have got its last tasks.
        for name in self.names:
            found |= dict.fromkeys(self._named_by_tool(name), "new tasks of the tool")
            found |= dict.fromkeys(self._with_traffic(name), "an alias")
        tables = {self._setting(name, "MCP_TASK_TABLE") for name in self.names} - {""}
        tasks = Counter(worker for table in tables for worker in self._open_tasks(table, now_s))
        return found | {arn: f"{n} open task{'s' if n > 1 else ''}" for arn, n in tasks.items()}

    def delete(self, version: Version) -> None:
        """Delete a version. Lambda refuses to delete one that an alias names."""
        self.clients("lambda").delete_function(FunctionName=version["FunctionArn"])

    def _with_traffic(self, name: str) -> Iterator[str]:
        """Yield the ARNs of the versions to which aliases of a function send traffic."""
        pages = self.clients("lambda").get_paginator("list_aliases").paginate(FunctionName=name)
        for alias in pages.search("Aliases[]"):
            function = alias["AliasArn"].rpartition(":")[0]
            shifting = (alias.get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {}
            for number in (alias["FunctionVersion"], *shifting):
                yield f"{function}:{number}"

    def _named_by_tool(self, name: str) -> Iterator[str]:
        """Yield the versions that the deployed versions of a worker's tool name for new tasks."""
        tool = name.removesuffix(WORKER)
        for arn in self._with_traffic(tool):
            yield self._setting(tool, "MCP_TASK_WORKER", arn.rpartition(":")[2])

    def _setting(self, name: str, variable: str, version: str = "$LATEST") -> str:
        found = self.clients("lambda").get_function_configuration(FunctionName=name, Qualifier=version)
        return read_variables(found.get("Environment", {}).get("Variables", {})).get(variable, "")

    def _open_tasks(self, table: str, now_s: int) -> Iterator[str]:
        """Yield the worker of each open task. A task whose items may be deleted is not open."""
        pages = (
            self.clients("dynamodb")
            .get_paginator("scan")
            .paginate(
                TableName=table,
                ConsistentRead=True,
                ProjectionExpression="wk",
                FilterExpression="sk = :task AND rn <> :done AND #exp > :now",
                ExpressionAttributeNames={"#exp": "exp"},
                ExpressionAttributeValues={
                    ":task": {"S": TASK},
                    ":done": {"S": WorkState.DONE.value},
                    ":now": {"N": str(now_s)},
                },
            )
        )
        yield from pages.search("Items[].wk.S")


def _function_names(cloudformation: Any, stack: str) -> Iterator[str]:
    """Yield the names of the functions of a stack and of its nested stacks."""
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
        for each in page["StackResourceSummaries"]:
            if each["ResourceType"] == "AWS::Lambda::Function":
                yield each["PhysicalResourceId"]
            elif each["ResourceType"] == "AWS::CloudFormation::Stack":
                yield from _function_names(cloudformation, each["PhysicalResourceId"])


def main(arguments: Sequence[str] | None = None, clients: Clients | None = None) -> int:
    """Run the command; return its exit status. `clients` replaces boto3's clients in tests."""
    options = _parser().parse_args(arguments)
    try:
        environment = read_environment(Path.cwd(), options.env)
        stack = options.stack or environment.option("stack_name") or ""
        connected = clients or connect(environment.option("region"), environment.option("profile")).clients
        workers = Workers.of_stack(connected, stack)
        versions = workers.versions()  # first: one that is published meanwhile is not deleted
        reasons = workers.reasons(versions, int(time.time()))
    except (Refused, SettingsError, BotoCoreError, ClientError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for version in versions:
        reason = reasons.get(version["FunctionArn"])
        decision = f"kept: {reason}" if reason else "unused"
        print(f"{_name(version)}  {version['LastModified'][:10]}  {decision}")
    unused = [version for version in versions if version["FunctionArn"] not in reasons]
    megabytes = sum(each["CodeSize"] for each in unused) / 1e6
    total = f"{len(unused)} of {len(versions)} versions of {len(workers.names)} workers"
    if not options.delete:
        print(f"{total} can be deleted ({megabytes:.1f} MB): DELETE=1 deletes them.")
        return 0
    failed = [each for each in unused if not _delete(workers, each)]
    print(f"Deleted {len(unused) - len(failed)} of {len(unused)} unused versions.")
    return 1 if failed else 0


def _delete(workers: Workers, version: Version) -> bool:
    try:
        workers.delete(version)
    except (BotoCoreError, ClientError) as error:
        print(f"error: {_name(version)}: {error}", file=sys.stderr)
        return False
    return True


def _name(version: Version) -> str:
    return f"{version['FunctionName']} {version['Version']}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip prune", description="List the versions of workers; delete the unused ones."
    )
    parser.add_argument("--env", default=DEFAULT, help="the environment of samconfig.toml")
    parser.add_argument("--stack", default="", help="another stack than the environment's")
    parser.add_argument("--delete", action="store_true", help="delete the versions that nothing needs")
    return parser
