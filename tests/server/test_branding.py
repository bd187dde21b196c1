"""`icons=` and `website_url=` of a server: clients get them when they connect, and in no other result."""

import json
from types import MappingProxyType

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.protocol.constants import META_SERVER_INFO
from mcp_roundtrip.protocol.http import HttpRequest
from support.deployment import Deployment, legacy

ICON = {
    "src": "data:image/png;base64,iVBORw0KGgo=",
    "mimeType": "image/png",
    "sizes": ["48x48"],
    "theme": "dark",
}
GIVEN, SENT = "https://shop.example/é", "https://shop.example/%C3%A9"  # format `uri` of the schema
OPTIONS = {"icons": [MappingProxyType(ICON), {"src": GIVEN}], "website_url": GIVEN}
BRANDING = {"icons": [ICON, {"src": SENT}], "websiteUrl": SENT}

server = Server("shop", **OPTIONS)


@server.tool
def stock(item: str) -> int:
    """Return how many pieces of an item are in stock."""
    return len(item)


@server.prompt()
def review(item: str) -> str:
    return f"Review {item}."


owner = Server("owner")
owner.tool(stock)
owner.prompt()(review)
DEPLOYED = {
    "function": {"server": server},
    "front door": {"server": owner, "through_door": True, "door_options": OPTIONS},
}
"""A function, and a front door whose owner has none of the options."""
each_deployment = pytest.mark.parametrize("deployed", DEPLOYED)


@each_deployment
def test_only_discovery_and_the_server_card_have_the_icons_and_the_website(deployed):
    client = Deployment(**DEPLOYED[deployed], replaced_settings={"server_card": "com.example/shop"})
    info = client.result("server/discover")["_meta"][META_SERVER_INFO]
    name = info["name"]
    assert info == {"name": name, "version": "1.0.0", **BRANDING}
    others = {
        "tools/list": client.result("tools/list"),
        "tools/call": client.call("stock", item="pen"),
        "prompts/get": client.result("prompts/get", name="review", arguments={"item": "pen"}),
    }
    for method, result in others.items():
        assert result["_meta"][META_SERVER_INFO] == {"name": name, "version": "1.0.0"}, method
    card = json.loads(client.respond(HttpRequest("GET", {}, "", path="/mcp/server-card")).body)
    assert {member: card[member] for member in BRANDING} == BRANDING


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
@each_deployment
def test_initialize_has_the_icons_and_the_website(version, deployed):
    client = legacy(**DEPLOYED[deployed])
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    info = client.result("initialize", **params)["serverInfo"]
    assert info == {"name": info["name"], "version": "1.0.0", **BRANDING}
