"""States as the console decodes them."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.state.certificates import Delegation, TrustedKeys
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import Backoff, LocalKey
from mcp_roundtrip_testing.ports import LocalMacKey
from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.console.state_view import describe_state, read_journal
from mcp_roundtrip_tools.console.states import open_state, state_keys
from mcp_roundtrip_tools.run.services.kms import FakeKms

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
    """A deployment: the variables of its functions, its KMS, and what its functions seal with."""

    environment: Mapping[str, str]
    kms: FakeKms
    codec: RequestStateCodec

    def seal(self, payload, arguments=None):
        binding = Binding("local", "http://127.0.0.1/mcp", None, "tools/call", "t", arguments)
        return self.codec.seal(binding, payload, round=1, first_issued_at=None)

    def decode(self, token, before=None):
        state = open_state(token, state_keys([self.environment], self.kms))
        return describe_state(str(token), state, before)


def deployment(*, encrypted=True, delegated=False, age_s=0):
    """Return a deployment whose states were sealed `age_s` before now."""

    def clock() -> float:
        return NOW - age_s

    kms, private, secret = FakeKms(), ec.generate_private_key(ec.SECP256R1()), os.urandom(32)
    signing, mac = kms.import_key(private), kms.import_key(secret)
    environment = {
        "MCP_AUTH_MODE": "none",
        "MCP_ISSUER": "local",
        "MCP_AUDIENCE": "http://127.0.0.1/mcp",
        "MCP_STATE_KEY_ARN": signing,
        "MCP_STATE_ENCRYPTION": "enabled" if encrypted else "disabled",
        **({"MCP_STATE_ENCRYPTION_KEY_ARN": mac} if encrypted else {}),
        **({"MCP_STATE_SIGNING": "delegated"} if delegated else {}),
    }
    root, limits, renewals = LocalKey(private), Limits(), Backoff(clock)
    mac_key = LocalMacKey(mac.rpartition("/")[2], secret)
    epochs = EpochKeys(
        [mac_key], "mcp-rs+jwt", limits, issuer="local", clock=clock, random=lambda: 0.5, renewals=renewals
    )
    delegation = Delegation(
        *(root, "local", "http://127.0.0.1/mcp", limits, clock, os.urandom, lambda: 0.5, renewals),
        lambda jti, expires_at: None,
    )
    codec = RequestStateCodec(
        delegation.signer if delegated else lambda: root,
        TrustedKeys(root),
        epochs if encrypted else None,
        limits,
        clock,
        os.urandom,
    )
    return Deployment(environment, kms, codec)


def refused(of, token):
    with pytest.raises(ConsoleError) as caught:
        of.decode(token)
    assert caught.value.status == 422
    assert str(caught.value).endswith(".")
    return str(caught.value.members["reason"])


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("encrypted", [False, True])
def test_a_state_is_decoded_with_the_keys_of_the_run(encrypted, delegated):
    of = deployment(encrypted=encrypted, delegated=delegated)
    token = of.seal(FIRST.to_json())
    found = of.decode(token)
    assert found["bytes"] == len(token)
    assert (found["flow"], found["round"]) == ("flow", 1)
    assert found["expiresAtMs"] - found["issuedAtMs"] == 600_000
    assert found["isEncrypted"] is encrypted
    assert found["isAnonymous"] is True
    assert of.kms.calls == {}


def test_each_entry_has_the_mark_of_what_the_round_did():
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


@pytest.mark.parametrize("delegated", [False, True])
def test_an_expired_state_is_still_decoded(delegated):
    of = deployment(delegated=delegated, age_s=3 * DAY_S)
    found = of.decode(of.seal(FIRST.to_json()))
    assert (found["expiresAtMs"] < NOW * 1000, found["flow"]) == (True, "flow")


def test_a_state_of_other_keys_is_refused():
    assert refused(deployment(), deployment().seal(FIRST.to_json())) == "unknown_key"
    signed = deployment(encrypted=False)
    assert refused(signed, deployment(encrypted=False).seal(FIRST.to_json())) == "unknown_key"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("delegated", [False, True])
def test_a_state_with_any_changed_character_is_refused(encrypted, delegated):
    of = deployment(encrypted=encrypted, delegated=delegated)
    token = of.seal(FIRST.to_json())
    other = {at: "B" if token[at] == "A" else "A" for at in range(0, len(token), 11)}
    reasons = {refused(of, token[:at] + each + token[at + 1 :]) for at, each in other.items()}
    assert ("decryption" in reasons) is encrypted


@pytest.mark.parametrize(
    "token",
    [
        *(None, 7, [], {}, "", ".", "....", "a.b.c", "a.b.c.d.e", "é" * 10, "\ud800", "\x00", "." * 1000),
        *("A" * 300_000, "e30..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA", "e30.e30." + "A" * 86),
    ],
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_hostile_texts_are_refused_with_a_sentence(token, encrypted):
    refused(deployment(encrypted=encrypted), token)


def test_a_state_that_names_a_parked_call_has_no_journal():
    of = deployment()
    found = of.decode(of.seal({"parked": "id"}))
    assert (found["journal"], found["flow"], found["payload"]) == ([], None, {"parked": "id"})
    with pytest.raises(ConsoleError):
        read_journal({"v": 99})


def test_functions_without_states_have_no_keys():
    assert list(state_keys([{}, {"MCP_AUTH_MODE": "none"}], FakeKms())) == []
    elsewhere = {**deployment().environment, "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:111111111111:key/a"}
    assert list(state_keys([elsewhere], FakeKms())) == []
