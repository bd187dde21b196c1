"""An AWS account emulated by ministack, with this application deployed to it by `sam deploy`.

It is ministack with the additions of artefact/ministack_app.py and with enforced policies.
A function may do what its role and the key policies allow. Differences from AWS that concern a
deployment (ministack 1.5.33):

- Functions run on the interpreter that runs ministack, for every Runtime, with its boto3, by a
  separate worker instead of awslambdaric, from a writable folder.
- TTL and point-in-time recovery of tables are not applied; throttling of routes and
  EventInvokeConfig are stored but not applied; traffic is not shifted, aliases change at once.
- The last log lines of a function can appear with its next invocation. Its exceptions are a 502 with text.
- An endpoint's real URL is `ENDPOINT/_aws/execute-api/API/STAGE/PATH`, not that of the outputs.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip_tools.run.services.ministack import serve_ministack
from mcp_roundtrip_tools.template.yaml_reader import load
from support import forked_programs, sam_build
from support.aws_clients import FUNCTION, boto3_client
from support.project import ROOT
from support.sam_build import Built

APP = f"{ROOT / 'tests/artefact/ministack_app.py'}:app"
VARIABLES = {"AUTH": "true", "PATH": os.environ["PATH"]}


@dataclass(frozen=True)
class Cloud:
    """The account. `log` has the output of its services and functions."""

    url: str
    log: Path

    @property
    def variables(self) -> dict[str, Any]:
        """The environment variables with which programs use the account as its root user."""
        return {"AWS_ENDPOINT_URL": self.url, **FUNCTION}

    def client(self, service: str) -> Any:
        """Return a boto3 client of the account's root user."""
        return _client(service, self.url)


_client = cache(boto3_client)


@dataclass(frozen=True)
class Stack:
    cloud: Cloud
    name: str

    @cached_property
    def description(self) -> Mapping[str, Any]:
        [stack] = self.cloud.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return dict(stack)

    @cached_property
    def resources(self) -> Mapping[str, str]:
        """Return the physical ids by logical id; those of a nested stack as `Platform.TaskTable`."""
        return {name: each["PhysicalResourceId"] for name, each in self.summaries(self.name)}

    def summaries(self, stack: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield what CloudFormation knows of each resource of a stack and of its nested stacks."""
        pages = self.cloud.client("cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=stack):
            for each in page["StackResourceSummaries"]:
                name = prefix + each["LogicalResourceId"]
                yield name, each
                if each["ResourceType"] == "AWS::CloudFormation::Stack":
                    yield from self.summaries(each["PhysicalResourceId"], f"{name}.")

    def task_states(self) -> Counter[str]:
        """Return how many tasks are in each state."""
        items = self.cloud.client("dynamodb").scan(TableName=self.resources["Platform.TaskTable"])["Items"]
        return Counter(item["st"]["S"] for item in items if item["sk"]["S"] == TASK)

    def logs(self) -> Mapping[str, list[str]]:
        """Return the messages of each function by its name without the stack's."""
        logs, found = self.cloud.client("logs"), defaultdict[str, list[str]](list)
        group = self.resources["Platform.Logs"]
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
            for event in page["events"]:
                name = event["logStreamName"].split("/")[3].partition("[")[0]
                found[name.removeprefix(f"{self.name}_")].append(event["message"])
        return found

    def endpoint(self, path: str) -> str:
        """Return the local URL of a route of the HTTP API."""
        return f"{self.cloud.url}/_aws/execute-api/{self.resources['Platform.Api']}/$default{path}"


@contextmanager
def running(scratch: Path) -> Iterator[Cloud]:
    """Run an empty account until the block ends, with its files in `scratch`."""
    log = scratch / "log"
    with serve_ministack({**VARIABLES, "TMPDIR": str(scratch)}, app=APP, log=log) as url:
        yield Cloud(url, log)


def adapted(built: Built, folder: Path, variables: Mapping[str, str], **options: str) -> Path:
    """Write a build's template to a folder, with these options of the platform.

    `variables` replace those that the functions declare.
    """
    template = load(built.template)
    for each in template["Resources"].values():
        properties = each["Properties"]
        for name in ("CodeUri", "ContentUri", "Location"):
            if name in properties:
                properties[name] = str(built.directory / properties[name])
        declared = properties.get("Environment", {}).get("Variables", {})
        declared |= {name: variables[name] for name in declared.keys() & variables.keys()}
    template["Resources"]["Platform"]["Properties"]["Parameters"] |= options
    path = folder / "template.yaml"
    path.write_text(yaml.safe_dump(template, sort_keys=False), "utf-8")
    return path


def deploy(cloud: Cloud, built: Built, name: str, template: Path, **parameters: str) -> Stack:
    """Run `sam deploy` for a template of a build, with its runtime and architecture and these parameters."""
    given = {"PythonRuntime": built.runtime, "Architecture": built.architecture, **parameters}
    command = (forked_programs.sam(), "deploy", "--template-file", template, "--stack-name", name)
    options = ("--resolve-s3", "--no-confirm-changeset", "--no-progressbar")
    capabilities = ("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")
    overrides = ("--parameter-overrides", *(f"{each}={value}" for each, value in given.items()))
    done = sam_build.run(*command, *options, *capabilities, *overrides, **cloud.variables)
    assert done.returncode == 0, done.stderr + "\n".join(failures(cloud, name))
    return Stack(cloud, name)


def failures(cloud: Cloud, name: str) -> Iterator[str]:
    """Yield why resources of a stack could not be deployed."""
    cloudformation = cloud.client("cloudformation")
    with suppress(cloudformation.exceptions.ClientError):  # a refused template has no stack
        for event in cloudformation.describe_stack_events(StackName=name)["StackEvents"]:
            if event["ResourceStatus"].endswith("FAILED"):
                yield f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
