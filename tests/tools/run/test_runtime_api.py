from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from mcp_roundtrip_tools.run.execution.runtime_api import (
    MAX_RESPONSE,
    Oversized,
    Raised,
    Ready,
    Responded,
    RuntimeApi,
    RuntimeEvent,
)
from support.sam_applications import http

EVENT = RuntimeEvent("id-1", b'{"a": 1}', "arn:f", 1234, '{"custom": {}}')


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    api = RuntimeApi()
    yield api
    api.close()


def url(api: RuntimeApi, path: str) -> str:
    return f"http://{api.address}/2018-06-01/runtime/{path}"


def test_the_next_event_is_sent_with_its_headers(api: RuntimeApi) -> None:
    api.pending.put(EVENT)
    response = http(url(api, "invocation/next"))
    assert response.json() == {"a": 1}
    assert response.headers["lambda-runtime-aws-request-id"] == "id-1"
    assert response.headers["lambda-runtime-deadline-ms"] == "1234"
    assert response.headers["lambda-runtime-invoked-function-arn"] == "arn:f"
    assert json.loads(response.headers["lambda-runtime-client-context"]) == {"custom": {}}
    assert api.reports.get(timeout=1) == Ready()


@pytest.mark.parametrize(
    ("path", "body", "status", "report"),
    [
        ("invocation/id-1/response", b"[1]", 202, Responded(b"[1]")),
        ("invocation/id-1/error", b"{}", 202, Raised(b"{}")),
        ("init/error", b"{}", 202, Raised(b"{}")),
        ("invocation/id-1/response", b"x" * (MAX_RESPONSE + 1), 413, Oversized()),
    ],
)
def test_a_response_is_reported(api: RuntimeApi, path: str, body: bytes, status: int, report: object) -> None:
    api.pending.put(EVENT)
    http(url(api, "invocation/next"))
    assert http(url(api, path), method="POST", body=body).status == status
    assert [api.reports.get(timeout=1) for _ in range(2)] == [Ready(), report]


@pytest.mark.parametrize(
    ("path", "status"), [("invocation/id-2/response", 400), ("invocation/id-1/other", 404), ("exit", 404)]
)
def test_a_response_to_no_event_is_refused(api: RuntimeApi, path: str, status: int) -> None:
    api.pending.put(EVENT)
    http(url(api, "invocation/next"))
    assert http(url(api, path), method="POST", body=b"{}").status == status


def test_a_second_response_to_an_event_is_refused(api: RuntimeApi) -> None:
    api.pending.put(EVENT)
    http(url(api, "invocation/next"))
    statuses = [http(url(api, "invocation/id-1/response"), method="POST", body=b"1").status for _ in range(2)]
    assert statuses == [202, 400]


def test_closing_releases_a_waiting_runtime(api: RuntimeApi) -> None:
    with ThreadPoolExecutor() as workers:
        waiting = workers.submit(http, url(api, "invocation/next"))
        assert api.reports.get(timeout=5) == Ready()
        api.close()
        # The 410 may or may not be written, but the wait must end.
        assert wait([waiting], timeout=5).done
