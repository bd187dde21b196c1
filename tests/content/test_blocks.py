"""Content blocks on the wire, validated with the official models."""

import math
from datetime import UTC, date, datetime
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
    resource_contents,
)
from mcp_roundtrip.errors import UsageError

A = {"uri": "file:///a", "name": "a"}
META = {"a/b": {"c": None}}
ICON = {"src": "https://a/i.svg", "theme": "dark"}
PRIORITY = {"audience": ["user"], "priority": 0.5}

BLOCKS = [
    (Text("hi", annotations=PRIORITY), {"type": "text", "text": "hi", "annotations": PRIORITY}),
    (Image(b"\xff\x00", "image/png"), {"type": "image", "data": "/wA=", "mimeType": "image/png"}),
    (ResourceLink(**A, size=0), {"type": "resource_link", **A, "size": 0}),
    (
        ResourceLink(
            *A.values(), "An a", "text/plain", title="A", icons=[MappingProxyType(ICON)], meta={"a/b": [1]}
        ),
        {
            "type": "resource_link",
            **A,
            "title": "A",
            "description": "An a",
            "mimeType": "text/plain",
            "icons": [ICON],
            "_meta": {"a/b": [1]},
        },
    ),
    (
        EmbeddedResource("file:///a", text=""),
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": ""}},
    ),
    (
        EmbeddedResource("file:///a", blob=b""),
        {
            "type": "resource",
            "resource": {"uri": "file:///a", "mimeType": "application/octet-stream", "blob": ""},
        },
    ),
    (
        EmbeddedResource("file:///a", blob=b"\x00", mime_type="application/x"),
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/x", "blob": "AA=="}},
    ),
    *(
        (kind(*given, meta=META), {**kind(*given).to_wire(), "_meta": META})
        for kind, given in (
            (Text, ("hi",)),
            (Image, (b"", "image/png")),
            (Audio, (b"", "audio/wav")),
            (EmbeddedResource, ("a:b", "c")),
        )
    ),
]


@pytest.mark.parametrize(("block", "wire"), BLOCKS)
def test_a_block_has_the_wire_form_of_the_specification_which_the_official_models_accept(block, wire):
    assert block.to_wire() == wire
    read = TypeAdapter(ContentBlock).validate_python(wire)
    assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == wire


@pytest.mark.parametrize("contents", [{}, {"text": "a", "blob": b"a"}])
def test_a_resource_has_either_text_or_bytes(contents):
    with pytest.raises(UsageError):
        EmbeddedResource("file:///a", **contents)
    with pytest.raises(UsageError):
        ResourceContents(**contents)


@pytest.mark.parametrize(
    ("block", "members", "wrong"),
    [
        (Text, {"text": 5}, "text"),
        (Text, {"text": "a", "annotations": []}, "annotations"),
        (Image, {"data": "aGk=", "mime_type": "image/png"}, "data"),
        (Image, {"data": b"", "mime_type": "png"}, "mime_type"),
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
        *(
            (kind, {"uri": uri, **others}, "uri")
            for kind, others in (
                (ResourceLink, {"name": "a"}),
                (EmbeddedResource, {"text": "a"}),
                (ResourceContents, {"text": "a"}),
            )
            for uri in ("", "guide", "/guide", "1:x", "docs:", "a://b c", "a://b\n", 'a://"', "a://%g0")
        ),
        (EmbeddedResource, {"uri": "a:b", "text": 1}, "text"),
        (EmbeddedResource, {"uri": "a:b", "blob": "a"}, "blob"),
        (ResourceContents, {"text": "a", "uri": 1}, "uri"),
    ],
)
def test_a_member_of_another_type_is_refused_by_name(block, members, wrong):
    with pytest.raises(UsageError, match=rf"^{block.__name__}\.{wrong}(\[0\])?(:| must be) "):
        block(**members)


@pytest.mark.parametrize(
    ("make", "member"),
    [
        (lambda half: Text(half), "Text.text"),
        (lambda half: Image(b"", half), "Image.mime_type"),
        (lambda half: ResourceLink("a:b" + half, "a"), "ResourceLink.uri"),
    ],
)
@pytest.mark.parametrize("half", ["\udc80", "a\ud83d"])
def test_text_with_a_lone_surrogate_is_refused_by_name(make, member, half):
    with pytest.raises(UsageError, match=f"^{member} .* surrogate"):
        make(half)


WITH_ANNOTATIONS = [
    lambda annotations: Text("a", annotations),
    lambda annotations: Image(b"", "image/png", annotations),
    lambda annotations: Audio(b"", "audio/wav", annotations),
    lambda annotations: ResourceLink("file:///a", "a", annotations=annotations),
    lambda annotations: EmbeddedResource("file:///a", "a", annotations=annotations),
]


@pytest.mark.parametrize("annotated", WITH_ANNOTATIONS)
def test_annotations_are_written_as_json(annotated):
    changed = type("Moment", (datetime,), {})(2026, 7, 28, tzinfo=UTC)  # as in pandas and freezegun
    block = annotated(MappingProxyType({"lastModified": changed, "audience": ("user",)}))
    assert block.to_wire()["annotations"] == {"lastModified": "2026-07-28T00:00:00Z", "audience": ["user"]}


@pytest.mark.parametrize("annotated", WITH_ANNOTATIONS)
@pytest.mark.parametrize("wrong", [object(), math.nan, b"\xff", "\udc80"])
def test_annotations_without_json_form_are_refused_by_place(annotated, wrong):
    block = annotated({"a": [1, wrong]})
    with pytest.raises(UsageError, match=rf"{type(block).__name__}\.annotations\.a\[1\]"):
        block.to_wire()


def test_meta_and_icons_without_json_form_are_refused_by_place():
    with pytest.raises(UsageError, match=r"at Audio\.meta\.a: object"):
        Audio(b"", "audio/wav", meta={"a": object()}).to_wire()
    with pytest.raises(UsageError, match=r"at ResourceLink\.icons\[0\]\.b"):
        ResourceLink("a:b", "a", icons=[{"src": "https://a/i.svg", "b": object()}]).to_wire()


URI = "a://b"


def contents_of(value):
    return resource_contents("r", value, URI, None)


def test_contents_keep_the_media_type_and_the_uri_in_ascii_that_their_function_gave_them():
    given = ResourceContents(text="a", uri="file:///é%C3", mime_type="text/css")
    own = {"uri": "file:///%C3%A9%C3", "mimeType": "text/css", "text": "a"}
    assert resource_contents("r", given, URI, "text/plain") == [own]


def test_contents_are_written_as_json():
    held = ResourceContents(text="a", meta=MappingProxyType({"a/on": date(2026, 7, 28)}))
    assert contents_of(held) == [{"uri": URI, "text": "a", "_meta": {"a/on": "2026-07-28"}}]
    [data] = contents_of({"a": ["Zürich", None]})
    assert data == {"uri": URI, "mimeType": "application/json", "text": '{"a": ["Zürich", null]}'}
    plain = (("a", "text", "a"), (b"a", "blob", "YQ=="), (Text("a"), "text", "a"), ([], "text", "[]"))
    for value, name, data in plain:
        assert resource_contents("r", value, URI, "x/y") == [{"uri": URI, "mimeType": "x/y", name: data}]


@pytest.mark.parametrize("wrong", [object(), math.nan, b"\xff"])
def test_contents_without_json_form_are_refused_by_place(wrong):
    with pytest.raises(UsageError, match=r"^r .*result\.a\[1\]"):
        contents_of({"a": [None, wrong]})
    with pytest.raises(UsageError, match=r"ResourceContents\.meta\.a\.b"):
        contents_of(ResourceContents(text="a", meta={"a": {"b": wrong}}))
    with pytest.raises(UsageError):
        contents_of([ResourceContents(text="a"), "b"])


def test_a_content_block_becomes_the_contents():
    for block in (Image, Audio):
        [binary] = contents_of(block(b"\x89P", "x/y"))
        assert binary == {"uri": URI, "blob": "iVA=", "mimeType": "x/y"}
    [text] = contents_of(Text("a"))
    assert text == {"uri": URI, "text": "a", "mimeType": "text/plain"}
    with pytest.raises(UsageError, match="ResourceLink"):
        contents_of(ResourceLink("b://c", "c"))
