"""A signed link opens only for its user, in any client."""

from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_roundtrip import Context, Principal, Server
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip_testing import Player, make_ports

ISSUER = "https://id.example"
ALICE = {"iss": ISSUER, "sub": "alice"}
IAM = {"accountId": "123456789012", "userId": "AROAEXAMPLE:session"}

server = Server("pages")


@server.tool
def connect(ctx: Context) -> str:
    """Connect an account."""
    return ctx.signed_link("link", "https://page.example/connect")


def opened(authorizer, visitor):
    """Sign a link for the caller and open it as the visitor. Return its key."""
    [mode] = authorizer
    auth = EventAuthenticator(AuthMode(mode), principal_context_key="user")
    play = Player(server, authorizer=authorizer, ports={"auth": auth})
    [token] = parse_qs(urlsplit(play.call("connect").text).query)["mcp_link"]
    page = Server("page", ports=lambda: make_ports(key=play.key, clock=play.clock))
    return page.open_link(token, visitor).key


def jwt(**claims):
    return {"jwt": {"claims": {**ALICE, **claims}}}


CLIENTS = {
    "no client": {},
    "client_id": {"client_id": "mcp-client"},
    "azp": {"azp": "mcp-client"},
    "client_id and azp": {"client_id": "mcp-client", "azp": "another"},
}


@pytest.mark.parametrize("client_id", [None, "page", "mcp-client"])
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_user_can_open_a_link_in_any_client(client, client_id):
    assert opened(jwt(**client), Principal("jwt", "alice", ISSUER, client_id)) == "link"


OTHER_VISITORS = {
    "another subject": Principal("jwt", "mallory", ISSUER, "mcp-client"),
    "another issuer": Principal("jwt", "alice", "https://other.example", "mcp-client"),
    "no issuer": Principal("jwt", "alice", None, "mcp-client"),
    "another kind": Principal("iam", "alice", ISSUER, "mcp-client"),
    "the client for its user": Principal("jwt", "mcp-client", ISSUER, "alice"),
    "an anonymous visitor": None,
}


@pytest.mark.parametrize("visitor", OTHER_VISITORS.values(), ids=OTHER_VISITORS)
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_other_visitors_are_refused_in_any_client(client, visitor):
    with pytest.raises(StateRejected, match="wrong_principal"):
        opened(jwt(**client), visitor)


@pytest.mark.parametrize(
    ("authorizer", "person"),
    [
        ({"iam": IAM}, Principal("iam", "AROAEXAMPLE", "123456789012")),
        (
            {"iam": IAM | {"cognitoIdentity": {"identityId": "eu-west-1:alice"}}},
            Principal("iam", "eu-west-1:alice", "123456789012"),
        ),
        ({"lambda": {"user": "alice"}}, Principal("lambda", "alice")),
    ],
)
def test_a_user_is_identified_by_kind_issuer_and_subject(authorizer, person):
    assert opened(authorizer, person) == "link"
    with pytest.raises(StateRejected, match="wrong_principal"):
        opened(authorizer, Principal("jwt", person.subject, person.issuer))
