"""Content blocks on the wire, read back by the official models."""

import pytest
from mcp_types import ContentBlock
from pydantic import TypeAdapter

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.schema.content import Audio, EmbeddedResource, Image, ResourceLink, Text

BLOCKS = [
    (Text("hi"), {"type": "text", "text": "hi"}),
    (Image(b"\xff\x00", "image/png"), {"type": "image", "data": "/wA=", "mimeType": "image/png"}),
    (Audio(b"", "audio/wav"), {"type": "audio", "data": "", "mimeType": "audio/wav"}),
    (ResourceLink("file:///a", "a"), {"type": "resource_link", "uri": "file:///a", "name": "a"}),
    (
        ResourceLink("file:///a", "a", "An a", "text/plain"),
        {
            "type": "resource_link",
            "uri": "file:///a",
            "name": "a",
            "description": "An a",
            "mimeType": "text/plain",
        },
    ),
    (
        EmbeddedResource("file:///a", text=""),
        {"type": "resource", "resource": {"uri": "file:///a", "text": ""}},
    ),
    (
        EmbeddedResource("file:///a", blob=b"\x00", mime_type="application/x"),
        {
            "type": "resource",
            "resource": {"uri": "file:///a", "mimeType": "application/x", "blob": "AA=="},
        },
    ),
    (
        Text("hi", annotations={"audience": ["user"], "priority": 0.5}),
        {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 0.5}},
    ),
]


@pytest.mark.parametrize(("block", "wire"), BLOCKS)
def test_a_block_has_the_wire_form_of_the_specification(block, wire):
    assert block.to_wire() == wire


@pytest.mark.parametrize("block", [block for block, _ in BLOCKS])
def test_the_official_models_read_every_block(block):
    wire = block.to_wire()
    read = TypeAdapter(ContentBlock).validate_python(wire)
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == wire


@pytest.mark.parametrize("contents", [{}, {"text": "a", "blob": b"a"}])
def test_an_embedded_resource_holds_either_text_or_bytes(contents):
    with pytest.raises(UsageError):
        EmbeddedResource("file:///a", **contents)


def test_blocks_are_values():
    assert Text("a") == Text("a")
    with pytest.raises(AttributeError):
        Text("a").text = "b"
