"""Lists of tools, prompts and resources, in pages with stateless cursors (server/utilities/pagination).

A cursor holds a position and a digest of the names in the list. A client that forges one gains nothing: only
cursors that this list issues are accepted, and a caller who may read the list may read every page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.canonical import compact_json, digest
from mcp_roundtrip.server.model import Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions


class Listable(Protocol):
    """An item of a list."""

    @property
    def scopes(self) -> tuple[str, ...]: ...
    def definition(self) -> Mapping[str, Any]: ...


class FeatureList(Struct):
    """The handler of a list method. `items` are by name, in the order of the list.

    `member`: the member of the result that holds the list, such as "tools".
    `is_constant`: whether the items stay the same until the next deployment, so that the JSON of a page is
    written once. A list that depends on the caller's scopes is written every time.
    `is_private`: whether the list depends on what the client declared.
    """

    options: ServerOptions
    member: str
    items: Mapping[str, Listable]
    is_constant: bool = False
    is_private: bool = False
    _pages: dict[tuple[str, str], Reply] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def __call__(self, context: RequestContext) -> Reply:
        """Return a page of the list. Raises ProtocolError -32602 for an unknown cursor."""
        if not self.is_constant or context.hides_unauthorized(self.options):
            return Reply(self.page(context))
        key = context.request.meta.protocol_version, compact_json(context.params.get("cursor"))
        if key not in self._pages:
            self._pages[key] = Reply(results.PreSerialized(self.page(context)))
        return self._pages[key]

    def page(self, context: RequestContext) -> dict[str, Any]:
        """Return the result. Raises ProtocolError -32602 for an unknown cursor."""
        options, names = self.options, list(self.items)
        hides = context.hides_unauthorized(options)
        if hides:
            names = [name for name in names if options.satisfies(context.scopes, self.items[name].scopes)]
        part, cursor = find_page(self.member, names, context.params.get("cursor"), options.page_size)
        members: dict[str, Any] = {self.member: list(self._definitions(names[part], context))}
        if cursor is not None:
            members["nextCursor"] = cursor
        result = results.cacheable(options.server_info, options.list_ttl_ms, **members)
        return {**result, "cacheScope": "private"} if hides or self.is_private else result

    def _definitions(self, names: Sequence[str], context: RequestContext) -> Iterator[Mapping[str, Any]]:
        """Yield every definition that can be built; log each of the others once."""
        for name in names:
            try:
                yield self.items[name].definition()
            except Exception as error:  # the annotations of a function may raise anything
                if name not in self._reported:
                    self._reported.add(name)
                    kind = "resource" if self.member == "resourceTemplates" else self.member.removesuffix("s")
                    context.ports.observer.record_failure("definition_failed", error, **{kind: name})


def find_page(member: str, names: Sequence[str], cursor: Any, size: int) -> tuple[slice, str | None]:
    """Return the part of a list that a request asks for, and the `nextCursor` if more follows.

    `member` distinguishes lists that hold the same names, `cursor` is None for the first page. Raises
    ProtocolError -32602 for a cursor that this list does not issue, ValueError for a `size` below 1.
    """
    if size < 1:
        raise ValueError("a page has room for at least one item")
    start = 0 if cursor is None else _position(member, names, cursor, size)
    end = start + size
    return slice(start, end), _cursor(member, names, end) if end < len(names) else None


def _position(member: str, names: Sequence[str], cursor: Any, size: int) -> int:
    if not isinstance(cursor, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: cursor must be a string")
    digits = cursor.partition(".")[0]
    position = int(digits) if digits.isdecimal() and len(digits) < 10 else 0
    # The whole cursor is compared, because int() accepts several spellings of one number.
    if position not in range(size, len(names), size) or cursor != _cursor(member, names, position):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: unknown cursor")
    return position


def _cursor(member: str, names: Sequence[str], position: int) -> str:
    return f"{position}.{digest('cursor', [member, *names], size=12)}"
