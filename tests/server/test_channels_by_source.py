"""Questions on a page or in a view reach only their caller, behind each event source and AuthMode."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from msgspec import structs

from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_roundtrip_local.api_gateway.payload import to_event
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_local.http.messages import Request
from mcp_roundtrip_local.sample_events.sources import FORMATS
from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import TaskTable
from support import token_issuer
from support.app_client import (
    APPS,
    AUTHORIZERS,
    LEGACY,
    QUESTIONS,
    answer_arguments,
    app_ports,
    status,
    text,
)
from support.event_sources import GATEWAYS, HTTP_SOURCES, with_context
from support.html_form import BrowserForm
from support.messages import headers
from support.page_user import HEADERS, link_in
from support.parked_deployment import Context as LambdaContext

BEHIND: Final = {
    AuthMode.NONE: HTTP_SOURCES,
    AuthMode.BEARER: HTTP_SOURCES,
    AuthMode.JWT: ("http_api", *GATEWAYS),
    AuthMode.LAMBDA: ("http_api", *GATEWAYS),
    AuthMode.IAM: ("http_api", "function_url", *GATEWAYS),
}
"""The event sources that can identify callers in this way."""

NO_CAPABILITIES: Mapping[str, Any] = {}

MakeDoor = Callable[[Server, Ports], FrontDoor]


def _as_2_0(mode: AuthMode, user: str) -> dict[str, Any]:
    context = AUTHORIZERS[mode](user)
    return {"authorizer": context} if context else {}


def _as_1_0(mode: AuthMode, user: str) -> dict[str, Any]:
    """Return the members of a request context in the format of REST APIs."""
    role = AUTHORIZERS[AuthMode.IAM](user)["iam"]
    arn = f"arn:aws:sts::123456789012:assumed-role/{user}/session"
    members: Mapping[AuthMode, dict[str, Any]] = {
        AuthMode.JWT: {"authorizer": AUTHORIZERS[AuthMode.JWT](user)["jwt"]},
        AuthMode.LAMBDA: {"authorizer": {"principalId": "any", "user": user}},
        AuthMode.IAM: {"identity": {"accountId": role["accountId"], "user": role["userId"], "userArn": arn}},
    }
    return members.get(mode, {})


@dataclass
class Caller:
    """A client of a deployment behind an event source. It cannot be asked by the protocol."""

    source: str
    mode: AuthMode
    version: str
    capabilities: Mapping[str, Any]
    clock: FakeClock
    handler: Callable[[Any, Any], Any]
    user: str = "alice"
    session: dict[str, str] = field(default_factory=dict)

    def as_user(self, user: str) -> Caller:
        """Return another user's client of the same deployment."""
        return replace(self, user=user, session={})

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the result of a tool."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.version == PROTOCOL_VERSION:
            names = (META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES)
            params["_meta"] = dict(zip(names, (PROTOCOL_VERSION, self.capabilities), strict=True))
        elif not self.session:
            self.session["mcp-session-id"] = self._initialize()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        _, content, _ = self._post(body, {**headers(body), "mcp-protocol-version": self.version})
        response = json.loads(content)
        assert "result" in response, response
        return response["result"]

    def answer(self, asked: Mapping[str, Any], value: int) -> Any:
        """Answer a result that asks, as the view does."""
        return self.call("answer_questions", **answer_arguments(asked, count={"value": value}))

    def answer_page(self, link: str, value: str) -> str:
        """Answer on the page as a browser, which has no credentials. Return the page it shows then."""
        address, _, query = link.partition("?")
        target = address.removeprefix("https://mcp.test")
        code, page, _ = self._request("GET", f"{target}?{query}", {}, "")
        assert code == 200
        form = BrowserForm(page)
        form.enter("0.0", value)
        code, _, found = self._request("POST", target, HEADERS, form.body())
        assert (code, found["location"]) == (303, f"?{query}")
        return self._request("GET", f"{target}{found['location']}", {}, "")[1]

    def _initialize(self) -> str:
        info = {"name": "host", "version": "1"}
        opening = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": info}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
        _, _, found = self._post(body, {"accept": "application/json, text/event-stream"})
        return found["mcp-session-id"]

    def _post(self, body: Mapping[str, Any], given: Mapping[str, str]) -> tuple[int, str, dict[str, str]]:
        sent = {"content-type": "application/json", **given, **self.session}
        if self.mode is AuthMode.BEARER:
            token = token_issuer.ONE.sign(token_issuer.claims(self.clock(), sub=self.user))
            sent["authorization"] = f"Bearer {token}"
        members = (_as_1_0 if self.source in GATEWAYS else _as_2_0)(self.mode, self.user)
        return self._request("POST", "/mcp", sent, json.dumps(body), members)

    def _request(
        self,
        method: str,
        target: str,
        given: Mapping[str, str],
        content: str,
        members: Mapping[str, Any] | None = None,
    ) -> tuple[int, str, dict[str, str]]:
        sent = tuple({"host": "mcp.test", **given}.items())
        request = Request(method, target, sent, content.encode())
        route = Route(method, target.partition("?")[0], "F")
        event = to_event(request, route, {}, request_id="request-1", now=self.clock())
        event = with_context(FORMATS.get(self.source, dict)(event), **(members or {}))
        response = self.handler(event, LambdaContext(self.clock, 25_000))
        lists = response.get("multiValueHeaders", {})
        found = response.get("headers") or {name: value for name, [value] in lists.items()}
        return response["statusCode"], response["body"], found


Deploy = Callable[[Mapping[str, Any], MakeDoor | None], Caller]

CHARGED: list[int] = []


def deployed(
    source: str,
    mode: AuthMode,
    version: str,
    capabilities: Mapping[str, Any],
    door: MakeDoor | None,
) -> Caller:
    clock = FakeClock()
    ports = app_ports(mode, clock=clock, tasks=TaskTable(clock))
    server = Server("shop", ports=lambda: ports)

    @server.tool
    def order(ctx: Context, item: str) -> dict[str, Any]:
        count = ctx.elicit("count", f"How many {item}?", int)
        ctx.step("charge", CHARGED.append, count)
        return {"ordered": count}

    entry = server if door is None else door(server, ports)
    return Caller(source, mode, version, capabilities, clock, entry.lambda_handler)


@pytest.fixture(params=[False, True], ids=["direct", "door"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> MakeDoor | None:
    """Return a function that puts a front door before a server, or None."""

    def make(server: Server, ports: Ports) -> FrontDoor:
        def forward(_: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int) -> Any:
            context = SimpleNamespace(
                aws_request_id="owner",
                get_remaining_time_in_millis=lambda: timeout_s * 1_000,
                client_context=SimpleNamespace(custom=custom),
            )
            return server.lambda_handler(json.loads(json.dumps(event)), context)

        path = tmp_path / "catalog.json"
        path.write_text(json.dumps(catalog_lists({"owner": server})))
        return FrontDoor("door", path, ports=lambda: structs.replace(ports, forward=forward))

    return make if request.param else None


@pytest.fixture(autouse=True)
def nothing_charged() -> None:
    CHARGED.clear()


# The session id identifies an anonymous caller, and 2026-07-28 has no sessions.
DEPLOYMENTS = [
    pytest.param(partial(deployed, source, mode, version), id=f"{source}-{mode}-{version}")
    for mode in AuthMode
    for source in BEHIND[mode]
    for version in ((LEGACY,) if mode is AuthMode.NONE else (PROTOCOL_VERSION, LEGACY))
]


@pytest.mark.parametrize("deploy", DEPLOYMENTS)
def test_a_link_answers_the_call_of_the_caller_who_got_it_and_no_other(
    deploy: Deploy, door: MakeDoor | None
) -> None:
    alice = deploy(NO_CAPABILITIES, door)
    eve = alice.as_user("eve")
    link = link_in(text(alice.call("order", item="tea")))
    other = link_in(text(eve.call("order", item="tea")))
    assert other != link
    assert "Thank you" in alice.answer_page(link, "3")
    assert link_in(text(eve.call("order", item="tea"))) == other, "the answer is not hers"
    assert alice.call("order", item="tea")["structuredContent"] == {"ordered": 3}
    assert link_in(text(eve.call("order", item="tea"))) == other, "the result is not hers"
    assert CHARGED == [3]
    eve.answer_page(other, "4")
    assert eve.call("order", item="tea")["structuredContent"] == {"ordered": 4}
    assert CHARGED == [3, 4]


@pytest.mark.parametrize("deploy", DEPLOYMENTS)
def test_a_view_answers_the_call_of_its_own_caller_and_no_other(
    deploy: Deploy, door: MakeDoor | None
) -> None:
    alice = deploy(APPS, door)
    eve = alice.as_user("eve")
    asked, other = alice.call("order", item="tea"), eve.call("order", item="tea")
    assert asked["_meta"][QUESTIONS]["state"] != other["_meta"][QUESTIONS]["state"]
    assert status(eve.answer(asked, 9)) == "ended"
    assert status(alice.call("order", item="tea")) == "asking", "an answer by another caller does not count"
    done = alice.answer(asked, 3)
    assert (status(done), done["structuredContent"]) == ("complete", {"ordered": 3})
    assert status(eve.answer(asked, 9)) == "ended", "the result is not hers"
    assert status(eve.call("order", item="tea")) == "asking"
    assert CHARGED == [3]
    assert eve.answer(other, 4)["structuredContent"] == {"ordered": 4}


@pytest.mark.parametrize("mode", [mode for mode in AuthMode if mode is not AuthMode.NONE])
def test_the_session_of_another_user_shows_neither_their_link_nor_their_result(mode: AuthMode) -> None:
    alice = deployed("http_api", mode, LEGACY, NO_CAPABILITIES, None)
    link = link_in(text(alice.call("order", item="tea")))
    thief = replace(alice, user="eve")
    assert thief.session is alice.session
    assert link_in(text(thief.call("order", item="tea"))) != link
    alice.answer_page(link, "3")
    assert link_in(text(thief.call("order", item="tea"))) != link
    assert CHARGED == []
    assert alice.call("order", item="tea")["structuredContent"] == {"ordered": 3}
    assert link_in(text(thief.call("order", item="tea"))) != link
