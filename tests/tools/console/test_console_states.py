"""States as the console decodes them."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import StateProtection
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.state.claims import Binding
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.console.states import (
    describe_state,
    open_state,
    state_protections,
)
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.aws_clients import FUNCTION
from support.fake_kms import mac_key, serve, signing_key

NOW = time.time()
DAY_S = 86_400

ASKED = Fingerprint("m", "f")
ANSWER = {"action": "accept", "content": {"value": "Hyderabad"}}
FIRST = Journal("flow", (Entry("create", Kind.STEP, {"id": 1}),), {"place": ASKED})
SECOND = Journal(
    "flow",
    (
        *FIRST.entries,
        Entry("place", Kind.ANSWER, ANSWER, ASKED.message, ASKED.form),
        Entry("at", Kind.NOW, 5),
    ),
    {"keep": ASKED},
)


@dataclass(frozen=True)
class Deployment:
    """A deployment: the variables of its functions, and what its functions seal with."""

    environment: Mapping[str, str]
    codec: RequestStateCodec
    clients: AwsClients

    def seal(self, payload, arguments=None):
        binding = Binding("local", "http://127.0.0.1/mcp", None, "tools/call", "t", arguments)
        return self.codec.seal(binding, payload, round=1, first_issued_at=None)

    def decode(self, token, before=None):
        claims = open_state(token, state_protections([self.environment], self.clients))
        return describe_state(str(token), claims, before)


@pytest.fixture(scope="module")
def kms():
    """A KMS, and clients of AWS services that reach it."""
    fake = FakeKms()
    with serve(fake) as server:
        yield fake, AwsClients(environment={**FUNCTION, "AWS_ENDPOINT_URL": server.url})


@pytest.fixture(scope="module")
def deployment(kms):
    """Return a deployment with new keys, whose states were sealed `age_s` before now."""
    fake, clients = kms

    def deploy(*, encrypted: bool = True, age_s: float = 0) -> Deployment:
        environment = {
            "MCP_AUTH_MODE": "none",
            "MCP_ISSUER": "local",
            "MCP_AUDIENCE": "http://127.0.0.1/mcp",
            "MCP_STATE_KEY_ARN": signing_key(fake),
            "MCP_STATE_ENCRYPTION": "enabled" if encrypted else "disabled",
            **({"MCP_STATE_ENCRYPTION_KEY_ARN": mac_key(fake)} if encrypted else {}),
        }
        protection = StateProtection(
            load_settings(environment),
            clients,
            lambda: NOW - age_s,
            os.urandom,
            lambda certificate, expires_at: None,
        )
        return Deployment(environment, protection.codec, clients)

    return deploy


def refused(of, token):
    with pytest.raises(ConsoleError) as caught:
        of.decode(token)
    assert caught.value.status == 422
    assert str(caught.value).endswith(".")
    return str(caught.value.members["reason"])


def test_each_entry_has_the_mark_of_what_the_round_did(deployment):
    of = deployment()
    marks = [
        (row["key"], row["kind"], row["mark"])
        for row in of.decode(of.seal(SECOND.to_json()), FIRST)["journal"]
    ]
    assert marks == [
        ("create", "step", "replayed"),
        ("place", "answer", "answered"),
        ("at", "now", "ran"),
        ("keep", "question", "asked"),
    ]
    rows = of.decode(of.seal(SECOND.to_json()))["journal"]
    assert [row["mark"] for row in rows] == ["ran", "answered", "ran", "asked"]
    assert rows[1]["value"] == ANSWER


def test_an_expired_state_is_still_decoded(deployment):
    of = deployment(age_s=3 * DAY_S)
    found = of.decode(of.seal(FIRST.to_json()))
    assert (found["expiresAtMs"] < NOW * 1000, found["flow"]) == (True, "flow")


def test_a_state_of_other_keys_is_refused(deployment):
    assert refused(deployment(), deployment().seal(FIRST.to_json())) == "unknown_key"
    signed = deployment(encrypted=False)
    assert refused(signed, deployment(encrypted=False).seal(FIRST.to_json())) == "unknown_key"


@pytest.mark.parametrize(
    "token",
    [
        *(None, 7, [], {}, "", ".", "....", "a.b.c", "a.b.c.d.e", "é" * 10, "\ud800", "\x00", "." * 1000),
        *("A" * 300_000, "e30..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA", "e30.e30." + "A" * 86),
    ],
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_hostile_texts_are_refused_with_a_sentence(deployment, token, encrypted):
    refused(deployment(encrypted=encrypted), token)
