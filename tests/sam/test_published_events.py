"""The events that AWS's own tool generates, with an MCP message in them.

It has none of a function URL, of payload 1.0 or with multi-value headers from a load balancer.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from typing import Any

import pytest

from mcp_roundtrip.adapters.detect import detect, load_adapter
from mcp_roundtrip_local.sample_events.sources import FORMATS
from support.event_sources import any_call, sent_by
from support.messages import headers
from support.sam_build import SAM


def published(*event: str) -> Any:
    done = subprocess.run(
        [SAM, "local", "generate-event", *event],
        capture_output=True,
        text=True,
        check=True,
        env={"SAM_CLI_TELEMETRY": "0", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("event", "source"),
    [
        (("apigateway", "http-api-proxy"), "http_api"),
        (("apigateway", "aws-proxy"), "rest_api"),
        (("alb", "request"), "alb"),
    ],
)
def test_a_published_event_is_served(event: tuple[str, ...], source: str) -> None:
    given = published(*event)
    assert detect(given) is load_adapter(source)
    message = any_call()
    carries = {**given, "body": b64encode(json.dumps(message).encode()).decode()}
    carries["headers"] = {**given["headers"], **headers(message)}
    if "multiValueHeaders" in given:
        lists = {name: [value] for name, value in headers(message).items()}
        carries["multiValueHeaders"] = {**given["multiValueHeaders"], **lists}
    request = load_adapter(source).parse_request(carries)
    assert (request.method, request.path) == ("POST", "/path/to/resource")
    assert request.headers["mcp-method"] == "tools/call"
    assert json.loads(request.body) == message
    if source in FORMATS:  # our own samples have the same members
        own = sent_by(source, message)
        assert own.keys() == given.keys()
        assert own["requestContext"].keys() >= given["requestContext"].keys()
