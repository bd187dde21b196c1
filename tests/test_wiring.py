"""The composition root, from environment variables to a KMS over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mcp_roundtrip import Context, Principal, Server, wiring
from mcp_roundtrip.errors import SettingsError, StateRejected
from mcp_roundtrip.local.kms import FakeKms, serve
from mcp_roundtrip.settings import load
from mcp_roundtrip.testing.environment import Remembered
from support.messages import call, http_event

AUTHORIZER = {"jwt": {"claims": {"iss": "https://idp.test/", "sub": "alice"}}}
ALICE = Principal("jwt", "alice", "https://idp.test/")


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKms]:
    fake = FakeKms()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with serve(fake) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", endpoint.endpoint_url)
        _forget_clients()
        yield fake
        _forget_clients()


def _forget_clients() -> None:
    wiring._kms.cache_clear()
    wiring._keys_for.cache_clear()


def signing_key(kms: FakeKms) -> str:
    arn = kms.CreateKey(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"]
    assert isinstance(arn, str)
    return arn


def environment(**changes: str) -> dict[str, str]:
    given = {"MCP_AUTH_MODE": "jwt", "MCP_ISSUER": "urn:test", "MCP_AUDIENCE": "https://x.test/mcp"}
    return {**given, **{f"MCP_{name.upper()}": value for name, value in changes.items()}}


def server_on(observer: Remembered | None = None, **changes: str) -> Server:
    """A server whose ports come from settings, as in a new execution environment."""
    ports = replace(wiring.make_ports(load(environment(**changes))), observer=observer or Remembered())
    server = Server("x", ports=lambda: ports)

    @server.tool
    def greet(ctx: Context) -> str:
        return f"Hello, {ctx.elicit('name', 'Who?', str)}!"

    @server.tool
    def link(ctx: Context) -> str:
        return ctx.signed_link("login", "https://x.test/go")

    return server


def post(server: Server, name: str, **params: Any) -> Any:
    event = http_event(call(name, **params), authorizer=AUTHORIZER)
    return json.loads(server.lambda_handler(event, None)["body"])


NAMED = {"name": {"action": "accept", "content": {"value": "Ada"}}}


def test_a_state_signed_by_kms_is_good_in_another_environment(kms: FakeKms) -> None:
    arn = signing_key(kms)
    state = post(server_on(state_key_arn=arn), "greet")["result"]["requestState"]
    _forget_clients()
    done = post(server_on(state_key_arn=arn), "greet", inputResponses=NAMED, requestState=state)
    assert done["result"]["content"][0]["text"] == "Hello, Ada!"


def test_direct_signing_is_one_call_for_each_state_and_none_for_opening_it(kms: FakeKms) -> None:
    server = server_on(state_key_arn=signing_key(kms))
    state = post(server, "greet")["result"]["requestState"]
    before = dict(kms.calls)
    post(server, "greet", inputResponses=NAMED, requestState=state)
    assert dict(kms.calls) == before
    post(server, "greet")
    assert {name: count - before.get(name, 0) for name, count in kms.calls.items()} == {
        "CreateKey": 0,
        "GetPublicKey": 0,
        "Sign": 1,
    }


def test_the_state_of_a_previous_key_is_still_accepted(kms: FakeKms) -> None:
    old, new = signing_key(kms), signing_key(kms)
    state = post(server_on(state_key_arn=old), "greet")["result"]["requestState"]
    rotated = server_on(state_key_arn=new, previous_state_key_arns=old)
    assert "result" in post(rotated, "greet", inputResponses=NAMED, requestState=state)
    stranger = server_on(state_key_arn=new)
    assert post(stranger, "greet", inputResponses=NAMED, requestState=state)["error"]["code"] == -32602


@pytest.mark.parametrize("code", ["ThrottlingException", "DisabledException"])
def test_a_kms_that_does_not_sign_is_an_internal_error_whose_reason_is_in_the_log(
    kms: FakeKms, code: str
) -> None:
    arn = signing_key(kms)
    if code == "DisabledException":
        kms.DisableKey(KeyId=arn)
    else:
        kms.fail_next(20, code)
    observer = Remembered()
    failed = post(server_on(observer, state_key_arn=arn), "greet")
    assert failed["error"]["code"] == -32603
    assert "Exception" not in failed["error"]["message"]
    ((event, error),) = observer.failures
    assert (event, getattr(error, "reason", None)) == ("state_unavailable", code)


@pytest.mark.parametrize("missing", ["MCP_STATE_KEY_ARN", "MCP_ISSUER", "MCP_AUDIENCE"])
def test_a_setting_that_states_need_is_named_in_the_log_when_it_is_missing(
    missing: str, kms: FakeKms
) -> None:
    given = environment(state_key_arn=signing_key(kms))
    del given[missing]
    observer = Remembered()
    ports = replace(wiring.make_ports(load(given)), observer=observer)
    server = server_on(state_key_arn="unused")
    server._ports = lambda: ports
    assert post(server, "greet")["error"]["code"] == -32603
    error = observer.failures[0][1]
    assert isinstance(error, SettingsError)
    assert error.setting == missing


def test_a_signed_link_opens_for_its_own_user_alone(kms: FakeKms) -> None:
    server = server_on(state_key_arn=signing_key(kms))
    url = post(server, "link")["result"]["content"][0]["text"]
    address, _, token = url.partition("?mcp_link=")
    assert address == "https://x.test/go"
    assert server.open_link(token, ALICE).key == "login"
    for somebody_else in (Principal("jwt", "bob", "https://idp.test/"), None):
        with pytest.raises(StateRejected):
            server.open_link(token, somebody_else)


def test_the_environment_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "none")
    wiring.ports.cache_clear()
    try:
        first = wiring.ports()
        monkeypatch.setenv("MCP_AUTH_MODE", "jwt")
        assert wiring.ports() is first
    finally:
        wiring.ports.cache_clear()


def test_an_owner_without_a_function_is_a_missing_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    ports = wiring.make_ports(load({"MCP_AUTH_MODE": "none", "MCP_OWNERS": '{"weather": "fn"}'}))
    with pytest.raises(SettingsError) as refused:
        ports.forward("tides", {}, {})
    assert refused.value.setting == "MCP_OWNERS"
