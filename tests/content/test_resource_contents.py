"""Contents of a resource on the wire."""

import math
from datetime import date
from types import MappingProxyType

import pytest

from mcp_roundtrip.content.blocks import Image, ResourceContents, ResourceLink, Text
from mcp_roundtrip.content.resource_contents import resource_contents
from mcp_roundtrip.errors import UsageError

URI = "a://b"


@pytest.mark.parametrize("members", [{}, {"text": "a", "blob": b"a"}])
def test_contents_have_either_text_or_bytes(members):
    with pytest.raises(UsageError):
        ResourceContents(**members)


def test_meta_is_written_as_json():
    held = ResourceContents(text="a", meta=MappingProxyType({"a/on": date(2026, 7, 28)}))
    assert held.to_wire(URI, None) == {"uri": URI, "text": "a", "_meta": {"a/on": "2026-07-28"}}


@pytest.mark.parametrize("wrong", [object(), math.nan])
def test_meta_without_json_form_is_refused_by_place(wrong):
    with pytest.raises(UsageError, match=r"ResourceContents\.meta\.a\.b"):
        resource_contents("r", ResourceContents(text="a", meta={"a": {"b": wrong}}), URI, None)


@pytest.mark.parametrize("wrong", [object(), math.nan, b"\xff"])
def test_a_value_without_json_form_is_refused_by_place(wrong):
    with pytest.raises(UsageError, match=r"^r .*result\.a\[1\]"):
        resource_contents("r", {"a": [None, wrong]}, URI, None)


def test_any_other_value_is_serialized_as_json():
    [held] = resource_contents("r", {"a": ["Zürich", None]}, URI, None)
    assert held == {"uri": URI, "mimeType": "application/json", "text": '{"a": ["Zürich", null]}'}


def test_a_list_without_contents_is_serialized_as_json():
    with pytest.raises(UsageError):
        resource_contents("r", [ResourceContents(text="a"), "b"], URI, None)
    assert resource_contents("r", [], URI, None)[0]["text"] == "[]"


def test_a_content_block_becomes_the_contents():
    [image] = resource_contents("a", Image(b"\x89P", "image/png"), URI, None)
    assert image == {"uri": URI, "blob": "iVA=", "mimeType": "image/png"}
    [text] = resource_contents("a", Text("a"), URI, None)
    assert text == {"uri": URI, "text": "a", "mimeType": "text/plain"}
    with pytest.raises(UsageError, match="ResourceLink"):
        resource_contents("a", ResourceLink("b://c", "c"), URI, None)
