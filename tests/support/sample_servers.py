"""Servers with all sample types, and with all members of definitions and content blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache, partial
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

TIMES: Final = (
    *("2026-07-28T10:00:00Z", "2026-07-28T10:00:00.123456789+02:00"),
    datetime(2026, 7, 28, 10, 0, 0, 5, tzinfo=_WEST),
)
ICONS: Final = (
    *({"src": source} for source in ("https://a.example/i.png", "data:image/png;base64,iVA=")),
    *({"src": "https://a.example/i.png", "sizes": sizes} for sizes in ([], ["48x48", "any"], ["large"])),
    *({"src": "https://a.example/i.png", "theme": theme} for theme in ("light", "dark")),
    *({"src": "https://a.example/i.png", "mimeType": mime_type} for mime_type in ("image/png", "")),
)
ANNOTATIONS: Final = (
    *({"audience": audience} for audience in ([], ["user"], ["assistant", "user", "user"])),
    *({"priority": priority} for priority in (0, 0.5, 1)),
    *({"lastModified": time} for time in TIMES),
)
TOOL_ANNOTATIONS: Final = (
    *({"title": title} for title in ("", "A title")),
    *({"readOnlyHint": hint} for hint in (True, False)),
    {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
)
METAS: Final[Sequence[Mapping[str, Any]]] = (
    {},
    {"a/b": {"c": [None, 1.5, "é"]}},
    {"": 0},
    {"io.modelcontextprotocol/related-task": 5},
)
TITLES: Final = ("", "A title", "a\nb")
SIZES: Final = (0, 2**53 - 1)

OF_EVERY_FEATURE: Final[Mapping[str, Sequence[Any]]] = {
    **dict.fromkeys(("title", "description"), TITLES),
    "icons": [[], *([icon] for icon in ICONS)],
    "meta": METAS,
}
OF_TOOLS: Final = {**OF_EVERY_FEATURE, "annotations": TOOL_ANNOTATIONS}
OF_TEMPLATES: Final = {
    **OF_EVERY_FEATURE,
    "annotations": ANNOTATIONS,
    "mime_type": ["text/plain", "text/plain; charset=utf-8"],
}
OF_RESOURCES: Final = {**OF_TEMPLATES, "size": SIZES}
OF_EVERY_BLOCK: Final = {"annotations": ANNOTATIONS, "meta": METAS}
OF_LINKS: Final = {**OF_RESOURCES, "uri": ["", "a b", "é"], "name": TITLES}
"""Member -> values that authors may give."""

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


def metadata_server() -> Server:
    """Return a server with a feature of each kind for each value of each member."""
    server = Server("metadata")
    kinds: tuple[tuple[Callable[..., Any], Mapping[str, Sequence[Any]]], ...] = (
        (lambda name, **given: server.tool(name=name, **given)(_nothing), OF_TOOLS),
        (lambda name, **given: server.prompt(name, **given)(_nothing), OF_EVERY_FEATURE),
        (lambda name, **given: server.resource(f"a://{name}", **given)(_nothing), OF_RESOURCES),
        (lambda name, **given: server.resource(f"b://{name}/{{x}}", **given)(_item), OF_TEMPLATES),
    )
    for declare, members in kinds:
        for member, values in members.items():
            for number, value in enumerate(values):
                declare(f"{member}-{number}", **{member: value})
    return server


def _nothing() -> str:
    return ""


def _item(x: str) -> str:
    return x


def block_server() -> Server:
    """Return a server whose tool and prompt return all blocks with a member, one with each of its values."""
    server = Server("blocks")

    @server.tool(name="blocks")
    def tool(member: str) -> list:  # type: ignore[type-arg]  # content blocks, not data
        return _blocks(member)

    @server.prompt("blocks")
    def prompt(member: str) -> list[PromptMessage]:
        return list(map(PromptMessage, _blocks(member)))

    @server.resource("blocks://meta")
    def resource() -> list[ResourceContents]:
        blob = ResourceContents(blob=b"\xff", uri=URI, mime_type="a/b")
        return [blob, *(ResourceContents("hi", meta=meta) for meta in METAS)]

    return server


def _blocks(member: str) -> list[Any]:
    return [make(**{member: value}) for value in OF_LINKS[member] for make in _makers(member)]


def _makers(member: str) -> Sequence[Callable[..., Any]]:
    link = partial(ResourceLink, uri=URI, name="a")
    if member not in OF_EVERY_BLOCK:
        return (link,)
    text, embedded = partial(Text, text="hi"), partial(EmbeddedResource, uri=URI, text="hi")
    media = (partial(kind, data=b"\x89P", mime_type="a/b") for kind in (Image, Audio))
    return (link, text, embedded, *media, partial(EmbeddedResource, uri=URI, blob=b"\x00", mime_type="a/b"))
