"""The contract of a Dispatcher: a queue of ministack triggers workers, and invocations of a function."""

import json
import secrets
from unittest.mock import Mock

import boto3
import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.lambda_and_sqs import AwsDispatcher
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip_tools.template.model import REGION, function_arn
from support.aws_clients import CLIENTS, DEFAULT_KIND, OneClient
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.stored_tasks import StoredTasks
from support.task_tools import ran, run_step

pytest_plugins = ["support.ministack"]

TIMEOUT_S = 20

server = Server("jobs")


@server.tool(task="required")
def compute(ctx: Context, label: str, nap_ms: int) -> None:
    ctx.run_as_task()
    if nap_ms:
        ctx.sleep("nap", nap_ms)
    ctx.step("compute", run_step, label)


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


class QueuedTasks:
    """Tasks whose workers a queue triggers. The store refuses the tasks in `refused`."""

    def __init__(self):
        self.refused = set()
        self.store = FaultyStore(matches=lambda operation: operation.keys[0][0] in self.refused)
        self.stored = StoredTasks.over(self.store, principal=None)
        self.clock, self.now_ms = self.stored.clock, self.stored.now_ms
        self.dispatcher = AwsDispatcher(CLIENTS[DEFAULT_KIND](), self.now_ms)
        deployment = Deployment(
            server, clock=self.clock, store=self.store, dispatcher=self.dispatcher, user=None
        )
        self.queue = ConsumedQueue(deployment.work)

    def create(self, label="a", nap_ms=0):
        """Create a task without a dispatch, and return its partition key."""
        call = TaskCall("tools/call", "compute", {"label": label, "nap_ms": nap_ms}, None, None)
        return self.stored.create(call, worker=self.queue.url).pk

    def run(self, *pks):
        """Dispatch workers, and wait until all due work is done."""
        for pk in pks:
            self.dispatcher.dispatch(self.queue.url, pk)
        while messages := self.queue.receive():
            assert self.queue.deliver(messages) == []

    def status(self, pk):
        """Return the stored status, without a poll."""
        return Task.from_item(self.store.store.get(pk, TASK)).status.value


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
def queued(monkeypatch, ministack):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", ministack)
    deployed = QueuedTasks()
    yield deployed
    deployed.queue.sqs.close()


def test_each_task_runs_once_however_often_it_is_dispatched(queued):
    pks = [queued.create(label) for label in "abc"]
    queued.run(*pks, pks[0], "unknown#task")
    queued.run(pks[1])
    assert {queued.status(pk) for pk in pks} == {"completed"}
    assert sorted(ran) == ["a", "b", "c"]


class LambdaClient:
    """A client of Lambda that refuses to invoke one function with an error."""

    def __init__(self, refused, code):
        self.refused, self.code, self.invoked = refused, code, []

    def call(self, operation, **parameters):
        self.invoked.append((parameters["FunctionName"], parameters["Payload"]))
        if parameters["FunctionName"] == self.refused:
            raise AwsError(self.code)


OWN, NEWEST = function_arn("Jobs", "7"), function_arn("Jobs")


@pytest.mark.parametrize(("deleted", "invoked"), [(None, [OWN]), (OWN, [OWN, NEWEST])])
def test_a_task_runs_on_its_version_or_on_the_newest_if_that_was_deleted(deleted, invoked):
    client = LambdaClient(deleted, "ResourceNotFoundException")
    AwsDispatcher(OneClient(client), lambda: 0).dispatch(OWN, "p#t")
    assert client.invoked == [(function, b'{"task":"p#t"}') for function in invoked]


def test_a_version_that_may_not_be_invoked_is_not_replaced_by_the_newest():
    client = LambdaClient(OWN, "AccessDeniedException")
    with pytest.raises(StoreError) as failed:
        AwsDispatcher(OneClient(client), lambda: 0).dispatch(OWN, "p#t")
    assert failed.value.reason == "AccessDeniedException"
    assert len(client.invoked) == 1


QUEUE = "http://127.0.0.1/000000000000/jobs"


@pytest.mark.parametrize("worker", [QUEUE, OWN])
@pytest.mark.parametrize(("at_ms", "delay_s"), [(0, 0), (900, 0), (1_001, 0), (5_000, 4), (2_000_000, 900)])
def test_a_wake_up_is_delivered_at_its_time_or_in_less_than_a_second(worker, at_ms, delay_s):
    client = Mock()
    AwsDispatcher(OneClient(client), lambda: 1_001, queue=QUEUE).dispatch_at(worker, "p#t", at_ms)
    sent = client.call.call_args.kwargs
    assert (sent["QueueUrl"], sent["DelaySeconds"]) == (QUEUE, delay_s)


def test_only_messages_whose_task_could_not_be_updated_stay_in_the_queue(queued):
    pks = [queued.create(label) for label in "abc"]
    queued.refused.add(pks[1])
    for pk in pks:
        queued.dispatcher.dispatch(queued.queue.url, pk)
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


def test_a_sleeping_task_is_woken_by_the_queue_without_a_poll(queued):
    pk = queued.create(nap_ms=1_000)
    queued.run(pk)
    assert (queued.status(pk), ran) == ("working", [])
    queued.clock.advance(1)
    assert queued.queue.deliver(queued.queue.receive(wait_s=TIMEOUT_S)) == []
    queued.run()
    assert (queued.status(pk), ran) == ("completed", ["a"])
