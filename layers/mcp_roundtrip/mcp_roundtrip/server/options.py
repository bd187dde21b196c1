"""The options of a server, as the keywords of `Server` and `FrontDoor` set them, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from mcp_roundtrip.auth.scope_hierarchy import ScopeHierarchy, validate_scopes
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.protocol.strict_json import compact_json

PAGE_SIZE: Final = 1_000
"""Default number of items in one page of a list."""

MAX_SERVER_INFO: Final = 2_000
"""Bytes of JSON that name, version and title may take. Every response carries them, and the client context of
a forwarded call, for which Lambda accepts 3,583 characters of Base64."""

MAX_DESCRIPTION: Final = 100
"""Characters of a description (SEP-2127, and the MCP registry)."""

ANSWER_TOOL: Final = "answer_questions"
"""The tool through which views answer questions (see `tools`). No other tool can have its name."""

QUESTIONS_URI: Final = "ui://mcp-roundtrip/questions"
"""The view that shows the questions of any tool."""

META_QUESTIONS: Final = "mcp-roundtrip/questions"
"""The member of a result's `_meta` that the view reads. docs/guides/views.md describes its content."""

META_PARKED_CALL: Final = "mcp-roundtrip/parkedCall"
"""The member of a result's `_meta` that tells programs that the call is not finished. It holds the `status`,
"input_required" or "working" as of a task, and the `url` at which the user answers, if there is one."""

INPUT_RESPONSES: Final = "input_responses"
"""The argument in which a model passes on the answers of the user (`question_presenters`)."""

Fallback = Literal["app", "page", "model", "default"]
"""For questions that the client cannot show: a form in an MCP App, or on a page; the model; the default."""

FALLBACKS: Final[tuple[Fallback, ...]] = get_args(Fallback)

DEFAULT_CHANNELS: Final[tuple[Fallback, ...]] = ("app", "page", "default")
"""The fallbacks of a server that chooses none."""

TaskSupport = Literal["optional", "required"]
"""Whether a call may become a task, or the client has to support tasks."""

CONTINUATION_CODE: Final = "continuation_code"
"""The argument in which a model passes on the code of the call that it continues (`parked_carrier`)."""

LegacyTasks = Literal["sep-2322"]
"""The dialect of tasks that clients of 2025-11-25 may use."""


class ServerOptions(Struct, frozen=True):
    """The options that handlers depend on (see `Server`). Raises DefinitionError.

    `server_info`: the Implementation object in every result.
    `branding`: its members `icons` and `websiteUrl`, which would make every result longer.
    `hooks`: the server appends to the list.
    """

    server_info: Mapping[str, Any]
    instructions: str | None = None
    namespaced_requests: bool = False
    page_size: int = PAGE_SIZE
    list_ttl_ms: int = LIST_TTL_MS
    hierarchy: ScopeHierarchy = ScopeHierarchy()
    hide_unauthorized: bool = False
    description: str | None = None
    hooks: Sequence[Callable[[Any], Any]] = ()
    branding: Mapping[str, Any] = {}
    legacy_clients: bool = True
    legacy_tasks: LegacyTasks | None = None
    initial_scopes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.legacy_tasks is not None and not self.legacy_clients:
            raise DefinitionError("legacy_tasks= is set with legacy_clients=False; remove one of them")
        if self.legacy_tasks not in (None, "sep-2322"):
            raise DefinitionError(
                f'legacy_tasks={self.legacy_tasks!r} does not exist; use "sep-2322" or None'
            )
        if self.initial_scopes is not None:
            force_setattr(self, "initial_scopes", validate_scopes(self.initial_scopes))
        texts = {"instructions": self.instructions, "description": self.description}
        _check_texts({name: text for name, text in texts.items() if text is not None})
        for name, least in (("page_size", 1), ("list_ttl_ms", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise DefinitionError(
                    f"{name}={value!r:.100} is not possible; use a whole number from {least}"
                )
        if self.description is not None and not 0 < len(self.description) <= MAX_DESCRIPTION:
            raise DefinitionError(
                f"description= has {len(self.description)} characters; use 1 to {MAX_DESCRIPTION}, "
                "the limit of Server Cards"
            )

    @property
    def implementation(self) -> Mapping[str, Any]:
        """The whole Implementation object, which clients get when they connect."""
        return {**self.server_info, **self.branding}

    def first_scopes(self, required: Iterable[str]) -> Sequence[str]:
        """Return the scopes that clients should request first, if features require these."""
        return self.hierarchy.narrowest(required) if self.initial_scopes is None else self.initial_scopes


def make_server_info(name: str, version: str, title: str | None) -> dict[str, Any]:
    """Build the Implementation object of a server. Raises DefinitionError for values that are not allowed."""
    info = {"name": name, "version": version} | ({} if title is None else {"title": title})
    _check_texts(info)
    if not name.strip():
        raise DefinitionError("the server has no name; use the one that clients show")
    if len(compact_json(info)) > MAX_SERVER_INFO:
        raise DefinitionError(
            f"name, version and title of the server have more than {MAX_SERVER_INFO} bytes of JSON; "
            "use shorter ones"
        )
    return info


def _check_texts(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            raise DefinitionError(f"{name}={value!r:.100} of the server must be str")


def declared_members(kind: str, name: str | None, /, **members: Any) -> dict[str, Any]:
    """Return the given members of a definition, or of a server, as JSON. Raises DefinitionError."""
    given = {member: value for member, value in members.items() if value is not None}
    if given:
        from mcp_roundtrip.content.member_checks import definition_members  # most features declare none

        return definition_members(kind, name, given)
    return given
