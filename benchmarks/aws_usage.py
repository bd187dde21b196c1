"""Measure the AWS usage of the examples: run template.yaml locally and count the AWS calls of its functions.

All requests go to the front door, from an anonymous caller.
"""

import json
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

from lease_renewals import MINUTES, Clock, claim_lease, renew_for_minutes
from mcp_roundtrip.aws.dynamodb import DynamoStore, from_attributes
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.protocol.constants import TASKS_GET, TASKS_UPDATE
from mcp_roundtrip.tasks.store_interface import Item, item_size
from mcp_roundtrip_testing import WITH_TASKS
from mcp_roundtrip_tools import events as messages
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.http.messages import Request as LocalRequest
from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.template.model import REGION
from mcp_roundtrip_tools.template.yaml_reader import load
from measure import BenchmarkError
from page_flow import answer_on_page, open_session

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
PLATFORM = TEMPLATE.parent / "platform/template.yaml"
WORKER_TIMEOUT_S = 60

HYDERABAD = {"location": "Hyderabad"}
ORDERS = {"name": "orders"}

FRONT_DOOR, TOOL, WORKER = "front door", "tool", "worker"

MEASURED = ("front_door", "weather", "provision_worker")
"""A function of each kind, without the name of the stack."""

Usage = Counter[str]
"""HTTP requests (`request`), invocations of FRONT_DOOR, TOOL and WORKER, KMS requests by operation, DynamoDB
`read` and `write` units, `stored` bytes, `work_ms` of a worker beyond its usual time, lease `renewal`s."""


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage of each flow, the memory of each kind of function, and the resources billed per month.

    `parked` is a call whose question is answered on the question page. `task` is a complete task of the
    example provision without its polls. `work_minute` is a minute of a worker's pass. `month` counts the
    resources that do not depend on the tools, by the name of their price.
    """

    plain: Usage
    question: Usage
    parked: Usage
    task: Usage
    poll: Usage
    work_minute: Usage
    memory_mb: dict[str, int]
    month: Counter[str]


def measure_usage() -> UsageReport:
    """Run the examples. Raise BenchmarkError if one does not give the expected result."""
    with serve_counting() as client:
        app = client.app
        keys = len(app.kms.key_ids())
        client.ask_for_ambiguous_place()  # starts the processes and fetches their keys, which is not counted
        plain = client.usage_of(client.ask_for_tokyo)
        question = client.usage_of(client.ask_for_ambiguous_place)
        question.subtract(plain)
        parked = client.answer_on_page()
        task, poll = client.provision()
        work_minute = client.work_minute()
        functions = {name.partition("_")[2]: each for name, each in app.functions().items()}
        memory = {_kind(functions[name].name): functions[name].memory_mb for name in MEASURED}
        month = Counter(kms_key_month=keys, **_monitoring())
        return UsageReport(plain, +question, parked, task, poll, work_minute, memory, month)


@contextmanager
def serve_counting() -> Iterator["Client"]:
    """Serve the application until the block ends; count the invocations, also those by functions."""
    run_nested = LocalApp.run_nested

    def counting(app: LocalApp, invocation: InvokeRequest) -> InvocationResult:
        kind = _kind(invocation.function)
        with client.changed:
            client.used[kind] += 1
            client.used["request"] += kind == FRONT_DOOR  # nothing else is called over HTTP
        try:
            return run_nested(app, invocation)
        finally:
            with client.changed:
                client.workers_done += kind == WORKER
                client.changed.notify_all()

    silent = {"parameters": {"AuthMode": "none"}, "log": lambda line: None}
    with patch.object(LocalApp, "run_nested", counting), serve(TEMPLATE, **silent) as app:
        client = Client(app)
        yield client


def _kind(function: str) -> str:
    if function.endswith("_front_door"):
        return FRONT_DOOR
    return WORKER if function.endswith("_worker") else TOOL


def _monitoring() -> dict[str, int]:
    """Count the platform's dashboards and the metrics of its alarms."""
    resources = load(PLATFORM)["Resources"].values()
    alarms = [each["Properties"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    metrics = [sum("MetricStat" in metric for metric in alarm.get("Metrics", ())) or 1 for alarm in alarms]
    dashboards = sum(each["Type"] == "AWS::CloudWatch::Dashboard" for each in resources)
    return {"alarm_month": sum(metrics), "dashboard_month": dashboards}


@dataclass
class Client:
    """Call the tools and count usage. `used` does not include KMS requests, which `app` counts."""

    app: LocalApp
    used: Usage = field(default_factory=Counter)
    changed: threading.Condition = field(default_factory=threading.Condition)
    workers_done: int = 0
    unmetered: Callable[[LocalRequest], Response] = field(init=False)

    def __post_init__(self) -> None:
        respond = self.unmetered = self.app.emulator.respond

        def metered(request: LocalRequest) -> Response:
            reply = respond(replace(request, body=_with_capacity(request.body)))
            with self.changed:
                self.used.update(_units(request, reply))
            return reply

        self.app.emulator.respond = metered

    def total(self) -> Usage:
        with self.changed:
            return self.used + self.app.kms.calls

    @contextmanager
    def metered(self) -> Iterator[Usage]:
        """Yield a counter that holds the usage of the block after the block has ended."""
        used: Usage = Counter()
        before, stored = self.total(), self.stored()
        yield used
        used.update(self.total() - before)
        used.update(+Counter(stored=self.stored() - stored))

    def usage_of(self, action: Callable[[], object]) -> Usage:
        with self.metered() as used:
            action()
        return used

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a JSON-RPC request and return its result."""
        event = messages.post("/mcp", message)
        headers = {name: value for name, value in event["headers"].items() if name != "host"}
        with urlopen(Request(self.app.url(), event["body"].encode(), headers)) as response:
            answer = json.load(response)
        if "result" not in answer:
            raise BenchmarkError(f"the response to {message['method']} has no result: {answer}")
        return answer["result"]

    def call(self, name: str, arguments: dict[str, Any], *values: Any, **more: Any) -> dict[str, Any]:
        """Call a tool and accept its questions, one in each round, with these values."""
        result = self.send(messages.call(name, arguments, **more))
        for value in values:
            answers = {key: accepted(value) for key in result["inputRequests"]}
            state = {"requestState": result["requestState"], "inputResponses": answers}
            result = self.send(messages.call(name, arguments, **state, **more))
        return result

    def ask_for_tokyo(self) -> None:
        _expect(self.call("get_weather", {"location": "Tokyo"}), "complete")

    def ask_for_ambiguous_place(self) -> None:
        _expect(self.call("get_weather", HYDERABAD, "Hyderabad, Telangana, India"), "complete")

    def answer_on_page(self) -> Usage:
        """Return the usage of a call whose question is answered on the question page."""
        session = open_session(self.app.url())
        answer_on_page(session, "get_weather", HYDERABAD)  # starts the code of the page
        return self.usage_of(lambda: answer_on_page(session, "get_weather", {"location": "hyderabad"}))

    def provision(self) -> tuple[Usage, Usage]:
        """Return the usage of a complete task without its polls, and of one poll."""
        with self.metered() as task:
            size_and_region = ("small", "eu-central-1")
            created = self.call("provision_database", ORDERS, *size_and_region, capabilities=WITH_TASKS)
            task_id = _expect(created, "task")["taskId"]
            self.await_workers(1)
        poll = self.usage_of(lambda: self.send_task_request(TASKS_GET, task_id))
        with self.metered() as answered:
            self.send_task_request(TASKS_UPDATE, task_id, inputResponses={"keep": accepted(True)})
            self.await_workers(2)
        if self.send_task_request(TASKS_GET, task_id)["status"] != "completed":
            raise BenchmarkError("the task did not complete")
        return task + answered, poll

    def send_task_request(self, method: str, task_id: str, **params: Any) -> dict[str, Any]:
        return self.send(messages.message(method, capabilities=WITH_TASKS, taskId=task_id, **params))

    def await_workers(self, count: int) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.workers_done == count, WORKER_TIMEOUT_S):
                raise BenchmarkError(f"{self.workers_done} workers ended instead of {count}")

    def work_minute(self) -> Usage:
        """Return the usage of a minute of a worker's pass, without its begin and its end."""
        place = {"AWS_DEFAULT_REGION": REGION, **self.app.endpoints}
        dynamodb = AwsClients(environment={**self.app.credentials.variables(), **place}).client("dynamodb")
        clock = Clock()
        lease = claim_lease(DynamoStore(dynamodb, self.table), clock)
        renewals = 0
        with self.metered() as used:
            renewals = renew_for_minutes(lease, clock)
        dynamodb.connections.close()
        if renewals % MINUTES or used["write"] % MINUTES:
            raise BenchmarkError(f"{renewals} renewals wrote {used['write']} units in {MINUTES} minutes")
        per_minute = {name: count // MINUTES for name, count in used.items()}
        return Counter({**per_minute, "renewal": renewals // MINUTES, "work_ms": 60_000})

    @property
    def table(self) -> str:
        """The name of the table of tasks."""
        functions = self.app.functions().values()
        [name] = {load_settings(function.environment).task_table for function in functions} - {None}
        return name

    def stored(self) -> int:
        """Return the size of all items in the table of tasks, in bytes."""
        scope = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request"
        headers = (("x-amz-target", "DynamoDB_20120810.Scan"), ("authorization", scope))
        body = json.dumps({"TableName": self.table, "ConsistentRead": True}).encode()
        reply = self.unmetered(LocalRequest("POST", "/", headers, body))
        return sum(item_size(_decoded(item)) for item in json.loads(reply.body)["Items"])


def _with_capacity(body: bytes) -> bytes:
    return json.dumps({**json.loads(body), "ReturnConsumedCapacity": "TOTAL"}).encode()


def _units(request: LocalRequest, reply: Response) -> Usage:
    """Return the capacity units of a request. A failed condition consumes one unit: items are below 1 KB."""
    operation = (request.header("x-amz-target") or "").rpartition(".")[2]
    kind = "read" if operation in ("GetItem", "Query") else "write"
    if reply.status != 200:
        return Counter({kind: 1})
    consumed = json.loads(reply.body)["ConsumedCapacity"]
    tables = consumed if isinstance(consumed, list) else [consumed]
    return Counter({kind: round(sum(table["CapacityUnits"] for table in tables))})


def _decoded(item: Mapping[str, Any]) -> Item:
    return from_attributes(
        {name: {"B": b64decode(value["B"])} if "B" in value else value for name, value in item.items()}
    )


def accepted(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def _expect(result: dict[str, Any], result_type: str) -> dict[str, Any]:
    if result["resultType"] != result_type:
        raise BenchmarkError(f"expected resultType {result_type}, got {result}")
    return result
