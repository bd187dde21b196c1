"""An AWS account emulated by ministack, and this application deployed to it with `sam deploy`.

It is ministack with what artefact/ministack_app.py adds, and with policies that count: a function may do what
its role and the keys' policies allow. What it does otherwise than AWS, of what a deployment needs (1.5.33):

- Functions run on the interpreter that runs ministack, whatever their Runtime says, with its boto3, by a
  worker of its own instead of awslambdaric, from a folder that can be written to.
- Time to live and point-in-time recovery of tables are not applied; throttling of routes and
  EventInvokeConfig are stored and not followed; traffic is not shifted, aliases change at once.
- A function's last lines can be logged with its next invocation; its exception is a 502 with the text.
- An endpoint's real URL is `ENDPOINT/_aws/execute-api/API/STAGE/PATH`, whatever the outputs say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from mcp_roundtrip_local.services.ministack import serve_ministack
from support import sam_build
from support.sam_build import ROOT, SAM, Built

REGION = "us-east-1"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
"""Those of the account's root, who may do everything."""

APP = f"{ROOT / 'tests/artefact/ministack_app.py'}:app"
VARIABLES = {"AUTH": "true", "PATH": os.environ["PATH"]}


@dataclass(frozen=True)
class Cloud:
    """The account; `log` has what its services and functions printed."""

    url: str
    log: Path

    def client(self, service: str) -> Any:
        """A boto3 client of the account's root."""
        return boto3.client(service, endpoint_url=self.url, **CREDENTIALS)


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
        """The physical ids by logical id."""
        return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in self._summaries}

    @cached_property
    def _summaries(self) -> list[Any]:
        pages = self.cloud.client("cloudformation").get_paginator("list_stack_resources")
        return [
            each for page in pages.paginate(StackName=self.name) for each in page["StackResourceSummaries"]
        ]

    def logs(self) -> Mapping[str, list[str]]:
        """What each log group of the stack holds, by its logical id."""
        logs = self.cloud.client("logs")
        groups = [each for each in self._summaries if each["ResourceType"] == "AWS::Logs::LogGroup"]
        return {
            each["LogicalResourceId"]: [
                event["message"]
                for event in logs.filter_log_events(logGroupName=each["PhysicalResourceId"])["events"]
            ]
            for each in groups
        }

    def endpoint(self, path: str) -> str:
        """The URL of a route of the HTTP API, here."""
        return f"{self.cloud.url}/_aws/execute-api/{self.resources['Api']}/$default{path}"


@contextmanager
def running(scratch: Path) -> Iterator[Cloud]:
    """An empty account, until the block ends; `scratch` takes all its files."""
    log = scratch / "log"
    with serve_ministack({**VARIABLES, "TMPDIR": str(scratch)}, app=APP, log=log) as url:
        yield Cloud(url, log)


def deploy(cloud: Cloud, built: Built, name: str, **parameters: str) -> Stack:
    """`sam deploy` what was built, as its runtime and architecture, with these parameters of the template."""
    given = {"PythonRuntime": built.runtime, "Architecture": built.architecture, **parameters}
    command = [SAM, "deploy", "--template-file", built.template, "--stack-name", name, "--resolve-s3"]
    options = ["--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar"]
    overrides = ["--parameter-overrides", *(f"{each}={value}" for each, value in given.items())]
    account = {
        "AWS_ENDPOINT_URL": cloud.url,
        "AWS_ACCESS_KEY_ID": CREDENTIALS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": CREDENTIALS["aws_secret_access_key"],
        "AWS_DEFAULT_REGION": REGION,
    }
    done = sam_build.run(*command, *options, *overrides, **account)
    assert done.returncode == 0, done.stderr + "\n".join(_failures(cloud, name))
    return Stack(cloud, name)


def _failures(cloud: Cloud, name: str) -> Iterator[str]:
    cloudformation = cloud.client("cloudformation")
    with suppress(cloudformation.exceptions.ClientError):  # a template that was refused has no stack
        for event in cloudformation.describe_stack_events(StackName=name)["StackEvents"]:
            if event["ResourceStatus"].endswith("FAILED"):
                yield f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
