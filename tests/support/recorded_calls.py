"""The AWS calls of the functions of template.yaml while clients run the flow of every example."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import anyio
import mcp_types as types
from mcp.client import Client

from mcp_roundtrip_testing.serving import Request, Response, json_response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.clients import Answer, Connect, Person, block_of, fast_mcp, official
from support.example_calls import CALLS
from support.examples import EXPENSE, ORDERS, PRICES, RESOLVE
from support.forked_programs import python_of_functions
from support.mailbox import Mailbox, decide
from support.page_user import choose_first_on_page, link_in
from support.project import FUNCTIONS, logical_ids
from support.role_permissions import Call
from support.sample_events import EVENTS
from support.served_application import TEMPLATE, Served, serve_for_alice, with_options

LINE = re.compile(r"\[(\w+)\] AWS (\[.*\])")

CITIES = {"locations": ["Hyderabad", "Tokyo"]}

WITH_FLOWS = {"approval", "provision", "summarize", "weather", "work_items"}
"""The owners whose tools `every_flow` calls by name."""

NEEDS_A_FLOW = "a tool that asks for more than a choice needs its call in every_flow, its owner in WITH_FLOWS"

IDENTITY = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/"

SIGNING, MAC = "${StateKey.Arn}", "${StateEncryptionKey.Arn}"
AUDIT_KEY = "${AuditKey.Arn}"
KEYS = {"Sign": SIGNING, "GetPublicKey": SIGNING, "GenerateMac": MAC}
"""The operations of the keys."""

LAMBDA = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}"
SQS = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}"
LOCAL = "local"
"""The name of the stack on this computer."""

SECRETS_ENDPOINT = "AWS_ENDPOINT_URL_SECRETS_MANAGER"
SECRET = {"AZURE_DEVOPS_SECRET": f"{LOCAL}/azure-devops"}
SECRETS = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"

WORKER_ADDRESS = re.compile(r"^( +)MCP_TASK_WORKER: !Ref (\w+WorkerFunction)\.Version$", re.MULTILINE)
DELETED_VERSION = r"\1MCP_TASK_WORKER: !Sub '${\2.Arn}:7'\n\1MCP_TASK_DELIVERY: invoke"


def record(options: Mapping[str, str], template: Path | None = None) -> dict[str, set[Call]]:
    """Return the AWS calls of each function of a template, otherwise of template.yaml, by logical id."""
    mailbox = Mailbox()
    with (
        closing(HttpServer(secrets_manager).start()) as secrets,
        serve_for_alice(
            mailbox,
            template=template or TEMPLATE,
            python=python_of_functions("aws_call_log"),
            variables=SECRET | {SECRETS_ENDPOINT: secrets.url},
            **with_options(options),
        ) as served,
    ):
        anyio.run(every_flow, served, mailbox)
    return calls_in(served.lines)


def secrets_manager(request: Request) -> Response:
    return json_response(200, {"SecretString": "a token"})


def after_a_deployment(folder: Path) -> Path:
    """Write template.yaml with tasks of `TaskDelivery: invoke` whose version a later deployment deleted."""
    source, workers = WORKER_ADDRESS.subn(DELETED_VERSION, TEMPLATE.read_text())
    assert workers
    for old, new in (
        ("CodeUri: functions/", f"CodeUri: {TEMPLATE.parent}/functions/"),
        ("ContentUri: layers/", f"ContentUri: {TEMPLATE.parent}/layers/"),
        ("Location: platform/", f"Location: {TEMPLATE.parent}/platform/"),
        (": development/stand_ins/", f": {TEMPLATE.parent}/development/stand_ins/"),
    ):
        assert old in source
        source = source.replace(old, new)
    template = folder / "after-a-deployment.yaml"
    template.write_text(source)
    return template


async def every_flow(served: Served, mailbox: Mailbox) -> None:
    """Use tools, a prompt and a resource through the front door, and directly if that makes a difference."""
    for tool in ("get_weather", "update_work_item", "summarize"):
        await call(official, served, "/mcp", tool, CALLS[tool].arguments, *CALLS[tool].answers)
    for path in ("/mcp", "/tools/provision"):
        await call(official, served, path, "provision_database", ORDERS, *CALLS["provision_database"].answers)
        await run_task(served, path)

    def approve(url: str = "") -> None:
        decide(mailbox.link(), approved=True)

    await call(official, served, "/mcp", "request_approval", EXPENSE, approve)
    for tool, arguments in (
        ("compare_weather", CITIES),
        ("update_work_item", RESOLVE),
        ("provision_database", ORDERS),
    ):
        await call_without_forms(served, tool, arguments)
    other_expense = {**EXPENSE, "purpose": "A week at the sea"}
    await call_without_forms(served, "request_approval", other_expense, approve)
    for params in first_calls():
        await choose_first(official, served, params)
    await generated_tasks(served)
    async with official(served.url, Person([])) as client:
        await client.prompt("triage", {"workItemId": "4301"})
        await client.read(PRICES)


async def generated_tasks(served: Served) -> None:
    """Run a task of each tool with tasks that has no flow, through the front door and directly."""
    for params in first_calls(tasks=True):
        await choose_first(fast_mcp, served, params)
        await choose_first(fast_mcp, served, params, f"/tools/{params['owner']}")


def first_calls(*, tasks: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the calls in the events that `make new-tool` wrote for owners without a flow, and their owners.

    `tasks`: only those of owners with tasks.
    """
    tools = json.loads((FUNCTIONS / "front_door/catalog.json").read_text())["tools"]
    owners = {tool["owner"] for tool in tools if not tasks or "task" in tool}
    for owner in sorted(owners - WITH_FLOWS):
        params = json.loads((EVENTS / owner / "direct_call.json").read_text())["params"]
        yield {**params, "owner": owner}


async def choose_first(
    connect: Connect, served: Served, params: Mapping[str, Any], path: str = "/mcp"
) -> None:
    """Make a call of `first_calls` as a user who takes the first choice of every form."""
    async with connect(urljoin(served.url, path), FirstChoicePerson([])) as client:
        await client.call(params["name"], params["arguments"])


class FirstChoicePerson(Person):
    """A user who takes the first choice of every form."""

    def answer(self, params: types.ElicitRequestParams) -> dict[str, Any] | None:
        assert isinstance(params, types.ElicitRequestFormParams), NEEDS_A_FLOW
        fields = params.requested_schema["properties"]
        assert all("enum" in field for field in fields.values()), NEEDS_A_FLOW
        return {name: field["enum"][0] for name, field in fields.items()}


async def call_without_forms(
    served: Served, tool: str, arguments: Mapping[str, Any], then: Callable[[], None] = lambda: None
) -> None:
    """Call a tool as a client that shows no question; its user answers the first one on the page.

    `then` runs before the client calls again. A call whose decision is open would wait for it.
    """
    async with Client(served.url) as client:
        asked = await client.call_tool(tool, dict(arguments))
        await anyio.to_thread.run_sync(choose_first_on_page, link_in(block_of(asked.content)))
        then()
        await client.call_tool(tool, dict(arguments))


async def run_task(served: Served, path: str) -> None:
    await call(fast_mcp, served, path, "provision_database", ORDERS, *CALLS["provision_database"].answers)


async def call(
    connect: Connect, served: Served, path: str, tool: str, arguments: Mapping[str, Any], *answers: Answer
) -> None:
    async with connect(urljoin(served.url, path), Person(list(answers))) as client:
        await client.call(tool, arguments)


def calls_in(lines: Iterable[str]) -> dict[str, set[Call]]:
    """Return the calls in the output of functions, with the names of resources in the template."""
    calls = defaultdict(set)
    ids = logical_ids()
    for line in lines:
        if logged := LINE.fullmatch(line):
            name = logged[1].removeprefix(f"{LOCAL}_")
            calls[ids[name]].add(to_call(*json.loads(logged[2])))
    return dict(calls)


def to_call(service: str, operation: str, about: Mapping[str, str]) -> Call:
    match service, about:
        case "kms", {"KeyId": "alias/local-audit"}:
            return Call(f"kms:{operation}", AUDIT_KEY)
        case "logs", {"logGroupName": group}:
            return Call(f"logs:{operation}", arn_in_template(group))
        case "kms", {"KeyId": arn, **more}:
            names = ("MessageType", "SigningAlgorithm", "MacAlgorithm")
            context = frozenset((f"kms:{name}", more[name]) for name in names if name in more)
            return Call(f"kms:{operation}", KEYS[operation], context)
        case "dynamodb", {"TableName": table}:
            return Call(f"dynamodb:{operation}", arn_in_template(table))
        case "sesv2", {"FromEmailAddress": sender}:
            return Call(f"ses:{operation}", IDENTITY + sender, frozenset({("ses:FromAddress", sender)}))
        case "secretsmanager", {"SecretId": name}:  # six random characters are added to the name
            own = name.replace(LOCAL, "${AWS::StackName}", 1)
            return Call(f"secretsmanager:{operation}", f"{SECRETS}{own}-a1B2c3")
        case "sqs", {"QueueUrl": url}:
            name = url.rpartition("/")[2]
            of_worker = name.startswith(LOCAL)
            return Call(
                f"sqs:{operation}", name.replace(LOCAL, SQS, 1) if of_worker else arn_in_template(name)
            )
        case "lambda", {"FunctionName": arn}:
            name = arn.rpartition("function:")[2]
            return Call(f"lambda:{operation}Function", name.replace(LOCAL, LAMBDA, 1))
    raise AssertionError(f"{service} {operation} {about}: what is this called?")


def arn_in_template(name: str) -> str:
    """Return the ARN of a table, log group or queue as `support.cloudformation` writes it.

    On this computer, a resource of a nested stack has the name of that stack before its own.
    """
    return f"${{{name.removeprefix('Platform-')}.Arn}}"
