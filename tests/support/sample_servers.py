"""Servers with all sample types, and with all members of definitions and content blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import (
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    Base64UrlBytes,
    ByteSize,
    Field,
    FileUrl,
    Json,
    JsonValue,
    NaiveDatetime,
    PostgresDsn,
    SecretStr,
)

from mcp_roundtrip import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
)
from support.type_samples import FORMS, ZOO

URI: Final = "a:b"

_WEST: Final = timezone(timedelta(hours=-3, minutes=-30))

ICONS: Final = (
    {"src": "data:image/png;base64,iVA=", "sizes": [], "mimeType": ""},
    {"src": "https://a.example/i.png", "sizes": ["48x48", "any"], "mimeType": "image/png", "theme": "light"},
    {"src": "https://a.example/i.png", "sizes": ["large"], "theme": "dark"},
)
ANNOTATIONS: Final = (
    {"audience": [], "priority": 0, "lastModified": "2026-07-28T10:00:00Z"},
    {
        "audience": ["assistant", "user", "user"],
        "priority": 0.5,
        "lastModified": "2026-07-28T10:00:00.123456789+02:00",
    },
    {"audience": ["user"], "priority": 1, "lastModified": datetime(2026, 7, 28, 10, 0, 0, 5, tzinfo=_WEST)},
)
HINTS: Final = (
    {"title": "", "readOnlyHint": True},
    {"title": "A title", "readOnlyHint": False},
    {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
)
MEMBERS: Final[Sequence[Mapping[str, Any]]] = (
    {"title": "", "description": "", "icons": [], "meta": {}},
    {"title": "A title", "description": "a\nb", "icons": ICONS[:2], "meta": {"a/b": {"c": [None, 1.5, "é"]}}},
    {"icons": ICONS[2:], "meta": {"": 0, "io.modelcontextprotocol/related-task": 5}},
)
"""Members that authors may give to each feature."""

_DAY: Final = datetime(2026, 7, 28, 10)
_SECONDS: Final = timezone(timedelta(seconds=30))
RESULTS: Final[Sequence[tuple[Any, Any]]] = (
    *((datetime, _DAY.replace(tzinfo=zone)) for zone in (None, UTC, _SECONDS)),
    *((datetime, each) for each in (_DAY.replace(microsecond=5), datetime(1, 1, 1))),
    *((AwareDatetime, _DAY.replace(tzinfo=zone, microsecond=5)) for zone in (UTC, _WEST)),
    *((kind, _DAY) for kind in (NaiveDatetime, dict[datetime, int] | datetime)),
    *((time, each) for each in (time(10), time(10, 0, 0, 5), time(10, tzinfo=UTC))),
    *((timedelta, timedelta(*each)) for each in ((0, 0.5), (400, 3601), (-1,), (0,), (365,), (0, 0, 1))),
    *((Decimal, Decimal(each)) for each in ("1.10", "1E+30", "-0", "NaN")),
    (Annotated[Decimal, Field(ge=0, le=5, decimal_places=2)], Decimal("1.25")),
    *((float, each) for each in (1e300, 5)),
    *((int, each) for each in (2**70, -(2**70))),
    *((bytes, each) for each in (b"hi", "é".encode())),
    *((kind, b"\xff\xfe") for kind in (Base64Bytes, Base64UrlBytes)),
    (UUID, UUID(int=5)),
    *((AnyUrl, AnyUrl(each)) for each in ("https://é.example/ä?x#y", "urn:a:b", "http://a/{x}")),
    *((FileUrl, FileUrl("file:///a b")), (PostgresDsn, PostgresDsn("postgres://u@h1,h2/d"))),
    *((kind, kind(each)) for kind, each in ((IPv4Address, "1.2.3.4"), (IPv6Address, "::ffff:1.2.3.4"))),
    *((kind, kind(each)) for kind, each in ((IPv4Network, "1.2.3.0/24"), (IPv6Network, "::/8"))),
    *((Path, Path("/a")), (re.Pattern, re.compile("^a$")), (complex, 1 + 2j), (SecretStr, SecretStr("a"))),
    *((Json, {"a": 1}), (ByteSize, ByteSize(5)), (Any, {"a": [1, None]}), (JsonValue, [True])),
    *((dict[int, int], {1: 1}), (dict[float, int], {1e300: 1}), (dict[bool, int], {True: 1})),
    *((dict[UUID, int], {UUID(int=1): 1}), (dict[Decimal, int], {Decimal("1.0"): 1})),
    *((dict[AnyUrl, int], {AnyUrl("a:b"): 1}), (dict[bytes, int], {b"a": 1})),
    *((dict[datetime, int], {_DAY: 1}), (dict[timedelta, int], {timedelta(1): 1})),
    (Annotated[str, Field(max_length=2)] | int, "\N{GRINNING FACE}" * 2),
    (dict[str, Annotated[str, Field(pattern=r"^\d+$")]], {"a": "12"}),
)
"""Return types and values that pydantic writes in a form of its own, or that lie at a limit."""

TYPES: Final = tuple(dict.fromkeys((*ZOO, *FORMS)))
"""The names of all sample types."""


@cache
def type_server(*samples: str) -> Server:
    """Return a server with up to three tools for each of these sample types.

    `value` returns its argument `x`, `member` an object with it, and `form` asks for it. The names end with a
    number, and the description is the name of the sample type.
    """
    server = Server("types")
    for sample in samples:
        suffix = f"-{TYPES.index(sample)}"
        tools: dict[str, Callable[..., Any]] = {}
        if sample in ZOO:
            kind: Any = ZOO[sample]
            tools["value"] = _annotated(lambda x: x, x=kind, **{"return": kind})
            tools["member"] = _annotated(lambda x: {"x": x}, x=kind, **{"return": dict[str, kind]})
        if sample in FORMS:
            tools["form"] = _asking(FORMS[sample])
        for name, tool in tools.items():
            server.tool(name=name + suffix, description=sample)(tool)
    return server


def _annotated(tool: Callable[..., Any], **kinds: Any) -> Callable[..., Any]:
    tool.__annotations__ = kinds
    return tool


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _asking(kind: Any) -> Callable[..., Any]:
    def tool(ctx: Context) -> str:
        return str(ctx.elicit("form", "Which?", kind))

    return tool


def result_server() -> Server:
    """Return a server with a tool for each sample result."""
    server = Server("results")
    for number, (kind, value) in enumerate(RESULTS):
        tool = _annotated(_giving(value), **{"return": kind})
        server.tool(name=f"result-{number}", description=repr(value))(tool)
    return server


def member_server() -> Server:
    """Return a server with features of each kind that have all members, and all blocks as results."""
    server, blocks = Server("members"), list[Any]()
    for number, size in enumerate((0, 2**53 - 1, 1)):
        members = MEMBERS[number]
        of_block = {"annotations": ANNOTATIONS[number], "meta": members["meta"]}
        of_data = {**members, **of_block, "mime_type": "text/plain; charset=utf-8"}
        contents: tuple[dict[str, Any], ...] = ({"text": "hi"}, {"blob": b"\x00"})
        server.tool(name=f"tool-{number}", **members, annotations=HINTS[number])(_nothing)
        server.prompt(f"prompt-{number}", **members)(_nothing)
        server.resource(f"a://{number}", **of_data, size=size)(_nothing)
        server.resource(f"b://{number}/{{x}}", **of_data)(_item)
        blocks += [
            ResourceLink(uri=f"a://é{number}", name=members.get("title", "a"), **of_data, size=size),
            Text("hi", **of_block),
            *(kind(data=b"\x89P", mime_type="a/b", **of_block) for kind in (Image, Audio)),
            *(EmbeddedResource(URI, **each, **of_block) for each in contents),
        ]

    @server.tool(name="blocks")
    def tool() -> list:  # type: ignore[type-arg]  # content blocks, not data
        return blocks

    @server.prompt("blocks")
    def prompt() -> list[PromptMessage]:
        return [*map(PromptMessage, blocks)]

    @server.resource("blocks://meta")
    def resource() -> list[ResourceContents]:
        blob = ResourceContents(blob=b"\xff", uri=URI, mime_type="a/b")
        return [blob, *(ResourceContents("hi", meta=members["meta"]) for members in MEMBERS)]

    return server


def _nothing() -> str:
    return ""


def _item(x: str) -> str:
    return x
