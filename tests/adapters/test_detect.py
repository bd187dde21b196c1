"""Which adapter an event gets."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.adapters import direct, http_api
from mcp_roundtrip.adapters.detect import UnknownEventSource, detect
from support.messages import http_event, message


def test_each_source_is_recognised() -> None:
    assert detect(http_event("{}")) is http_api
    assert detect(message("tools/list")) is direct


def test_an_http_event_stays_one_whatever_it_claims_besides() -> None:
    assert detect({**http_event("{}"), "jsonrpc": "2.0"}) is http_api


@pytest.mark.parametrize("event", [None, [], "x", 1, {}, {"Records": []}, {"version": "1.0"}])
def test_anything_else_is_refused(event: Any) -> None:
    with pytest.raises(UnknownEventSource):
        detect(event)
