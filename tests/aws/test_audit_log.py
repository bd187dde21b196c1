"""The log group of audit records: the emulated CloudWatch Logs, and moto for the same requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import boto3
import pytest
from moto import mock_aws

from mcp_roundtrip.aws.audit_log import AuditKey, CloudWatchAuditLog
from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.services import AwsClient, AwsError
from mcp_roundtrip.internal_errors import AuditFailed
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.logs import MAX_BODY, FakeLogs
from support.aws_clients import FUNCTION, REGION
from support.fake_kms import serve as serve_kms
from support.moto_server import serve_moto

GROUP = "shop-audit"

Lines = Callable[[], list[str]]
Service = tuple[str, Lines]
"""The URL of the log, and the lines in it."""
Client = Callable[[str], AwsClient]


def clients(*, signs: bool = True) -> AwsClients:
    return AwsClients(signs=signs, environment=FUNCTION)


@contextmanager
def emulated() -> Iterator[tuple[str, Lines]]:
    logs = FakeLogs(lambda group: group == GROUP)
    with closing(HttpServer(logs.respond, max_body=MAX_BODY).start()) as server:
        yield server.url, lambda: logs.lines(GROUP)


@contextmanager
def of_moto() -> Iterator[tuple[str, Lines]]:
    with mock_aws(), serve_moto("logs") as url:
        logs = boto3.client("logs", REGION)
        logs.create_log_group(logGroupName=GROUP)
        yield (
            url,
            lambda: [event["message"] for event in logs.filter_log_events(logGroupName=GROUP)["events"]],
        )


@pytest.fixture(params=[emulated, of_moto], ids=["emulated", "moto"])
def service(request: pytest.FixtureRequest) -> Iterator[tuple[str, Lines]]:
    with request.param() as served:
        yield served


@pytest.fixture(params=[True, False], ids=["signed", "boto3"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AwsClient]:
    for name, value in FUNCTION.items():
        monkeypatch.setenv(name, value)
    return lambda url: clients(signs=request.param).client("logs", REGION, url)


def now_ms() -> int:
    return int(time.time() * 1000)


def test_lines_are_stored_in_a_stream_that_the_first_one_creates(service: Service, client: Client) -> None:
    url, lines = service
    log = CloudWatchAuditLog(lambda: client(url), GROUP, "2026/11/23/weather[3]0123")
    log.write(now_ms(), '{"record":"1"}')
    log.write(now_ms(), '{"record":"2"}')
    assert lines() == ['{"record":"1"}', '{"record":"2"}']


def test_two_environments_may_share_a_stream(service: Service, client: Client) -> None:
    url, lines = service
    for number in range(2):
        CloudWatchAuditLog(lambda: client(url), GROUP, "stream").write(now_ms(), str(number))
    assert lines() == ["0", "1"]


def test_a_missing_log_group_is_a_failure_with_its_code(service: Service, client: Client) -> None:
    url, _ = service
    with pytest.raises(AuditFailed) as failed:
        CloudWatchAuditLog(lambda: client(url), "no-such-group", "stream").write(now_ms(), "line")
    assert failed.value.reason == "ResourceNotFoundException"


def test_a_line_that_is_rejected_for_its_time_is_a_failure(service: Service, client: Client) -> None:
    url, lines = service
    with pytest.raises(AuditFailed) as failed:
        CloudWatchAuditLog(lambda: client(url), GROUP, "stream").write(now_ms() + 10 * 3_600_000, "line")
    assert failed.value.reason == "rejected"
    assert lines() == []


def test_a_stream_that_was_deleted_is_created_again() -> None:
    logs = FakeLogs(lambda group: True)
    with closing(HttpServer(logs.respond, max_body=MAX_BODY).start()) as server:
        log = CloudWatchAuditLog(lambda: clients().client("logs", REGION, server.url), GROUP, "stream")
        log.write(now_ms(), "1")
        logs._streams.clear()
        log.write(now_ms(), "2")
    assert logs.lines(GROUP) == ["2"]
    assert logs.calls == [
        "CreateLogStream",
        "PutLogEvents",
        "PutLogEvents",
        "CreateLogStream",
        "PutLogEvents",
    ]


# The key of the hashes


def test_each_environment_derives_the_same_key_with_one_call() -> None:
    kms = FakeKms()
    kms.CreateAlias(AliasName="alias/shop-audit", TargetKeyId=kms.import_key(bytes(32)).rpartition("/")[2])
    with serve_kms(kms) as served:
        client = clients().client("kms", REGION, served.url)
        keys = [AuditKey(lambda: client, "alias/shop-audit", "shop") for _ in range(2)]
        assert keys[0].secret == keys[0].secret == keys[1].secret
        assert kms.calls["GenerateMac"] == 2
        assert AuditKey(lambda: client, "alias/shop-audit", "other").secret != keys[0].secret


@pytest.mark.parametrize(
    "answer", [{}, {"Mac": "text"}, {"Mac": b"short"}, AwsError("AccessDeniedException")]
)
def test_a_key_that_cannot_be_derived_is_a_failure_and_is_tried_again(answer: object) -> None:
    class Client:
        calls = 0

        def call(self, operation: str, **parameters: object) -> object:
            self.calls += 1
            if isinstance(answer, AwsError):
                raise answer
            return answer

    client = Client()
    key = AuditKey(lambda: client, "alias/shop-audit", "shop")  # type: ignore[arg-type, return-value] # a fake
    for _ in range(2):
        with pytest.raises(AuditFailed):
            _ = key.secret
    assert client.calls == 2
