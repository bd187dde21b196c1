"""The composition root, from environment variables to a KMS over HTTP."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_roundtrip import Context, Principal, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.aws_ports import AwsPorts, make_clients
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip_testing.ports import RecordingObserver
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.client_requests import next_round, text
from support.deployment import Deployment
from support.fake_kms import mac_key, signing_key
from support.tokens import header_of

pytest_plugins = ["support.fake_kms"]

ALICE = Principal("jwt", "alice", "https://id")


def environment(**changes: str) -> dict[str, str]:
    given = {"MCP_AUTH_MODE": "jwt", "MCP_ISSUER": "urn:test", "MCP_AUDIENCE": "https://x.test/mcp"}
    return {**given, **{f"MCP_{name.upper()}": value for name, value in changes.items()}}


server = Server("x")


@server.tool
def greet(ctx: Context) -> str:
    return f"Hello, {ctx.elicit('name', 'Who?', str)}!"


@server.tool
def link(ctx: Context) -> str:
    return ctx.signed_link("login", "https://x.test/go")


def deploy(**changes: str) -> Deployment:
    """Return a new execution environment with these settings."""
    return Deployment(server, settings=environment(**changes), source="http_api")


def resumes(deployment: Deployment, asked: Any) -> bool:
    """Return whether a call with the state of a result that asked is completed."""
    answer = deployment.post_call("greet", **next_round(asked, name="Ada"))
    assert "result" in answer or answer["error"]["code"] == -32602
    return "result" in answer and text(answer["result"]) == "Hello, Ada!"


UNENCRYPTED = {"state_encryption": "disabled"}


@pytest.fixture(params=["direct, encrypted", "direct, signed", "delegated, encrypted", "delegated, signed"])
def deployed(request: pytest.FixtureRequest, kms: FakeKms) -> dict[str, str]:
    """Return the settings of a deployment."""
    signing, protection = request.param.split(", ")
    encryption = {"state_encryption_key_arn": mac_key(kms)} if protection == "encrypted" else UNENCRYPTED
    return {"state_key_arn": signing_key(kms), "state_signing": signing, **encryption}


def test_only_states_of_trusted_keys_are_accepted(kms, deployed):
    asked = deploy(**deployed).call("greet")
    replaced = deployed | {"state_key_arn": signing_key(kms)}
    if "state_encryption_key_arn" in deployed:
        replaced["state_encryption_key_arn"] = mac_key(kms)
        trusted = {"trusted_state_encryption_key_arns": deployed["state_encryption_key_arn"]}
    else:
        trusted = {}
    rotated = deploy(**replaced, **trusted, trusted_state_key_arns=deployed["state_key_arn"])
    assert resumes(rotated, asked)
    assert not resumes(deploy(**replaced), asked)


def test_each_certificate_is_logged_with_the_id_that_revokes_it(kms, monkeypatch):
    observer = RecordingObserver()
    deployed = {"state_key_arn": signing_key(kms), "state_signing": "delegated", **UNENCRYPTED}
    monkeypatch.setattr(wiring, "observer", lambda: observer)
    asked = deploy(**deployed).call("greet")
    ((_, fields),) = [event for event in observer.events if event[0] == "certificate_issued"]
    assert fields["expires_at"] > 0
    assert not resumes(deploy(**deployed, revoked_certificates=fields["certificate"]), asked)


def test_a_key_that_kms_does_not_renew_is_logged(kms):
    observer = RecordingObserver()
    settings = load_settings(environment(state_key_arn=signing_key(kms), **UNENCRYPTED))
    ports = AwsPorts(settings, observer, make_clients(settings, observer, None))
    ports.protection.on_renewal_failed(KeyServiceError("key_disabled", "The key is disabled."))
    assert observer.events == [
        ("key_renewal_failed", {"reason": "key_disabled", "problem": "The key is disabled."})
    ]


def test_the_settings_of_tokens_reach_their_check():
    given = {"token_issuer": "https://id.test", "auth_mode": "bearer"}
    strict = {**given, "token_type": "at+jwt", "token_audience": "app"}
    for more, checks in ((given, ("https://x.test/mcp", False, False)), (strict, ("app", True, True))):
        made: Any = wiring.make_authenticator(load_settings(environment(**more)))
        assert (*made.audiences, made.requires_at_jwt, made.requires_client) == checks


def test_a_link_is_signed_directly_by_kms_and_opens_only_for_its_user(kms, deployed):
    deployment, before = deploy(**deployed), kms.calls["Sign"]
    address, _, token = deployment.text("link").partition("?mcp_link=")
    assert address == "https://x.test/go"
    assert kms.calls["Sign"] == before + 1
    assert header_of(token).keys() == {"alg", "kid", "typ"}
    page = Server("page", ports=deploy(**deployed).ports)
    assert page.open_link(token, ALICE).key == "login"
    for somebody_else in (Principal("jwt", "bob", "https://id"), None):
        with pytest.raises(StateRejected):
            page.open_link(token, somebody_else)


@pytest.mark.parametrize(
    ("variables", "service"),
    [
        ({"MCP_ISSUER": " shop "}, "orders"),
        ({"MCP_SETTINGS": "MCP_ISSUER = shop"}, "orders"),
        ({"MCP_SETTINGS": "MCP_ISSUER=other", "MCP_ISSUER": "shop"}, "orders"),
        ({}, "shop_orders"),
        ({"MCP_SETTINGS": "${Platform.Outputs.Settings}"}, "shop_orders"),
    ],
)
def test_log_lines_name_the_function_without_its_stack(variables, service, monkeypatch, capsys):
    monkeypatch.delenv("POWERTOOLS_SERVICE_NAME", raising=False)
    for name, value in {"AWS_LAMBDA_FUNCTION_NAME": "shop_orders", **variables}.items():
        monkeypatch.setenv(name, value)
    wiring.observer.__wrapped__().record_failure("misconfigured", SettingsError("MCP_ISSUER", "is wrong"))
    assert {json.loads(line)["service"] for line in capsys.readouterr().out.splitlines()} == {service}


@pytest.mark.parametrize(
    ("name", "status"), [("Ada", 400), ("x" * 2_000, 413), ([0] * 100, 413)], ids=["small", "long", "many"]
)
def test_each_limit_of_a_body_is_a_setting_of_its_own(name, status):
    deployment = deploy(max_body_bytes="2000", max_json_values="100")
    assert deployment.request("tools/call", name="no_such_tool", arguments={"name": name}).status == status
    assert deployment.ports().audit is None, "without the setting"


def test_states_are_the_same_with_both_clients(kms):
    keys = {"state_key_arn": signing_key(kms), "state_encryption_key_arn": mac_key(kms)}
    both = [deploy(aws_client=kind, **keys) for kind in ("signed", "boto3")]
    for asking, answering in (both, both[::-1]):
        assert resumes(answering, asking.call("greet"))


@pytest.mark.parametrize(("remaining_ms", "attempts"), [(20_000, 2), (1_000, 1)])
def test_a_failed_call_is_not_repeated_at_the_end_of_an_invocation(kms, remaining_ms, attempts):
    kms.fail_next(1, "RequestTimeout", operation="Sign")
    keys = {"state_key_arn": signing_key(kms), "state_encryption_key_arn": mac_key(kms)}
    deploy(aws_client="signed", **keys).by(round_ms=remaining_ms).post_call("greet")
    assert kms.calls["Sign"] == attempts


def test_a_pause_and_a_wait_for_an_event_end_after_their_milliseconds(monkeypatch):
    ports = wiring.make_ports(load_settings({"MCP_AUTH_MODE": "none"}))
    seconds: list[float] = []
    monkeypatch.setattr(wiring.time, "sleep", seconds.append)
    ports.pause_ms(500)
    event: Any = SimpleNamespace(wait=seconds.append)
    ports.wait_ms(event, 1_500)
    assert seconds == [0.5, 1.5]


def test_the_digest_of_the_catalog_is_read_from_the_folder_of_the_function(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMBDA_TASK_ROOT", str(tmp_path))
    read = wiring.make_ports(load_settings({"MCP_AUTH_MODE": "none"})).catalog_digest
    wiring._catalog_digest.cache_clear()
    assert read() is None
    (tmp_path / wiring.CATALOG_DIGEST).write_text("aNHKIXTeKVxNWH0s\n")
    wiring._catalog_digest.cache_clear()
    assert read() == "aNHKIXTeKVxNWH0s"
    wiring._catalog_digest.cache_clear()
