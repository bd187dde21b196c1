import json
import threading
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mcp_roundtrip_tools.run.execution.async_invocations import RealTimers
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.observation.records import Cause, caused_by, current_cause
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.template.model import Queue
from support.aws_clients import boto3_client
from support.manual_timers import ManualTimers
from support.sam_applications import wait_until

WITHIN_S = 5
QUEUE = Queue("Jobs", "Worker", visibility_timeout_s=0.01, max_receives=3, dead_letter="Failures")
QUEUES = {"Jobs": QUEUE, "Failures": Queue("Failures"), "Unread": Queue("Unread")}


@dataclass
class Reader:
    """The consumer of a queue. It returns or raises its next `answers`."""

    answers: Callable[[dict[str, Any]], Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)

    def run(self, invocation):
        self.causes.append(current_cause())
        assert invocation.function == "Worker"
        [record] = json.loads(invocation.payload)["Records"]
        answer = self.answers(record)
        self.records.append(record)
        return (
            InvocationResult(b"{}", failed=True)
            if answer is None
            else InvocationResult(json.dumps(answer).encode())
        )


def all_done(record):
    return {"batchItemFailures": []}


def failed(record):
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}


def crashed(record):
    return None


@pytest.fixture
def reader():
    return Reader(all_done)


@pytest.fixture
def sqs(reader):
    with serving(reader, RealTimers()) as client:
        yield client


@contextmanager
def serving(reader, timers):
    queues = Queues(lambda: QUEUES, reader.run, reader.log.append, timers)

    def respond(request):
        with caused_by("http", "sender"):
            return queues.respond(request)

    server = HttpServer(respond).start()
    with closing(boto3_client("sqs", server.url)) as client, closing(server), closing(timers):
        yield client


def url(sqs, name="Jobs"):
    return f"{sqs.meta.endpoint_url}/000000000000/{name}"


def test_a_message_is_delivered_to_the_consumer_once(sqs, reader):
    sent = sqs.send_message(QueueUrl=url(sqs), MessageBody='{"task": "é"}')
    wait_until(lambda: reader.records)
    [record] = reader.records
    assert (record["messageId"], record["body"]) == (sent["MessageId"], '{"task": "é"}')
    assert record["md5OfBody"] == sent["MD5OfMessageBody"]
    assert record["eventSourceARN"].endswith(":Jobs")
    assert reader.causes == [Cause("queue", "sender")]


def unreadable(record):
    return {"batchItemFailures": ["what is this?"]}


@pytest.mark.parametrize("answers", [failed, crashed, unreadable])
def test_a_failed_message_is_redelivered_up_to_the_limit(sqs, reader, answers):
    reader.answers = answers
    sqs.send_message(QueueUrl=url(sqs), MessageBody="x")
    wait_until(lambda: reader.log)
    receives = [record["attributes"]["ApproximateReceiveCount"] for record in reader.records]
    assert receives == ["1", "2", "3"]
    [dropped] = sqs.receive_message(QueueUrl=url(sqs, "Failures"))["Messages"]
    assert dropped["Body"] == "x"


def test_a_delayed_message_waits_and_is_not_delivered_after_the_end(reader):
    before = set(threading.enumerate())
    with serving(reader, RealTimers()) as client:
        client.send_message(QueueUrl=url(client), MessageBody="late", DelaySeconds=900)
        client.send_message(QueueUrl=url(client), MessageBody="now")
        wait_until(lambda: reader.records)
    for thread in set(threading.enumerate()) - before:
        thread.join(WITHIN_S)
        assert not thread.is_alive()
    assert [record["body"] for record in reader.records] == ["now"]


def test_a_message_is_hidden_while_its_visibility_is_extended(reader):
    timers = ManualTimers()
    reader.answers = failed
    with serving(reader, timers) as client:
        client.send_message(QueueUrl=url(client), MessageBody="x")
        timers.advance(0)
        handle = reader.records[0]["receiptHandle"]
        client.change_message_visibility(QueueUrl=url(client), ReceiptHandle=handle, VisibilityTimeout=65)
        timers.advance(64)
        assert len(reader.records) == 1
        timers.advance(1)
        assert [each["attributes"]["ApproximateReceiveCount"] for each in reader.records] == ["1", "2"]


def test_only_the_last_receipt_handle_deletes_a_message(reader):
    timers = ManualTimers()
    with serving(reader, timers) as client:
        queue = url(client, "Unread")
        client.send_message(QueueUrl=queue, MessageBody="x")
        [first] = client.receive_message(QueueUrl=queue, VisibilityTimeout=10)["Messages"]
        assert "Messages" not in client.receive_message(QueueUrl=queue)
        timers.advance(10)
        [second] = client.receive_message(QueueUrl=queue, VisibilityTimeout=10)["Messages"]
        client.delete_message(QueueUrl=queue, ReceiptHandle=first["ReceiptHandle"])
        client.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=20
        )
        client.delete_message(QueueUrl=queue, ReceiptHandle=second["ReceiptHandle"])
        timers.advance(20)
        assert "Messages" not in client.receive_message(QueueUrl=queue)


@pytest.mark.parametrize(
    ("place", "code"), [(0, "ReceiptHandleIsInvalid"), (1, "MessageNotInflight")], ids=["old", "visible"]
)
def test_the_visibility_of_a_message_that_is_not_in_flight_cannot_be_changed(reader, place, code):
    timers, handles = ManualTimers(), []
    with serving(reader, timers) as client:
        queue = url(client, "Unread")
        client.send_message(QueueUrl=queue, MessageBody="x")
        for _ in range(2):
            [message] = client.receive_message(QueueUrl=queue, VisibilityTimeout=10)["Messages"]
            handles.append(message["ReceiptHandle"])
            timers.advance(10)
        with pytest.raises(ClientError) as refused:
            client.change_message_visibility(
                QueueUrl=queue, ReceiptHandle=handles[place], VisibilityTimeout=1
            )
    assert refused.value.response["Error"]["Code"].endswith(code)


@pytest.mark.parametrize(
    ("name", "delay", "code"), [("Nobody", 0, "QueueDoesNotExist"), ("Jobs", 901, "InvalidParameterValue")]
)
def test_requests_that_sqs_refuses_are_refused(sqs, name, delay, code):
    with pytest.raises(ClientError) as refused:
        sqs.send_message(QueueUrl=url(sqs, name), MessageBody="x", DelaySeconds=delay)
    assert refused.value.response["Error"]["Code"].endswith(code)


def test_an_operation_that_is_not_emulated_is_refused_although_it_names_no_queue_url(sqs):
    with pytest.raises(ClientError, match=r"GetQueueUrl.*SendMessage") as refused:
        sqs.get_queue_url(QueueName="Jobs")
    assert refused.value.response["Error"]["Code"].endswith("UnsupportedOperation")
