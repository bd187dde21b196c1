"""Metadata that authors declare for a feature, and its form in lists."""

from __future__ import annotations

import math
import re
from datetime import date
from types import MappingProxyType

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.content.member_checks import definition_members
from mcp_roundtrip.errors import DefinitionError

ICON = {"src": "https://icons.example/a.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}
NO_URL = 'must be a URL with its scheme, such as "https://example.com/icon.png"'


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {}),
        ({"title": "A", "description": "", "mimeType": "text/plain"},) * 2,
        ({"size": 0}, {"size": 0}),
        ({"icons": (ICON, MappingProxyType(ICON))}, {"icons": [ICON, ICON]}),
        ({"annotations": MappingProxyType({"priority": 0.5})}, {"annotations": {"priority": 0.5}}),
        ({"_meta": {"a/on": date(2026, 7, 28), "b": [None]}}, {"_meta": {"a/on": "2026-07-28", "b": [None]}}),
    ],
)
def test_members_are_written_as_json_and_later_changes_are_not(given, written):
    members = definition_members("tool", "a", given)
    given.get("_meta", {}).get("b", []).append(1)
    assert members == written


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"title": 1}, "title must be str"),
        ({"description": b"a"}, "description must be str"),
        ({"mimeType": 1}, "mime_type must be str"),
        ({"title": "\udc80"}, "title must be text without half of a surrogate pair"),
        ({"size": "x"}, "size must be a whole number of bytes"),
        ({"size": -1}, "size must be a whole number of bytes"),
        ({"size": True}, "size must be a whole number of bytes"),
        ({"size": 1.0}, "size must be a whole number of bytes"),
        ({"icons": ICON}, "icons must be a list of mappings, each with src"),
        ({"icons": "a"}, "icons must be a list of mappings, each with src"),
        ({"icons": [{"x": 1}]}, "icons must be a list of mappings, each with src"),
        ({"icons": [ICON, {"src": 1}]}, "icons[1].src must be text"),
        *(({"icons": [{"src": src}]}, f"icons[0].src {NO_URL}") for src in ("a.svg", "javascript:alert(1)")),
        ({"icons": [{**ICON, "x": {"a": object()}}]}, "icons must be JSON, at icons[0].x.a: object"),
        ({"annotations": ["a"]}, "annotations must be a mapping"),
        ({"_meta": "a"}, "meta must be a mapping"),
        ({"_meta": {"x": object()}}, "meta must be JSON, at meta.x: object"),
        ({"_meta": {"x": [math.nan]}}, "meta must be JSON, at meta.x[0]: NaN or Infinity"),
        ({"_meta": {"\udc80": 1}}, "meta must be JSON, at meta: half of a surrogate pair in a name"),
    ],
)
def test_invalid_metadata_is_refused_by_name_and_place(given, problem):
    with pytest.raises(DefinitionError) as caught:
        definition_members("resource", "a://b", {"title": "A", **given})
    assert str(caught.value) == f"resource a://b: {problem}"
    with pytest.raises(DefinitionError, match=f"^prompt: {re.escape(problem)}$"):
        definition_members("prompt", None, given)


@pytest.mark.parametrize("member", [{"title": 1}, {"icons": [{"x": 1}]}, {"meta": {"x": object()}}])
def test_invalid_metadata_of_every_feature_is_refused_at_declaration(member):
    server = Server("s")
    for declare in (server.tool, server.prompt, lambda **each: server.resource("a://b", **each)):
        with pytest.raises(DefinitionError):
            declare(**member)
    with pytest.raises(DefinitionError):
        server.resource("a://b", size="x")  # type: ignore[arg-type]  # the mistake in question


def test_a_mapping_of_any_kind_is_listed():
    server = Server("s")
    annotations = MappingProxyType({"readOnlyHint": True})
    server.tool(name="a", annotations=annotations, icons=(ICON,), meta=MappingProxyType({}))(lambda: None)
    listed = server.tools["a"].definition()
    assert (listed["annotations"], listed["icons"], listed["_meta"]) == ({"readOnlyHint": True}, [ICON], {})


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("tool", {"icons": [{**ICON, "sizes": "48x48"}]}, r"icons\[0\]\.sizes must be a list"),
        ("tool", {"icons": [{**ICON, "theme": "blue"}]}, "theme"),
        ("tool", {"icons": [{"src": 1}]}, "src must be text"),
        ("tool", {"annotations": {"readOnlyHint": "yes"}}, "readOnlyHint must be True or False"),
        ("tool", {"annotations": {"title": 1}}, "title must be text"),
        ("resource", {"annotations": {"priority": 5}}, "priority must be a number from 0 to 1"),
        ("resource", {"annotations": {"priority": True}}, "priority"),
        ("resource", {"annotations": {"audience": "user"}}, "audience must be a list"),
        ("resource", {"annotations": {"audience": ["model"]}}, "audience"),
        ("resource", {"annotations": {"lastModified": 5}}, "lastModified must be a time"),
        ("resource", {"annotations": {"lastModified": "2026-07-28"}}, "lastModified must be a time"),
        (
            "resource",
            {"annotations": {"lastModified": "2026-13-01T00:00:00Z"}},
            "lastModified must be a time",
        ),
        ("resource", {"mimeType": "png"}, "mime_type must be a media type"),
        ("resource", {"size": 2**53}, "size must be a whole number"),
    ],
)
def test_a_member_of_another_type_than_the_specification_has_is_refused(kind, given, said):
    with pytest.raises(DefinitionError, match=said):
        definition_members(kind, "a", given)
