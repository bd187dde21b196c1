"""The contract of a Dispatcher: asynchronous invocations of a function, and a queue.

Functions are invoked through the Invoke API of `local`, queues are ministack's; the clients are AWS's own.
"""

import json
import secrets
from pathlib import Path
from queue import Queue
from unittest.mock import Mock

import boto3
import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.invocation import AwsDispatcher
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.related_items import TaskCall
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import REGION, Function, function_arn
from support.aws_clients import CLIENTS, DEFAULT_KIND, OneClient
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.stored_tasks import StoredTasks
from support.task_tools import ran, run_step

pytest_plugins = ["support.ministack"]


JOBS = Function("Jobs", "app.worker", Path("/"), (), {}, 900, 128, alias="live")
TIMEOUT_S = 20

server = Server("jobs")


@server.tool(task="required")
def compute(ctx: Context, label: str, nap_ms: int) -> None:
    ctx.run_as_task()
    if nap_ms:
        ctx.sleep("nap", nap_ms)
    ctx.step("compute", run_step, label)


class Dispatched:
    """Tasks whose workers a dispatcher triggers at `address`. The store refuses the tasks in `refused`."""

    address = "worker"

    def __init__(self):
        self.refused = set()
        self.store = FaultyStore(matches=lambda operation: operation.keys[0][0] in self.refused)
        self.stored = StoredTasks.over(self.store, principal=None)
        self.clock, self.now_ms = self.stored.clock, self.stored.now_ms
        self.dispatcher = self.connect()
        self.deployment = Deployment(
            server, clock=self.clock, store=self.store, dispatcher=self.dispatcher, user=None
        )
        self.work = self.deployment.work

    def create(self, label="a", nap_ms=0):
        """Create a task without a dispatch, and return its partition key."""
        call = TaskCall("tools/call", "compute", {"label": label, "nap_ms": nap_ms}, None, None)
        return self.stored.create(call, worker=self.address).pk

    def run(self, *pks):
        """Dispatch workers, and wait until all due work is done."""
        for pk in pks:
            self.dispatcher.dispatch(self.address, pk)
        self.settle()

    def status(self, pk):
        """Return the stored status, without a poll."""
        return Task.from_item(self.store.store.get(pk, TASK)).status.value

    def close(self):
        """Close the clients."""


class Invoked(Dispatched):
    """Workers are invoked asynchronously. `invocations` has (qualifier, response or error) of ended ones."""

    address = function_arn("Jobs", "live")

    def connect(self):
        self.invocations, self._accepted, self._ended = [], 0, Queue()
        self._api = LambdaApi(lambda: {"Jobs": JOBS}, self._invoke)
        self.api = HttpServer(self._respond, max_body=1_000_000).start()
        return AwsDispatcher(clients(), self.now_ms)

    def _respond(self, request):
        reply = self._api.respond(request)
        self._accepted += reply.status == 202
        return reply

    def _invoke(self, invocation):
        try:
            self._ended.put((invocation.qualifier, self.work(json.loads(invocation.payload))))
        except StoreError as failure:  # Lambda retries the invocation some minutes later
            self._ended.put((invocation.qualifier, failure))
        return InvocationResult(b"null")

    def settle(self):
        while len(self.invocations) < self._accepted:
            self.invocations.append(self._ended.get(timeout=TIMEOUT_S))

    def close(self):
        self.settle()
        close_clients(self.dispatcher)
        self.api.close()


class ConsumedQueue:
    """A queue that this class consumes as Lambda does. `work` handles the events."""

    def __init__(self, work):
        self.work, self.sqs = work, boto3.client("sqs")
        # Messages that are not deleted can be received again at once.
        created = self.sqs.create_queue(
            QueueName=f"tasks-{secrets.token_hex(8)}", Attributes={"VisibilityTimeout": "0"}
        )
        self.url = created["QueueUrl"]

    def receive(self, wait_s=0):
        received = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["All"],
        )
        return received.get("Messages", [])

    def deliver(self, messages):
        """Process a batch as Lambda does. Return the ids of the messages that stay in the queue."""
        answer = self.work({"Records": [sqs_record(message, self.url) for message in messages]})
        left = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        for message in messages:
            if message["MessageId"] not in left:
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return left

    def end_visibility_timeout(self, message):
        """Let a message be received again now."""
        self.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )


class Queued(Dispatched):
    """A queue triggers workers."""

    def connect(self):
        self.queue = ConsumedQueue(lambda event: self.work(event))
        self.address = self.queue.url
        return AwsDispatcher(clients(), self.now_ms)

    def settle(self):
        while messages := self.queue.receive():
            assert self.queue.deliver(messages) == []

    def close(self):
        close_clients(self.dispatcher)
        self.queue.sqs.close()


class Woken(Invoked):
    """Workers are invoked asynchronously, and a queue wakes sleeping tasks."""

    def connect(self):
        super().connect()
        self.queue = ConsumedQueue(lambda event: self.work(event))
        return AwsDispatcher(clients(), self.now_ms, queue=self.queue.url)

    def close(self):
        super().close()
        self.queue.sqs.close()


def sqs_record(message, queue):
    """Return a record as in https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html"""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message.get("ReceiptHandle", "none"),
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:000000000000:{queue.rpartition('/')[2]}",
        "awsRegion": REGION,
    }


@pytest.fixture
def environment(monkeypatch):
    """Set the variables of an execution environment. `environment(LAMBDA=url)` sets the URL of a service."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)

    def endpoints(**urls):
        for service, url in urls.items():
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", url)

    return endpoints


def clients():
    return CLIENTS[DEFAULT_KIND]()


def close_clients(dispatcher):
    for created in vars(dispatcher).keys() & {"_lambda", "_sqs"}:
        getattr(dispatcher, created).close()


def fixture_of(kind):
    """Return a fixture with tasks whose clients reach the services that they need."""

    @pytest.fixture
    def dispatched(request, environment):
        if kind in (Queued, Woken):
            environment(SQS=request.getfixturevalue("ministack"))
        deployed = kind()
        if isinstance(deployed, Invoked):
            environment(LAMBDA=deployed.api.url)
        yield deployed
        deployed.close()

    return dispatched


functions, queued, woken = map(fixture_of, (Invoked, Queued, Woken))


@pytest.fixture(params=["functions", "queued"])
def deployed(request):
    return request.getfixturevalue(request.param)


def test_a_delayed_dispatch_does_nothing_at_once(deployed):
    pk = deployed.create()
    deployed.dispatcher.dispatch_at(deployed.address, pk, deployed.now_ms() + 60_000)
    deployed.settle()
    assert (deployed.status(pk), ran) == ("working", [])


def test_each_task_runs_once_however_often_it_is_dispatched(deployed):
    pks = [deployed.create(label) for label in "abc"]
    deployed.run(*pks, pks[0], "unknown#task")
    deployed.run(pks[1])
    assert {deployed.status(pk) for pk in pks} == {"completed"}
    assert sorted(ran) == ["a", "b", "c"]


@pytest.mark.parametrize(("version", "invoked"), [("live", "live"), ("7", None)])
def test_a_task_runs_on_its_version_or_on_the_newest_if_that_was_deleted(functions, version, invoked):
    functions.address = function_arn("Jobs", version)
    pk = functions.create()
    functions.run(pk)
    assert functions.status(pk) == "completed"
    assert functions.invocations == [(invoked, None)]


class RefusingClient:
    """A client of Lambda that may not invoke any function."""

    def __init__(self):
        self.invoked = []

    def call(self, operation, **parameters):
        self.invoked.append(parameters["FunctionName"])
        raise AwsError("AccessDeniedException")


def test_a_version_that_may_not_be_invoked_is_not_replaced_by_the_newest():
    client, own = RefusingClient(), function_arn("Jobs", "7")
    with pytest.raises(StoreError) as failed:
        AwsDispatcher(OneClient(client), lambda: 0).dispatch(own, "p#t")
    assert (failed.value.reason, client.invoked) == ("AccessDeniedException", [own])


@pytest.mark.parametrize(("at_ms", "delay_s"), [(900, 0), (1_001, 0), (5_000, 4), (2_000_000, 900)])
def test_a_wake_up_is_delivered_at_its_time_or_in_less_than_a_second(at_ms, delay_s):
    client = Mock()
    AwsDispatcher(OneClient(client), lambda: 1_001).dispatch_at(
        "http://127.0.0.1/000000000000/jobs", "p#t", at_ms
    )
    assert client.call.call_args.kwargs["DelaySeconds"] == delay_s


def test_only_messages_whose_task_could_not_be_updated_stay_in_the_queue(queued):
    pks = [queued.create(label) for label in "abc"]
    queued.refused.add(pks[1])
    for pk in pks:
        queued.dispatcher.dispatch(queued.address, pk)
    messages = {json.loads(message["Body"])["task"]: message for message in queued.queue.receive()}
    left = messages[pks[1]]
    assert queued.queue.deliver(messages.values()) == [left["MessageId"]]
    assert [queued.status(pk) for pk in pks] == ["completed", "working", "completed"]
    queued.refused.clear()
    assert queued.queue.receive() == [], "it stays hidden until its lease would have ended"
    queued.queue.end_visibility_timeout(left)
    again = queued.queue.receive()
    assert [message["MessageId"] for message in again] == [left["MessageId"]]
    assert queued.queue.deliver(again) == []
    assert queued.status(pks[1]) == "completed"
    assert sorted(ran) == ["a", "b", "c"]


@pytest.mark.parametrize("deployed", ["queued", "woken"], indirect=True)
def test_a_sleeping_task_is_woken_by_the_queue_without_a_poll_and_runs_on_its_version(deployed):
    pk = deployed.create(nap_ms=1_000)
    deployed.run(pk)
    assert (deployed.status(pk), ran) == ("working", [])
    deployed.clock.advance(1)
    assert deployed.queue.deliver(deployed.queue.receive(wait_s=TIMEOUT_S)) == []
    deployed.settle()
    assert (deployed.status(pk), ran) == ("completed", ["a"])
    assert getattr(deployed, "invocations", []) in ([], [("live", None)] * 2)
