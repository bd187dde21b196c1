"""Content blocks on the wire, validated with the official models."""

import math
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from mcp_types import ContentBlock
from pydantic import TypeAdapter

from mcp_roundtrip.content.blocks import (
    Audio,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
)
from mcp_roundtrip.errors import UsageError

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
        ResourceLink("file:///a", "a", size=0),
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 0},
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
        ResourceLink(
            "file:///a",
            "a",
            title="A",
            size=5,
            icons=[MappingProxyType({"src": "https://a/i.svg", "theme": "dark"})],
            meta={"a/b": [1]},
        ),
        {
            "type": "resource_link",
            "uri": "file:///a",
            "name": "a",
            "title": "A",
            "size": 5,
            "icons": [{"src": "https://a/i.svg", "theme": "dark"}],
            "_meta": {"a/b": [1]},
        },
    ),
    *(
        (block, {**plain.to_wire(), "_meta": {"a/b": {"c": None}}})
        for plain, block in (
            (Text("hi"), Text("hi", meta={"a/b": {"c": None}})),
            (Image(b"", "image/png"), Image(b"", "image/png", meta={"a/b": {"c": None}})),
            (Audio(b"", "audio/wav"), Audio(b"", "audio/wav", meta={"a/b": {"c": None}})),
            (EmbeddedResource("a:b", "c"), EmbeddedResource("a:b", "c", meta={"a/b": {"c": None}})),
        )
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
def test_the_official_models_accept_every_block(block):
    wire = block.to_wire()
    read = TypeAdapter(ContentBlock).validate_python(wire)
    assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == wire


@pytest.mark.parametrize("contents", [{}, {"text": "a", "blob": b"a"}])
def test_an_embedded_resource_has_either_text_or_bytes(contents):
    with pytest.raises(UsageError):
        EmbeddedResource("file:///a", **contents)


@pytest.mark.parametrize(
    ("block", "members", "wrong"),
    [
        (Text, {"text": 5}, "text"),
        (Text, {"text": None}, "text"),
        (Text, {"text": "a", "annotations": []}, "annotations"),
        (Text, {"text": "a", "meta": []}, "meta"),
        (Image, {"data": "aGk=", "mime_type": "image/png"}, "data"),
        (Image, {"data": b"", "mime_type": None}, "mime_type"),
        (Image, {"data": b"", "mime_type": "png"}, "mime_type"),
        (Audio, {"data": bytearray(), "mime_type": "audio/wav"}, "data"),
        (ResourceLink, {"uri": b"file:///a", "name": "a"}, "uri"),
        *(
            (ResourceLink, {"uri": "a:b", "name": "a", name: value}, name)
            for name, values in {
                **dict.fromkeys(("name", "description", "mime_type", "title"), (1,)),
                "size": ["1", -1, True],
                "icons": [[{"x": 1}], "a"],
            }.items()
            for value in values
        ),
        (EmbeddedResource, {"uri": 1, "text": "a"}, "uri"),
        (EmbeddedResource, {"uri": "a:b", "text": 1}, "text"),
        (EmbeddedResource, {"uri": "a:b", "blob": "a"}, "blob"),
        (ResourceContents, {"text": 5}, "text"),
        (ResourceContents, {"blob": "a"}, "blob"),
        (ResourceContents, {"text": "a", "uri": 1}, "uri"),
    ],
)
def test_a_member_of_another_type_is_refused_by_name(block, members, wrong):
    with pytest.raises(UsageError, match=rf"^{block.__name__}\.{wrong} must be "):
        block(**members)


@pytest.mark.parametrize(
    ("make", "member"),
    [
        (lambda half: Text(half), "Text.text"),
        (lambda half: Image(b"", half), "Image.mime_type"),
        (lambda half: ResourceLink("a:b" + half, "a"), "ResourceLink.uri"),
        (lambda half: ResourceLink("a:b", "a", description=half), "ResourceLink.description"),
        (lambda half: EmbeddedResource("a:b", text=half), "EmbeddedResource.text"),
    ],
)
@pytest.mark.parametrize("half", ["\udc80", "a\ud83d"])
def test_text_with_a_lone_surrogate_is_refused_by_name(make, member, half):
    with pytest.raises(UsageError) as caught:
        make(half)
    assert str(caught.value) == f"{member} must be text without half of a surrogate pair"


WITH_ANNOTATIONS = [
    lambda annotations: Text("a", annotations),
    lambda annotations: Image(b"", "image/png", annotations),
    lambda annotations: Audio(b"", "audio/wav", annotations),
    lambda annotations: ResourceLink("file:///a", "a", annotations=annotations),
    lambda annotations: EmbeddedResource("file:///a", "a", annotations=annotations),
]


@pytest.mark.parametrize("annotated", WITH_ANNOTATIONS)
def test_annotations_are_written_as_json(annotated):
    changed = datetime(2026, 7, 28, tzinfo=UTC)
    block = annotated(MappingProxyType({"lastModified": changed, "audience": ("user",)}))
    assert block.to_wire()["annotations"] == {"lastModified": "2026-07-28T00:00:00Z", "audience": ["user"]}


@pytest.mark.parametrize("annotated", WITH_ANNOTATIONS)
@pytest.mark.parametrize("wrong", [object(), math.nan, b"\xff", "\udc80"])
def test_annotations_without_json_form_are_refused_by_place(annotated, wrong):
    block = annotated({"a": [1, wrong]})
    with pytest.raises(UsageError, match=rf"{type(block).__name__}\.annotations\.a\[1\]"):
        block.to_wire()


def test_meta_and_icons_without_json_form_are_refused_by_place():
    with pytest.raises(UsageError, match=r"Audio\.meta must be JSON, at Audio\.meta\.a: object"):
        Audio(b"", "audio/wav", meta={"a": object()}).to_wire()
    with pytest.raises(UsageError, match=r"ResourceLink\.icons must be JSON, at ResourceLink\.icons\[0\]\.b"):
        ResourceLink("a:b", "a", icons=[{"src": "https://a/i.svg", "b": object()}]).to_wire()
