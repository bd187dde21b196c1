"""What the examples use of AWS: template.yaml runs here, and what its functions call is counted.

Everything comes in at the front door, for a caller without a name.
"""

import json
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from mcp_roundtrip.aws.expressions import from_attributes
from mcp_roundtrip.protocol.methods import TASKS_GET, TASKS_UPDATE
from mcp_roundtrip.tasks.changes import Item
from mcp_roundtrip.tasks.model import partition_key
from mcp_roundtrip.tasks.store import size_of
from mcp_roundtrip_local import LocalApp, serve
from mcp_roundtrip_local.execution.environment import Outcome
from mcp_roundtrip_local.http.messages import Reply
from mcp_roundtrip_local.http.messages import Request as LocalRequest
from mcp_roundtrip_local.sample_events import messages
from mcp_roundtrip_local.sample_events import stable as samples
from mcp_roundtrip_local.template.yaml_reader import load
from measure import DidNotRun

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
PATIENCE_S = 60

FRONT_DOOR, TOOL, WORKER = "front door", "tool", "worker"

Usage = Counter[str]
"""Requests at the door, invocations of FRONT_DOOR, TOOL and WORKER, KMS requests by operation, `read` and
`write` units, `stored` bytes."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What each of these uses, and the megabytes of memory that functions of each kind have.

    `task` is a whole one of the example provision, but for the polls; `month` is what the stack has that
    is paid by the month, by the price's name.
    """

    plain: Usage
    question: Usage
    task: Usage
    poll: Usage
    memory_mb: dict[str, int]
    month: Counter[str]


def counted() -> Counted:
    """Run the examples. Raises DidNotRun."""
    with serve(TEMPLATE, parameters={"AuthMode": "none"}, log=lambda line: None) as app:
        keys = app.kms.calls["CreateKey"]
        client = Client(app)
        client.ask_about_the_weather()  # the functions' processes start, and get their keys
        plain = client.use(client.ask_about_tokyo)
        asked = client.use(client.ask_about_the_weather)
        asked.subtract(plain)
        task, poll = client.provision()
        memory = {_kind(function.name): function.memory_mb for function in app.functions().values()}
        return Counted(plain, +asked, task, poll, memory, Counter(kms_key_month=keys, **_watching()))


def _kind(function: str) -> str:
    if function.startswith("FrontDoor"):
        return FRONT_DOOR
    return WORKER if function.endswith("WorkerFunction") else TOOL


def _watching() -> dict[str, int]:
    """The template's dashboards, and its alarms as the metrics they look at."""
    resources = load(TEMPLATE)["Resources"].values()
    alarms = [each["Properties"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    metrics = [sum("MetricStat" in metric for metric in alarm.get("Metrics", ())) or 1 for alarm in alarms]
    dashboards = sum(each["Type"] == "AWS::CloudWatch::Dashboard" for each in resources)
    return {"alarm_month": sum(metrics), "dashboard_month": dashboards}


@dataclass
class Client:
    """Calls the tools; `used` is what has been used so far, but for what `app` counts by itself."""

    app: LocalApp
    used: Usage = field(default_factory=Counter)
    changed: threading.Condition = field(default_factory=threading.Condition)
    workers_done: int = 0

    def __post_init__(self) -> None:
        run_within = self.app.run_within

        def counting(function: str, *how: Any) -> Outcome:
            kind = _kind(function)
            with self.changed:
                self.used[kind] += 1
            try:
                return run_within(function, *how)
            finally:
                with self.changed:
                    self.workers_done += kind == WORKER
                    self.changed.notify_all()

        respond = self.app.emulator.respond

        def metered(request: LocalRequest) -> Reply:
            reply = respond(replace(request, body=_with_capacity(request.body)))
            with self.changed:
                self.used.update(_units(request, reply))
            return reply

        self.app.emulator.respond = metered
        self.app.run_within = counting  # both ways to a function, the gateway and Invoke, look it up here

    def total(self) -> Usage:
        with self.changed:
            return self.used + self.app.kms.calls

    @contextmanager
    def metered(self) -> Iterator[Usage]:
        """What the block uses, once it has ended."""
        used: Usage = Counter()
        before = self.total()
        yield used
        used.update(self.total() - before)

    def use(self, something: Any) -> Usage:
        with self.metered() as used:
            something()
        return used

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the result."""
        event = messages.post(samples.MCP, message)
        headers = {name: value for name, value in event["headers"].items() if name != "host"}
        with self.changed:
            self.used["request"] += 1
        with urlopen(Request(self.app.url(), event["body"].encode(), headers)) as response:
            answer = json.load(response)
        if "result" not in answer:
            raise DidNotRun(f"{message['method']} was answered {answer}")
        return answer["result"]

    def call(self, name: str, arguments: dict[str, Any], *values: Any, **more: Any) -> dict[str, Any]:
        """Call a tool, whose questions, one in each round, get these values."""
        result = self.send(messages.call(name, arguments, **more))
        for value in values:
            answers = {key: accepted(value) for key in result["inputRequests"]}
            state = {"requestState": result["requestState"], "inputResponses": answers}
            result = self.send(messages.call(name, arguments, **state, **more))
        return result

    def ask_about_tokyo(self) -> None:
        _expect(self.call("get_weather", {"location": "Tokyo"}), "complete")

    def ask_about_the_weather(self) -> None:
        _expect(self.call("get_weather", samples.HYDERABAD, "Hyderabad, Telangana, India"), "complete")

    def provision(self) -> tuple[Usage, Usage]:
        """A whole task without its polls, and a poll."""
        with self.metered() as task:
            size_and_region = ("small", "eu-central-1")
            created = self.call(
                "provision_database", samples.ORDERS, *size_and_region, capabilities=samples.WITH_TASKS
            )
            task_id = _expect(created, "task")["taskId"]
            self.await_workers(1)
        poll = self.use(lambda: self.about(TASKS_GET, task_id))
        with self.metered() as answered:
            self.about(TASKS_UPDATE, task_id, inputResponses={"keep": accepted(True)})
            self.await_workers(2)
        if self.about(TASKS_GET, task_id)["status"] != "completed":
            raise DidNotRun("the task did not complete")
        return task + answered + Counter(stored=self.stored(task_id)), poll

    def about(self, method: str, task_id: str, **params: Any) -> dict[str, Any]:
        return self.send(messages.message(method, capabilities=samples.WITH_TASKS, taskId=task_id, **params))

    def await_workers(self, count: int) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.workers_done == count, PATIENCE_S):
                raise DidNotRun(f"{self.workers_done} workers came to an end, not {count}")

    def stored(self, task_id: str) -> int:
        """Bytes of a task's items."""
        names = {function.environment.get("MCP_TASK_TABLE") for function in self.app.functions().values()}
        [name] = names - {None}
        partition = partition_key("extension", None, task_id)
        query = {
            "TableName": name,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": partition}},
        }
        scope = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request"
        headers = (("x-amz-target", "DynamoDB_20120810.Query"), ("authorization", scope))
        reply = self.app.emulator.respond(LocalRequest("POST", "/", headers, json.dumps(query).encode()))
        return sum(size_of(_decoded(item)) for item in json.loads(reply.body)["Items"])


def _with_capacity(body: bytes) -> bytes:
    return json.dumps({**json.loads(body), "ReturnConsumedCapacity": "TOTAL"}).encode()


def _units(request: LocalRequest, reply: Reply) -> Usage:
    """The capacity units of a request. One whose condition fails consumes one: its items are below 1 KB."""
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
        raise DidNotRun(f"a call came to {result}")
    return result
