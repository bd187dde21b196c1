"""The console's MCP modules: headers, URI templates and bodies agree with the server's."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.protocol.http import build_response
from mcp_roundtrip.protocol.mirrored_headers import build_parameter_headers, encode_header
from mcp_roundtrip.protocol.resource_uris import UriTemplate, normalize_uri
from support import skips
from support.project import ROOT

WEB = ROOT / "development/mcp_roundtrip_tools/console/web"
PROGRAM = Path(__file__).with_name("mcp_modules.mjs")

NAMES = [
    "get_weather",
    "a b",
    "",
    " x",
    "Ünïcode",
    "weather://forecast/Tokyo, Japan",
    "=?base64?eA==?=",
    "a\tb",
    "🙂",
]


def returned(*calls: list[Any]) -> list[Any]:
    """Return what functions of the modules return; a call is a module, a function and its arguments."""
    node = shutil.which("node")
    if node is None:
        skips.skip(skips.NODE, "the console's modules")
    command = [node, "--input-type=module", "--eval", PROGRAM.read_text()]
    given = json.dumps({"web": str(WEB), "calls": calls})
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_headers_are_those_that_the_server_expects() -> None:
    schema = {
        "properties": {
            "region": {"x-mcp-header": "Region"},
            "count": {"x-mcp-header": "Count"},
            "dry": {"x-mcp-header": "Dry"},
            "left_out": {"x-mcp-header": "Left-Out"},
            "inner": {"properties": {"name": {"x-mcp-header": "Name"}}},
            "list": {"x-mcp-header": "List"},
        }
    }
    arguments = {"region": "Zürich", "count": 3.5, "dry": True, "left_out": None, "inner": {"name": "x"}}
    names, parameters, uri = returned(
        ["headers", "nameHeader", "tools/call", {"name": "Ä"}],
        ["headers", "parameterHeaders", schema, {**arguments, "list": [1]}],
        ["headers", "nameHeader", "resources/read", {"uri": "notes://a"}],
    )
    paths = {("region",): "Region", ("count",): "Count", ("dry",): "Dry", ("inner", "name"): "Name"}
    assert names == {"mcp-name": encode_header("Ä")}
    assert parameters == build_parameter_headers(paths, arguments)
    assert uri == {"mcp-name": "notes://a"}
    assert returned(*(["headers", "encodeHeader", name] for name in NAMES)) == [*map(encode_header, NAMES)]


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("notes://{folder}/{name}", {"folder": "a/b ü", "name": "?&#"}),
        ("file:///{+path}", {"path": "home/ada/notes.md"}),
        ("search://all{?q,page}", {"q": "a&b=c", "page": "2"}),
        ("search://all{?q,page}", {"page": "2"}),
        ("books://{id}{/page}", {"id": "1", "page": "7"}),
        ("books://{id}{/page}", {"id": "1"}),
    ],
)
def test_the_server_reads_from_a_uri_what_was_filled_in(template: str, values: dict[str, str]) -> None:
    parsed = UriTemplate.parse(template)
    names, uri = returned(
        ["uri_template", "variablesOf", template], ["uri_template", "expand", template, values]
    )
    assert names == [*parsed.variables]
    match = parsed.match(normalize_uri(uri))
    assert match is not None
    assert match.values == values


def test_bodies_of_the_server_are_read() -> None:
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    response = {"jsonrpc": "2.0", "id": 4, "result": {"text": "a\n\ndata: b\u2028"}}
    accepts = {"accept": "text/event-stream"}
    stream = build_response(json.dumps(response), [json.dumps(notification)], accepts)
    kind = stream.headers["content-type"]
    [events, plain, text] = returned(
        ["body", "readBody", kind, stream.body, 4],
        ["body", "readBody", "application/json", json.dumps(response), 4],
        ["body", "readBody", "text/html", "<h1>Bad Gateway</h1>", 4],
    )
    assert events == {"body": response, "notifications": [notification]}
    assert plain == {"body": response, "notifications": []}
    assert text == {"body": "<h1>Bad Gateway</h1>", "notifications": []}
