import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import StateProtection
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.state.claims import Binding
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.console.states import describe_state, open_state, state_protections
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.aws_clients import FUNCTION
from support.fake_kms import mac_key, serve, signing_key

NOW = time.time()
DAY_S = 86_400

FIRST = Journal("flow", (Entry("create", Kind.STEP, {"id": 1}),), {"place": Fingerprint("m", "f")})


@dataclass(frozen=True)
class Deployment:
    """A deployment: the variables of its functions, and what its functions seal with."""

    environment: Mapping[str, str]
    codec: RequestStateCodec
    clients: AwsClients

    def seal(self):
        binding = Binding("local", "http://127.0.0.1/mcp", None, "tools/call", "t", None)
        return self.codec.seal(binding, FIRST.to_json(), round=1, first_issued_at=None)

    def decode(self, token):
        return describe_state(
            token, open_state(token, state_protections([self.environment], self.clients)), None
        )


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

    def deploy(*, encrypted: bool = True, age_s: float = 0, signing: str = "direct") -> Deployment:
        environment = {
            "MCP_AUTH_MODE": "none",
            "MCP_ISSUER": "local",
            "MCP_AUDIENCE": "http://127.0.0.1/mcp",
            "MCP_STATE_KEY_ARN": signing_key(fake),
            "MCP_STATE_SIGNING": signing,
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


@pytest.mark.parametrize("signing", ["direct", "delegated"])
def test_an_expired_state_is_still_decoded(deployment, signing):
    of = deployment(age_s=3 * DAY_S, signing=signing)
    found = of.decode(of.seal())
    assert (found["expiresAtMs"] < NOW * 1000, found["flow"]) == (True, "flow")


def test_a_state_of_other_keys_is_refused(deployment):
    assert refused(deployment(), deployment().seal()) == "unknown_key"
    signed = deployment(encrypted=False)
    assert refused(signed, deployment(encrypted=False).seal()) == "unknown_key"
    elsewhere = {**signed.environment, "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:111111111111:key/a"}
    assert refused(replace(signed, environment=elsewhere), signed.seal()) == "unknown_key"


def test_functions_without_states_have_no_keys(deployment):
    assert list(state_protections([{}, {"MCP_AUTH_MODE": "none"}], deployment().clients)) == []
