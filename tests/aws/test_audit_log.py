import time
from collections.abc import Callable
from contextlib import closing
from unittest.mock import create_autospec

import pytest

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.aws.audit_log import CloudWatchAuditLog, derive_audit_key
from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.aws_ports import AwsPorts
from mcp_roundtrip.deployment.settings import Audit, Settings
from mcp_roundtrip.internal_errors import AuditFailed
from mcp_roundtrip_testing.ports import RecordingObserver
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from support.aws_clients import CLIENTS, FUNCTION, KINDS, OneClient
from support.fake_kms import serve as serve_kms

GROUP = "shop-audit"


@pytest.fixture
def logs():
    return FakeLogs(lambda group: group == GROUP)


@pytest.fixture(params=KINDS)
def client(request, monkeypatch, logs):
    with closing(HttpServer(logs.respond).start()) as server:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL": server.url}.items():
            monkeypatch.setenv(name, value)
        yield CLIENTS[request.param]().client("logs")


def write(client: AwsClient, line: str, group: str = GROUP, in_hours: int = 0) -> None:
    """Write a line as a new environment does."""
    at_ms = int((time.time() + in_hours * 3_600) * 1000)
    CloudWatchAuditLog(lambda: client, group, "2026/11/23/weather[3]0123").write(at_ms, line)


def test_lines_are_stored_in_a_stream_that_the_first_one_creates(logs, client):
    for line in ('{"record":"1"}', '{"record":"2"}'):
        write(client, line)
    assert logs.lines(GROUP) == ['{"record":"1"}', '{"record":"2"}']


def test_a_missing_log_group_and_a_line_rejected_for_its_time_are_failures_with_their_codes(logs, client):
    with pytest.raises(AuditFailed) as missing:
        write(client, "line", group="no-such-group")
    with pytest.raises(AuditFailed) as rejected:
        write(client, "line", in_hours=10)
    assert (missing.value.reason, rejected.value.reason) == ("ResourceNotFoundException", "rejected")
    assert logs.lines(GROUP) == []


def test_a_stream_that_was_deleted_is_created_again(logs, client):
    log = CloudWatchAuditLog(lambda: client, GROUP, "stream")
    log.write(int(time.time() * 1000), "1")
    logs._streams.clear()
    log.write(int(time.time() * 1000), "2")
    assert logs.lines(GROUP) == ["2"]
    created = ["CreateLogStream", "PutLogEvents"]
    assert logs.calls == [*created, "PutLogEvents", *created]


@pytest.fixture(autouse=True)
def function(monkeypatch):
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "shop_orders")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5f-2a")


def hash_key_of(client: AwsClient) -> Callable[[], bytes]:
    """Return what derives the key of an environment of the deployment `shop`."""
    audit = Audit("hash", GROUP)
    settings = Settings(AuthMode.NONE, issuer="shop", audit=audit)
    log = AwsPorts(settings, RecordingObserver(), OneClient(client)).audit_log(audit)
    assert log.source == {"stack": "shop", "function": "orders"}
    assert log.trace_header() == "Root=1-5f-2a"
    assert log.hash_key is not None
    return log.hash_key


def test_each_environment_derives_the_same_key_with_one_call():
    kms = FakeKms()
    kms.CreateAlias(AliasName="alias/shop-audit", TargetKeyId=kms.import_key(bytes(32)).rpartition("/")[2])
    with serve_kms(kms) as served:
        client = AwsClients(environment={**FUNCTION, "AWS_ENDPOINT_URL": served.url}).client("kms")
        keys = [hash_key_of(client) for _ in range(2)]
        assert keys[0]() == keys[0]() == keys[1]()
        assert kms.calls["GenerateMac"] == 2
        assert derive_audit_key(client, "alias/shop-audit", "other") != keys[0]()


@pytest.mark.parametrize(
    "answer", [{}, {"Mac": "text"}, {"Mac": b"short"}, AwsError("AccessDeniedException")]
)
def test_a_key_that_cannot_be_derived_is_a_failure_and_is_tried_again(answer):
    client = create_autospec(AwsClient, instance=True)
    client.call.side_effect = [answer, answer]
    key = hash_key_of(client)
    for _ in range(2):
        with pytest.raises(AuditFailed):
            key()
    assert client.call.call_count == 2
