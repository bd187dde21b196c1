from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from mcp_roundtrip_tools.run.execution.runtime_api import (
    Ready,
    RuntimeApi,
    RuntimeEvent,
)
from support.sam_applications import http

EVENT = RuntimeEvent("id-1", b'{"a": 1}', "arn:f", 1234, '{"custom": {}}')


@pytest.fixture
def api():
    api = RuntimeApi()
    yield api
    api.close()


def url(api, path):
    return f"http://{api.address}/2018-06-01/runtime/{path}"


@pytest.mark.parametrize(
    ("path", "status"), [("invocation/id-2/response", 400), ("invocation/id-1/other", 404), ("exit", 404)]
)
def test_a_response_to_no_event_is_refused(api, path, status):
    api.pending.put(EVENT)
    http(url(api, "invocation/next"))
    assert http(url(api, path), method="POST", body=b"{}").status == status


def test_a_second_response_to_an_event_is_refused(api):
    api.pending.put(EVENT)
    http(url(api, "invocation/next"))
    statuses = [http(url(api, "invocation/id-1/response"), method="POST", body=b"1").status for _ in range(2)]
    assert statuses == [202, 400]


def test_closing_releases_a_waiting_runtime(api):
    with ThreadPoolExecutor() as workers:
        waiting = workers.submit(http, url(api, "invocation/next"))
        assert api.reports.get(timeout=5) == Ready()
        api.close()
        # The 410 may or may not be written, but the wait must end.
        assert wait([waiting], timeout=5).done
