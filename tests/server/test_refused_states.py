"""Attacks on `requestState`: the client gets one fixed error, the log has the reason."""

import json
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Server
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES, HttpRequest
from mcp_roundtrip.server.call_errors import INVALID_STATE
from mcp_roundtrip.state.claims import Binding
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.ports import AUDIENCE, ISSUER, make_codec
from support.attacks import CASES
from support.deployment import Deployment
from support.forgery import FORGES
from support.json_values import any_json
from support.messages import call, headers
from support.tokens import BINDING, NOW

ALICE = {"jwt": {"claims": {"iss": "https://id.example", "sub": "alice", "client_id": "c1"}}}

ARGUMENTS = {"name": "orders", "vcpus": 4}

server = Server("databases")


@server.tool
def provision(ctx: Context, name: str, vcpus: int) -> str:
    raise AssertionError("a refused state reached the tool")


def presented(attack, configuration):
    settings = {"issuer": BINDING.issuer, "audience": BINDING.audience}
    codec = {"state_codec": lambda: configuration.codec(NOW + attack.later_s, **attack.verifier)}
    client = Deployment(server, replaced_ports=codec, replaced_settings=settings)
    state = attack.forge(FORGES[configuration])
    body = call(BINDING.name, BINDING.arguments, requestState=state, inputResponses={})
    return client, client.respond(HttpRequest("POST", headers(body), json.dumps(body), ALICE))


def can_be_sent(state):
    """Return whether a request can have this state: a string that JSON in UTF-8 can express."""
    return isinstance(state, str) and len(state) < MAX_BODY_BYTES


def test_all_refused_states_get_the_same_error_and_the_log_has_the_reason():
    refused = [
        (attack, configuration)
        for attack, configuration in CASES.values()
        if attack.reason_on(configuration) is not None
        and not attack.request
        and can_be_sent(attack.forge(FORGES[configuration]))
    ]
    answers = set()
    for attack, configuration in refused:
        client, response = presented(attack, configuration)
        answers.add((response.status, response.body))
        ((_, fields),) = [event for event in client.observer.events if event[0] == "state_refused"]
        assert fields == {"tool": "provision", "reason": attack.reason_on(configuration)}
    assert len(refused) > 500
    ((status, text),) = answers
    answer = json.loads(text)
    assert (status, answer["error"]) == (400, {"code": -32602, "message": INVALID_STATE})


JSON = any_json(st.text(max_size=3), finite=True, max_leaves=5)
MEMBERS = st.dictionaries(st.sampled_from(["id", "j", "q", "h", "r", "x"]), JSON, max_size=4)


@given(JSON | MEMBERS.map(lambda members: {"v": 1, **members}))
@example({"v": 1})
@example({"v": 1, "id": "x", "j": [["now", "n", "no time"]]})
def test_a_malformed_journal_with_a_valid_signature_gets_the_same_error(payload):
    with suppress(StateRejected):
        Journal.from_json(payload)
        return  # few are well formed
    play = Player(server)
    binding = Binding(ISSUER, AUDIENCE, None, "tools/call", "provision", ARGUMENTS)
    codec = make_codec(play.key, play.clock)
    state = codec.seal(binding, payload, round=1, first_issued_at=None)
    refused = play.send("provision", ARGUMENTS, {}, state)
    assert (refused.status, refused.error) == (400, {"code": -32602, "message": INVALID_STATE})
    [(_, fields)] = [event for event in play.observer.events if event[0] == "state_refused"]
    assert fields["reason"] in ("journal", "journal_version")
