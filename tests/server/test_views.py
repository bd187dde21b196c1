"""Views of tools: how they are listed, read and declared, and which tools have the view for questions."""

import pytest

from mcp_roundtrip import Context, DefinitionError, Server
from mcp_roundtrip.protocol.constants import UI_MIME_TYPE
from support.client_requests import APPS
from support.deployment import Deployment
from support.servers import server_of

DOCUMENT = "<!doctype html><title>Forecast</title>"
QUESTIONS = "ui://mcp-roundtrip/questions"

server = Server("shop", channels=("app", "default"), page_size=2)


@server.tool
def order(ctx: Context, item: str) -> dict[str, int]:
    return {"ordered": ctx.elicit("count", f"How many {item}?", int)}


@server.tool(ui=DOCUMENT)
def forecast() -> dict[str, int]:
    return {"celsius": 3}


@server.tool
def plain() -> str:
    return "plain"


def app(server=server, **facets):
    """Return a client that shows views."""
    return Deployment(server, **{"capabilities": APPS, "has_table": False, **facets}).connected()


@pytest.fixture
def client(version, through_door):
    return app(version=version, through_door=through_door)


def test_views_are_read_by_their_uri_and_not_listed(client):
    for uri, start in ((QUESTIONS, "<!doctype html>"), ("ui://shop/forecast", DOCUMENT)):
        content = client.read(uri)
        assert (content["uri"], content["mimeType"]) == (uri, UI_MIME_TYPE)
        assert content["text"].startswith(start)
        assert "csp" not in content["_meta"]["ui"]
    assert client.result("resources/list")["resources"] == []
    assert app(capabilities={}).error("resources/list")["code"] == -32601
    assert client.result("resources/templates/list")["resourceTemplates"] == []
    for uri in ("ui://shop/order", "ui://other/forecast", "ui://", "docs://x"):
        assert client.error("resources/read", uri=uri)["code"] in (-32601, -32602, -32002)


def test_the_view_of_a_tool_with_scopes_needs_them_and_is_shared_by_no_cache(through_door):
    scoped = Server("scoped", scopes={})
    scoped.tool("secret", ui=DOCUMENT, scopes=("read",))(forecast)
    scoped.tool("open", ui=DOCUMENT)(forecast)
    allowed = app(scoped, through_door=through_door, scopes=("read",))
    for name, scope in (("secret", "private"), ("open", "public")):
        assert allowed.result("resources/read", uri=f"ui://scoped/{name}")["cacheScope"] == scope
    refused = allowed.by(scopes=()).error("resources/read", uri="ui://scoped/secret")
    assert refused["code"] == -32600


def pages(client, method="tools/list"):
    first = client.result(method)
    return first, client.result(method, cursor=first.get("nextCursor"))


def test_the_list_names_views_and_the_tool_for_views_only_to_clients_that_show_them(client):
    def listed(client):
        return {tool["name"]: tool.get("_meta") for page in pages(client) for tool in page["tools"]}

    def view(uri):
        return {"ui": {"resourceUri": uri}, "ui/resourceUri": uri}

    own = {"order": view(QUESTIONS), "forecast": view("ui://shop/forecast"), "plain": None}
    assert listed(client) == {**own, "answer_questions": {"ui": {"visibility": ["app"]}}}
    assert listed(client.by(capabilities={}).connected()) == dict.fromkeys(own)


def test_a_client_that_shows_every_question_itself_has_no_tool_for_views():
    client = app(capabilities={**APPS, "elicitation": {"form": {}, "url": {}}})
    assert [tool["name"] for page in pages(client) for tool in page["tools"]] == [
        "order",
        "forecast",
        "plain",
    ]


@pytest.mark.parametrize("capabilities", [APPS, {}], ids=["shows views", "shows none"])
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_what_depends_on_the_views_of_a_client_is_shared_by_no_cache(method, capabilities):
    for served, scope in ((server, "private"), (Server("without views"), "public")):
        both = pages(app(served, capabilities=capabilities), method)
        assert [page["cacheScope"] for page in both] == [scope, scope]


@pytest.mark.parametrize(
    ("tool", "channels", "has_table", "scope"),
    [
        (order, ["default"], False, "public"),
        (order, ["default"], True, "private"),
        (order, ["model"], False, "private"),
        (plain, ["model"], True, "public"),
    ],
)
def test_a_list_that_depends_on_how_its_client_is_asked_is_shared_by_no_cache(
    tool, channels, has_table, scope
):
    client = app(server_of(tool, channels=channels), has_table=has_table)
    assert client.result("tools/list")["cacheScope"] == scope


def test_a_view_may_be_a_file(tmp_path):
    path = tmp_path / "view.html"
    path.write_text(f"\n{DOCUMENT}")
    one = Server("one")
    one.tool(ui=path)(plain)
    assert app(one).read("ui://one/plain")["text"].strip() == DOCUMENT
    assert app(one).result("tools/list")["cacheScope"] == "private"


def test_the_name_of_the_answer_tool_is_reserved():
    with pytest.raises(DefinitionError, match="registered twice"):
        Server("one").tool("answer_questions")(plain)


def test_a_tool_with_a_view_of_its_authors_own_is_not_asked_in_a_view():
    own = Server("own", channels=("app",))

    @own.tool(meta={"ui": {"resourceUri": "ui://own/x"}})
    def shown(ctx: Context) -> int:
        return ctx.elicit("count", "How many?", int)

    assert app(own).call_error("shown")["code"] == -32021


def test_a_view_with_a_visibility_may_have_five_megabytes(through_door):
    one = Server("one")
    one.tool(ui=f"{DOCUMENT:5000000}", meta={"ui": {"visibility": ["model"]}})(plain)
    client = app(one, through_door=through_door)
    [listed] = client.result("tools/list")["tools"]
    assert listed["_meta"]["ui"] == {"visibility": ["model"], "resourceUri": "ui://one/plain"}
    assert len(client.read("ui://one/plain")["text"]) == 5_000_000
