"""The official clients show the icons and the website of a front door, and those of a single function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import mcp_types as types
import pytest
from mcp.client import Client

from mcp_roundtrip_tools.catalog.__main__ import main
from mcp_roundtrip_tools.run import LocalApp
from support.sam_applications import write_application
from support.served_application import serve

if TYPE_CHECKING:
    from typing import Literal

    from support.typescript_client import RunModule

pytest_plugins = ["support.typescript_client"]

pytestmark = pytest.mark.anyio

TEMPLATE = """
    Globals:
      Function: {Handler: app.handler, Timeout: 20, Environment: {Variables: {MCP_AUTH_MODE: none}}}
    Resources:
      Door:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/front_door
          Environment: {Variables: {MCP_OWNERS: !Sub '{"shop": "${Shop.Arn}"}'}}
          Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
      Shop:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/shop
          Events: {E: {Type: HttpApi, Properties: {Path: /shop, Method: ANY}}}
    """

ICON = {"src": "https://shop.example/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
WEBSITE = "https://shop.example/"
OPTIONS = f"icons=[{ICON!r}], website_url={WEBSITE!r}"

SOURCES = {
    "functions/front_door/app.py": f"""
        from pathlib import Path
        from mcp_roundtrip import FrontDoor

        handler = FrontDoor("mall", Path(__file__).with_name("catalog.json"), {OPTIONS}).lambda_handler
        """,
    "functions/shop/app.py": f"""
        from mcp_roundtrip import Server

        server = Server("shop", {OPTIONS})

        @server.tool
        def stock(item: str) -> int:
            return len(item)

        handler = server.lambda_handler
        """,
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApp]:
    folder = tmp_path_factory.mktemp("branding")
    template = write_application(folder, TEMPLATE, SOURCES)
    assert main(["--functions", str(folder / "functions")]) == 0
    with serve(template, log=lambda line: None) as app:
        yield app


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("path", "name"), [("/mcp", "mall"), ("/shop", "shop")])
async def test_the_python_client_has_the_icons_and_the_website(
    app: LocalApp, path: str, name: str, mode: Literal["auto", "legacy"]
) -> None:
    async with Client(app.url(path), mode=mode) as client:
        info = client.server_info
        result = await client.call_tool("stock", {"item": "pen"})
    icon = types.Icon.model_validate(ICON)
    assert info == types.Implementation(name=name, version="1.0.0", icons=[icon], website_url=WEBSITE)
    assert not result.is_error


TYPESCRIPT = """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "x", version: "1" }, OPTIONS);
await client.connect(new StreamableHTTPClientTransport(new URL(URL_OF_SERVER)));
console.log(JSON.stringify(client.getServerVersion()));
await client.close();
"""


@pytest.mark.parametrize(
    "options", [{}, {"versionNegotiation": {"mode": "auto"}}], ids=["initialize", "2026-07-28"]
)
@pytest.mark.parametrize(("path", "name"), [("/mcp", "mall"), ("/shop", "shop")])
def test_the_typescript_client_has_the_icons_and_the_website(
    app: LocalApp, run_module: RunModule, path: str, name: str, options: dict[str, object]
) -> None:
    program = TYPESCRIPT.replace("URL_OF_SERVER", json.dumps(app.url(path)))
    info = json.loads(run_module(program.replace("OPTIONS", json.dumps(options))))
    assert info == {"name": name, "version": "1.0.0", "icons": [ICON], "websiteUrl": WEBSITE}
