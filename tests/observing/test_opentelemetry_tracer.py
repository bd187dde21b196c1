"""Calls to AWS in spans, and spans on their way to a collector."""

import sys
from threading import Event
from unittest.mock import create_autospec

import pytest
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.internal_errors import ForwardingFailed, SettingsError, StoreError
from mcp_roundtrip.observing.opentelemetry_tracer import TracedClient, Tracer, fail, make_tracer
from support.scripted_server import ScriptedServer, scripted
from support.traces import MemoryTracer

SECRET = "arn-of-a-key"

UNREACHABLE = {
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
}
"""The variables of a function whose endpoints of AWS refuse connections."""


def traced(tracer: MemoryTracer, service: str, error: AwsError | None = None) -> TracedClient:
    """Return a client whose calls raise the error, if there is one."""
    client = create_autospec(AwsClient, instance=True)
    client.call.side_effect = error
    return TracedClient(client, service, tracer)


@pytest.fixture
def tracer():
    return MemoryTracer()


def test_a_call_is_a_client_span_without_its_parameters(tracer):
    traced(tracer, "dynamodb").call("UpdateItem")  # in a thread of its own, so it has no span
    with tracer.span("message", SpanKind.SERVER, {}):
        traced(tracer, "kms").call("Sign", KeyId=SECRET)
        traced(tracer, "dynamodb").call("PutItem", Item={"pk": SECRET})
    sign, put, message = tracer.exporter.get_finished_spans()
    assert (sign.name, sign.kind) == ("KMS.Sign", SpanKind.CLIENT)
    assert dict(sign.attributes or {}) == {"rpc.system.name": "aws-api", "rpc.method": "KMS/Sign"}
    assert dict(put.attributes or {}) == {
        "rpc.system.name": "aws-api",
        "rpc.method": "DynamoDB/PutItem",
        "db.system.name": "aws.dynamodb",
        "db.operation.name": "PutItem",
    }
    assert sign.parent == put.parent == message.context
    assert SECRET not in sign.to_json() + put.to_json()


@pytest.mark.parametrize(
    ("code", "attribute", "status"),
    [
        ("AccessDeniedException", "error.type", StatusCode.ERROR),
        ("ConditionalCheckFailedException", "db.response.status_code", StatusCode.UNSET),
    ],
)
def test_a_failed_call_has_the_code_of_aws_and_a_late_write_has_not_failed(tracer, code, attribute, status):
    client = traced(tracer, "dynamodb", AwsError(code, SECRET, status=400))
    with tracer.span("message", SpanKind.SERVER, {}), pytest.raises(AwsError, match=code):
        client.call("PutItem")
    span = tracer.exporter.get_finished_spans()[0]
    assert (span.attributes or {})[attribute] == code
    assert span.status.status_code is status
    assert SECRET not in span.to_json()


def test_the_ports_and_clients_of_a_deployment_that_traces_use_its_tracer_provider(tracer, monkeypatch):
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracer.provider)
    for name, value in UNREACHABLE.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(
        {"MCP_AUTH_MODE": "none", "MCP_TRACES": "on", "MCP_TASK_TABLE": "tasks", "MCP_OWNERS": "shop_*"}
        | {"MCP_AUDIENCE": "https://a.example"}
    )
    ports = wiring.make_ports(settings)
    assert ports.tracer is not None
    with ports.tracer.span("tools/call", SpanKind.SERVER, {}):
        with pytest.raises(StoreError):
            ports.tasks().get(None, "a" * 32)
        with pytest.raises(ForwardingFailed):
            ports.forward("orders", {}, {}, 1)
    names = [span.name for span in tracer.exporter.get_finished_spans()]
    assert names == ["DynamoDB.GetItem", "Lambda.Invoke", "tools/call"]
    assert wiring.make_ports(replace(settings, traces="off")).tracer is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "off"),
        ({"MCP_TRACES": "on"}, "on"),
        ({"AWS_LAMBDA_EXEC_WRAPPER": "/opt/otel-instrument"}, "on"),
        ({"AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap"}, "off"),
        ({"AWS_LAMBDA_EXEC_WRAPPER": "/opt/otel-instrument", "MCP_TRACES": "off"}, "off"),
    ],
)
def test_the_script_of_a_layer_turns_traces_on(variables, expected):
    assert load_settings({"MCP_AUTH_MODE": "none", **variables}).traces == expected


def test_a_deployment_without_the_exporter_of_opentelemetry_is_told_to_add_the_layer(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_roundtrip.observing.opentelemetry_provider", None)
    with pytest.raises(SettingsError, match=r"MCP_TRACES.*layer"):
        wiring.make_ports(load_settings({"MCP_AUTH_MODE": "none", "MCP_TRACES": "on"}))


@pytest.fixture
def collector():
    with scripted() as server:
        yield server


def received(collector: ScriptedServer) -> list[ResourceSpans]:
    """Return what a collector received as OTLP over HTTP."""
    requests = [ExportTraceServiceRequest.FromString(request.body) for request in collector.requests]
    return [spans for request in requests for spans in request.resource_spans]


def test_a_response_does_not_wait_for_an_endpoint_that_is_down():
    is_up, exports = Event(), list[int]()
    provider = TracerProvider(shutdown_on_exit=False)

    def force_flush(timeout_millis: int = 0) -> bool:
        exports.append(timeout_millis)  # as the SDK's processors, it ignores the timeout
        return is_up.wait()

    provider.force_flush = force_flush  # type: ignore[method-assign]
    tracer = Tracer(provider, lambda: None, flush_ms=1)
    for _ in range(3):
        tracer.flush()
    assert exports == [1], "one export at a time"
    is_up.set()
    while len(exports) < 2:
        tracer.flush()
    assert exports == [1, 1]


@pytest.mark.parametrize(
    ("variables", "service"),
    [
        ({}, "orders"),
        ({"OTEL_SERVICE_NAME": "shop"}, "shop"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b"}, "orders"),
    ],
)
def test_a_function_without_a_provider_exports_as_the_variables_of_opentelemetry_say(
    collector, monkeypatch, variables, service
):
    created = list[TracerProvider]()
    monkeypatch.setattr(trace, "set_tracer_provider", created.append)
    for name, value in {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.url, **variables}.items():
        monkeypatch.setenv(name, value)
    tracer = make_tracer(lambda: None, {"AWS_LAMBDA_FUNCTION_NAME": "orders"})
    with tracer.span("tools/list", SpanKind.SERVER, {}):
        pass
    tracer.flush()
    (sent,) = received(collector)
    assert {each.key: each.value.string_value for each in sent.resource.attributes}["service.name"] == service
    assert sent.scope_spans[0].spans[0].name == "tools/list"
    (provider,) = created
    provider.shutdown()


def test_spans_reach_a_collector_before_the_response_leaves(collector):
    provider = TracerProvider(shutdown_on_exit=False)
    processor = BatchSpanProcessor(OTLPSpanExporter(collector.url), schedule_delay_millis=3_600_000)
    provider.add_span_processor(processor)
    tracer = Tracer(provider, lambda: None)
    with tracer.span("tools/call add", SpanKind.SERVER, {"mcp.method.name": "tools/call"}) as span:
        fail(span, "tool_error")
    assert collector.requests == []
    tracer.flush()
    [(scope,)] = [spans.scope_spans for spans in received(collector)]
    assert scope.scope.name == "mcp_roundtrip"
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"
    (sent,) = scope.spans
    assert (sent.name, sent.kind, sent.status.code) == ("tools/call add", sent.SPAN_KIND_SERVER, 2)
    assert {each.key: each.value.string_value for each in sent.attributes} == {
        "mcp.method.name": "tools/call",
        "error.type": "tool_error",
    }
    provider.shutdown()
