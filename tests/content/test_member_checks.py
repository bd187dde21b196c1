"""Metadata that authors declare for a feature, and its form in lists."""

import math
import re
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.content.member_checks import definition_members
from mcp_roundtrip.errors import DefinitionError

ICON = {"src": "https://icons.example/a.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}
NO_TIMES = (
    *("2026-07-28T14:30:00", "2026-13-01T00:00:00Z", "2026-07-28 14:30:00Z", "2026-07-28T14:30:00+0200"),
    *("2026-07-28T14:30Z", datetime(2026, 7, 28), 1785249000, None),
)
HALVES = {"title": "\udc80", "icons": ["\udc80"], "annotations": {"audience": ["\udc80"]}}
NO_URLS = ("a.svg", "javascript:alert(1)", "https://a b/c", "https://a/%g0")
NO_NAMES = ("a b", "-a", "a-", "1com.a/b", "com.a-/b", "com..a/b", "a/b/c", "é", "\udc80")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {}),
        ({"title": "A", "description": "", "mimeType": "text/plain"},) * 2,
        *(({"mimeType": kind},) * 2 for kind in ("text/html;profile=mcp-app", 'a/b ; c="d; e"; f=g')),
        *(({"icons": [{"src": src}]},) * 2 for src in ("data:;base64,a+/=", "HTTPS://[::1]/%20?a#b")),
        ({"size": 0, "icons": [], "_meta": {}},) * 2,
        ({"icons": [{"src": "https://é/"}]}, {"icons": [{"src": "https://%C3%A9/"}]}),
        ({"icons": (ICON, MappingProxyType(ICON))}, {"icons": [ICON, ICON]}),
        ({"annotations": MappingProxyType({"priority": 0.5})}, {"annotations": {"priority": 0.5}}),
        ({"_meta": {"a/on": date(2026, 7, 28), "b": [None]}}, {"_meta": {"a/on": "2026-07-28", "b": [None]}}),
        ({"_meta": {"com.a-1.b/c_d.E-f": 1, "a/": 2, "": 3}},) * 2,
    ],
)
def test_members_are_written_as_json_and_later_changes_are_not(given, written):
    members = definition_members("tool", "a", given)
    given.get("_meta", {}).get("b", []).append(1)
    assert members == written


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"title": 1}, "title: Expected `str`"),
        *(({"mimeType": kind}, "mime_type must be") for kind in ("png", "a/p,ng", "é/png", "a/b;", "a/b; c")),
        *(({name: each}, f"{name} must be") for name, each in HALVES.items()),
        *(({"size": size}, "size: Expected `int` ") for size in (-1, 2**53)),
        ({"icons": [{**ICON, "theme": "blue"}]}, "icons[0].theme: "),
        ({"icons": ICON}, "icons: Expected `list`"),
        ({"icons": [{"x": 1}]}, "icons[0]: Object missing"),
        ({"icons": [{**ICON, "sizes": "48x48"}]}, "icons[0].sizes: Expected `list`"),
        *(({"icons": [{"src": src}]}, "icons[0].src must be") for src in NO_URLS),
        ({"icons": [{**ICON, "x": {"a": object()}}]}, "icons[0].x.a: object"),
        ({"icons": [{**ICON, "mime_type": "a/b"}]}, "icons[0].mime_type is not a name"),
        ({"annotations": {"lastmodified": ""}}, "annotations.lastmodified is not a name"),
        ({"annotations": {"priority": 5}}, "annotations.priority: Expected `float` <= 1.0"),
        *(({"annotations": {"lastModified": time}}, "annotations.lastModified must be") for time in NO_TIMES),
        ({"annotations": {"priority": Decimal("0.5")}}, "annotations.priority must be"),
        ({"_meta": {1: 1}}, "name in meta: "),
        ({"icons": [ICON, {1: 1, **ICON}]}, "name in icons[1]: "),
        ({"_meta": {"x": object()}}, "meta.x: object"),
        ({"_meta": {"x": [math.nan]}}, "meta.x[0]: NaN"),
        *(({"_meta": {name: 1}}, f"meta has the name {name!r}") for name in NO_NAMES),
    ],
)
def test_invalid_metadata_is_refused_by_name_and_place(given, problem):
    with pytest.raises(DefinitionError, match=f"^resource a://b: .*{re.escape(problem)}"):
        definition_members("resource", "a://b", {"title": "A", **given})
    with pytest.raises(DefinitionError, match=f"^prompt: .*{re.escape(problem)}"):
        definition_members("prompt", None, given)


@pytest.mark.parametrize("annotations", [{"readOnlyHint": "yes"}, {"title": 1}])
def test_annotations_of_a_tool_are_hints(annotations):
    with pytest.raises(DefinitionError, match=r"^tool a: annotations\.\w+: "):
        definition_members("tool", "a", {"annotations": annotations})


@pytest.mark.parametrize("member", [{"title": 1}, {"icons": [{"x": 1}]}, {"meta": {"x": object()}}])
def test_invalid_metadata_of_every_feature_is_refused_at_declaration(member):
    server = Server("s")
    for declare in (server.tool, server.prompt, lambda **each: server.resource("a://b", **each)):
        with pytest.raises(DefinitionError):
            declare(**member)
    with pytest.raises(DefinitionError):
        server.resource("a://b", size="x")  # type: ignore[arg-type]  # the mistake in question
