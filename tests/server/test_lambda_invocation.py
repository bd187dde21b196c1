"""The metadata of a forwarded call, and how its owner uses it."""

from base64 import b64encode
from itertools import count
from types import SimpleNamespace
from uuid import uuid4

import pytest

from mcp_roundtrip import DefinitionError
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.lambda_invocation import Forwarded, owner_timeout_s
from mcp_roundtrip.server.options import make_server_info
from support.deployment import Deployment
from support.lambda_context import LambdaContext
from support.messages import call
from support.servers import server_of


def one() -> str:
    raise LookupError


@pytest.mark.parametrize(
    "context",
    [
        None,
        object(),
        LambdaContext(),
        LambdaContext(custom="x"),
        SimpleNamespace(client_context=SimpleNamespace(custom=None)),
        LambdaContext(custom={"mcpHideUnauthorized": "true"}),
        LambdaContext(custom={"mcpServerInfo": {"name": 7, "version": []}}),
        LambdaContext(custom={"mcpDeadlineMs": "soon", "mcpCatalogDigest": 7, "mcpCorrelationId": []}),
    ],
)
def test_malformed_metadata_means_that_a_call_was_not_forwarded(context):
    assert Forwarded.read(context) == Forwarded()


def is_refused(title):
    try:
        make_server_info("door", "1", title)
    except DefinitionError:
        return True
    return False


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_the_longest_server_name_fits_into_a_client_context(letter):
    length = next(length for length in count(1) if is_refused(letter * length)) - 1
    info = make_server_info("door", "1", letter * length)
    custom = Forwarded(1_795_000_000_000.5, str(uuid4()), info, True, "f" * 16).custom()
    # Lambda's Invoke, X-Amz-Client-Context: up to 3,583 bytes of Base64.
    assert len(b64encode(compact_json({"custom": custom}).encode())) <= 3_583
    assert len(compact_json(info)) > 1_900


@pytest.mark.parametrize(
    ("cataloged", "deployed", "differ"),
    [("a", "b", True), ("a", "a", False), (None, "b", False), ("a", None, False)],
)
def test_an_owner_reports_that_it_was_deployed_with_another_catalog(cataloged, deployed, differ):
    owner = Deployment(server_of(one), user=None, replaced_ports={"catalog_digest": lambda: deployed})
    forwarded = Forwarded(catalog_digest=cataloged, correlation_id="request-7")
    answer = owner.invoke(call("one"), LambdaContext(custom=forwarded.custom()))
    assert "Quote request-7 " in answer["result"]["content"][0]["text"], "both functions log it"
    assert ("catalog_drift" in owner.events) is differ


@pytest.mark.parametrize(
    ("remaining_ms", "waits_s"),
    [(60_000, 26), (28_000, 26), (27_999, 26), (26_999, 25), (24_050, 23), (900, 1)],
)
def test_the_timeout_of_a_front_door_leaves_time_to_connect_and_respond(remaining_ms, waits_s):
    assert owner_timeout_s(remaining_ms) == waits_s
