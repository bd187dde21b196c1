import time
from contextlib import closing

import pytest

from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip_tools.console.admission import ConsoleError
from mcp_roundtrip_tools.console.states import describe_state, open_state, state_protections
from support.aws_clients import FUNCTION
from support.fake_kms import FailingKms, serve
from support.kms_clients import client, deployment
from support.tokens import BINDING, Configuration

NOW = time.time()

FIRST = Journal("flow", (Entry("create", Kind.STEP, {"id": 1}),), {"place": Fingerprint("m", "f")})


class Functions:
    """The functions of deployments whose keys are in a KMS, and the console's clients of AWS services."""

    def __init__(self, url, kms):
        self.kms = kms
        self.clients = AwsClients(environment={**FUNCTION, "AWS_ENDPOINT_URL": url})

    def deploy(self, *, encrypted=True, delegated=False):
        """Return a deployment with new keys."""
        return deployment(self.kms, Configuration(delegated, encrypted))

    def seal(self, deployed):
        codec = deployed.environment(self.kms, lambda: NOW)
        return codec.seal(BINDING, FIRST.to_json(), round=1, first_issued_at=None)

    def decode(self, token, variables):
        return describe_state(token, open_state(token, state_protections([variables], self.clients)), None)

    def refusal(self, token, variables):
        with pytest.raises(ConsoleError) as caught:
            self.decode(token, variables)
        assert caught.value.status == 422
        assert str(caught.value).endswith(".")
        return str(caught.value.members["reason"])


@pytest.fixture(scope="module")
def functions():
    with serve(FailingKms()) as server, closing(client(server.url)) as kms:
        yield Functions(server.url, kms)


def test_a_state_is_decoded_also_if_a_certificate_has_its_key(functions):
    for delegated in (False, True):
        deployed = functions.deploy(delegated=delegated)
        assert functions.decode(functions.seal(deployed), deployed.variables)["flow"] == "flow"


def test_a_state_of_other_keys_is_refused(functions):
    for encrypted in (True, False):
        own, other = (functions.deploy(encrypted=encrypted) for _ in range(2))
        assert functions.refusal(functions.seal(other), own.variables) == "unknown_key"
    elsewhere = {**own.variables, "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:111111111111:key/a"}
    assert functions.refusal(functions.seal(own), elsewhere) == "unknown_key"


def test_functions_without_states_have_no_keys(functions):
    assert list(state_protections([{}, {"MCP_AUTH_MODE": "none"}], functions.clients)) == []
