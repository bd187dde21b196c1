"""An application of `mcp-roundtrip new` that grows. Each step is deployed over the one before.

A step is a command or a parameter of docs/guides/adding-a-tool.md and docs/reference/options.md, and then
`make deploy`. tests/tools/growth/test_growing.py runs the tests of the application.

support/aws_account.py describes the account. It cannot show what AWS adds to an update: the time until all of
AWS knows a changed route, and the shift of traffic by CodeDeploy.
"""

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from textwrap import indent
from threading import Event, Thread
from typing import Any

import anyio
import httpx2
import pytest

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.command import write_application
from mcp_roundtrip_tools.new.package_source import CHECKSUMS, checksums, package_files
from mcp_roundtrip_tools.template.model import PACKAGE
from support import aws_account
from support.authorization_server import PATH, AuthorizationServer, authorization_server
from support.clients import Person, answered_on_page, fast_mcp, official
from support.deploying import Deployer
from support.documents import code_blocks
from support.interpreters import SITE
from support.layers import share_layers
from support.messages import call, headers, message
from support.project import edit
from support.sam_build import NATIVE_RUNTIME, require_deployed_runtime, sam_build

pytestmark = pytest.mark.anyio

ENDPOINT = "https://tools.example/mcp"
"""The emulator's own address is not https, which AuthMode bearer refuses."""

ISSUER = f"https://issuer.example{PATH}"
"""A deployment refuses an issuer on this computer. A variable names the URL of its keys, which is here."""

USER = "ada-"

OLDER = "0.0.1"
CHANGED = "  MaxOpenTasks:\n    Type: Number\n    Default: "
"""The older platform has another default than this one."""

TEXT = {"text": "Ask before you count."}
ORDER, UNIT = {"value": "A-1002"}, {"value": "words"}
STATUS, LENGTH = {"text": "A-1002 is being packed."}, {"length": 4, "unit": "words"}

TOOLS = ("order_status", "find_parts", "count_parts", "translate")

OPTIONS = "docs/reference/options.md"

PASSED = "        TokenIssuer: !Ref TokenIssuer\n"
VARIABLES = "      Variables:\n        MCP_SETTINGS: !GetAtt Platform.Outputs.Settings\n"
ENVIRONMENT = "    Environment:\n      Variables:\n        MCP_SETTINGS:"

WORKER_S = 60
PAUSE_S = 0.1


@dataclass
class Application:
    """The application and its deployer. `variables` are those of make, `signs_in`: callers need a token."""

    deployer: Deployer
    issuer: AuthorizationServer
    variables: dict[str, str]
    signs_in: bool = False
    users: Iterator[int] = field(default_factory=itertools.count)

    def make(self, *arguments: str) -> str:
        """Run make with these arguments, which works; return what it prints."""
        done = self.deployer.make(*arguments, **self.variables)
        assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *self.failures()])
        return done.stdout

    def token(self) -> str | None:
        """Return a token of another user, if callers need one. A user would get the same result again."""
        token = self.issuer.token(ENDPOINT, iss=ISSUER, sub=f"{USER}{next(self.users)}")
        return token if self.signs_in else None

    def failures(self) -> Iterator[str]:
        yield from aws_account.failures(self.deployer.cloud, self.deployer.stack_name)

    def edit(self, old: str, new: str) -> None:
        """Replace a text in the template of the application."""
        edit(self.deployer.folder / "template.yaml", old, new)

    @property
    def url(self) -> str:
        return self.deployer.stack.endpoint("/mcp")


EXISTING = "Parameters: {Size: {Type: String, Default: s}}\nResources: {Jobs: {Type: AWS::SQS::Queue}}\n"


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """Yield a new application with a task, deployed with an older package over the stack of another one."""
    require_deployed_runtime()
    folder = tmp_path_factory.mktemp("growing")
    write_application(folder / "orders", NATIVE_RUNTIME, NATIVE_ARCHITECTURE, wheel_in(folder))
    share_layers(folder / "orders/layer/Makefile", {"orders": sam_build().layer})
    older = install_older_package(folder)
    with aws_account.running(tmp_path_factory.mktemp("cloud")) as cloud, authorization_server() as issuer:
        app = Application(Deployer(cloud, folder / "orders", "orders"), issuer, older)
        app.edit(PASSED, f"{PASSED}        EndpointUri: {ENDPOINT}\n")
        cloudformation = cloud.client("cloudformation")
        cloudformation.create_stack(StackName="orders", TemplateBody=EXISTING)
        cloudformation.get_waiter("stack_create_complete").wait(StackName="orders", WaiterConfig={"Delay": 1})
        app.make("new-tool", "NAME=count_parts", "TASKS=1")
        app.make("deploy", "PARAMETERS=AuthMode=none")
        yield app


def wheel_in(folder: Path) -> Path:
    """Write a wheel that nothing installs: the tests have the package, and the layer is built already."""
    wheel = folder / f"mcp_roundtrip-{version(PACKAGE)}-py3-none-any.whl"
    wheel.touch()
    return wheel


def install_older_package(folder: Path) -> dict[str, str]:
    """Give the application the platform of an older package, and return the variables that install it."""
    files = package_files()
    text = files["template.yaml"].replace(f"    Version: {version(PACKAGE)}\n", f"    Version: {OLDER}\n")
    assert f"{CHANGED}10\n" in text
    files["template.yaml"] = text.replace(f"{CHANGED}10\n", f"{CHANGED}5\n")
    platform = folder / "orders/platform"
    write({**{platform / name: text for name, text in files.items()}, platform / CHECKSUMS: checksums(files)})
    installed = folder / "older"
    write(
        {installed / f"mcp_roundtrip-{OLDER}.dist-info/METADATA": f"Name: mcp-roundtrip\nVersion: {OLDER}\n"}
    )
    return {"PYTHONPATH": os.pathsep.join([str(installed), str(SITE / "fast_yaml")])}


async def works(app: Application, *tools: str) -> None:
    """Assert that the endpoint has these tools, and that clients complete calls in every way."""
    assert app.make("--silent", "url") == f"{ENDPOINT}\n"
    async with official(app.url, person := Person([ORDER]), app.token()) as client:
        assert {tool.name for tool in (await client.client.list_tools()).tools} == set(tools)
        assert await client.call("order_status", {}) == STATUS
    assert person.asked == ["Which order?"]
    asked = answered_on_page(app.url, "order_status", "A-1002", token=app.token(), address=ENDPOINT)
    assert await asked == STATUS["text"]
    for tool in tools[1:]:
        connect = fast_mcp if tool == "count_parts" else official
        async with connect(app.url, Person([UNIT]), app.token()) as client:
            with anyio.fail_after(WORKER_S):
                assert await client.call(tool, TEXT) == LENGTH
    if "count_parts" in tools:
        assert app.deployer.stack.task_states().keys() == {"completed"}


def post(app: Application, body: Mapping[str, Any]) -> httpx2.Response:
    """Send a request of a client that can be asked, without credentials."""
    return httpx2.post(app.url, content=json.dumps(body), headers=headers(body), timeout=WORKER_S)


@contextmanager
def traffic(url: str) -> Iterator[list[int | str]]:
    """Send requests until the block ends; yield the list of their statuses, and of errors of the network."""
    outcomes, ended = list[int | str](), Event()
    bodies = itertools.cycle([message("tools/list"), call("order_status")])

    def send() -> None:
        with httpx2.Client(timeout=WORKER_S) as client:
            while not ended.wait(PAUSE_S):
                body = next(bodies)
                try:
                    outcomes.append(
                        client.post(url, content=json.dumps(body), headers=headers(body)).status_code
                    )
                except httpx2.HTTPError as error:
                    outcomes.append(repr(error))

    sender = Thread(target=send)
    sender.start()
    try:
        yield outcomes
    finally:
        ended.set()
        sender.join()


async def test_one_function_with_a_task(application):
    await works(application, "order_status", "count_parts")


async def test_a_second_tool_and_a_second_function_behind_a_front_door(application):
    application.make("new-tool", "NAME=find_parts")
    application.make("new-function", "NAME=translate")
    asked = post(application, call("order_status")).json()["result"]
    with traffic(application.url) as outcomes:
        application.make("deploy")
    assert set(outcomes) == {200}
    assert "FrontDoorFunction" in application.deployer.stack.resources
    # A call that was asked before the deployment continues after it.
    [key] = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": ORDER}}
    retry = call("order_status", requestState=asked["requestState"], inputResponses=answers)
    [content] = post(application, retry).json()["result"]["content"]
    assert content["text"] == STATUS["text"]
    await works(application, *TOOLS)


async def test_a_new_version_of_the_platform_with_tokens_gradual_deployments_and_audit_records(application):
    assert application.deployer.settings("ServerFunction")["MCP_MAX_OPEN_TASKS"] == "5"
    application.variables.clear()  # the new package is installed
    refused = application.deployer.make("deploy")
    assert refused.returncode != 0
    assert "run make upgrade" in refused.stderr
    assert "platform/template.yaml" in application.make("upgrade")
    keys = f"{application.issuer.issuer}/keys"
    application.edit(VARIABLES, f"{VARIABLES}        MCP_TOKEN_JWKS_URI: {keys}\n")
    [block] = [each for each in code_blocks(OPTIONS, "yaml") if each.startswith("DeploymentPreference:")]
    application.edit(ENVIRONMENT, indent(block, "    ") + ENVIRONMENT)
    application.edit(PASSED, f"{PASSED}        AuditLog: hash\n")
    application.make("deploy", f"PARAMETERS=AuthMode=bearer TokenIssuer={ISSUER}")
    assert application.deployer.settings("ServerFunction")["MCP_MAX_OPEN_TASKS"] == "10"
    assert application.deployer.ask_endpoint().status == 401
    groups = [name for name in application.deployer.stack.resources if name.endswith("DeploymentGroup")]
    assert sorted(groups) == [
        f"{name}FunctionDeploymentGroup" for name in ("FrontDoor", "Server", "Translate")
    ]
    application.signs_in = True
    await works(application, *TOOLS)
    group = application.deployer.stack.resources["Platform.AuditLogs"]
    logs = application.deployer.cloud.client("logs")
    records = [each["message"] for each in logs.filter_log_events(logGroupName=group)["events"]]
    assert any("order_status" in record for record in records)
    assert not any(USER in record for record in records)
