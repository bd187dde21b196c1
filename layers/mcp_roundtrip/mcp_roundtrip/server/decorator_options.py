"""Check what an author passes to a decorator: names, capabilities, scopes, channels, views, the function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from mcp_roundtrip.arguments.signature import Signature, check_callable, function_name
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.auth.scopes import validate_scopes
from mcp_roundtrip.engine.context_base import ContextBase
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.capabilities import CapabilityPath, declarable_path
from mcp_roundtrip.server.options import (
    CONTINUATION_CODE,
    DEFAULT_CHANNELS,
    FALLBACKS,
    INPUT_RESPONSES,
    Fallback,
    TaskSupport,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_roundtrip.arguments.string_arguments import StringArguments
    from mcp_roundtrip.server.model import Parameters
    from mcp_roundtrip.server.views import View

_CONTEXTS: Final = (ContextBase,)
_NAME: Final = r"[A-Za-z0-9_.-]{1,128}"


def declared_members(kind: str, name: str | None, /, **members: Any) -> dict[str, Any]:
    """Return the given members of a definition as JSON. Raises DefinitionError."""
    given = {member: value for member, value in members.items() if value is not None}
    if given:
        from mcp_roundtrip.content.member_checks import definition_members  # most features declare none

        return definition_members(kind, name, given)
    return given


def check_scopes(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes of a feature without duplicates. Raises DefinitionError."""
    if not given:
        return ()
    try:
        return validate_scopes(given)
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}") from None


def required_capabilities(name: str, given: Sequence[str]) -> tuple[CapabilityPath, ...]:
    """Return the client capabilities that a feature requires. Raises DefinitionError."""
    if isinstance(given, str):
        raise DefinitionError(f"{name}: requires is a list; write requires=[{given!r}]")
    return tuple(declarable_path(name, capability) for capability in given)


def check_channels(where: str, given: Sequence[Fallback]) -> tuple[Fallback, ...]:
    """Return the option `channels` of a server or a tool. Raises DefinitionError."""
    if given == DEFAULT_CHANNELS:
        return DEFAULT_CHANNELS

    is_sequence = isinstance(given, Sequence) and not isinstance(given, str)
    channels = tuple(given) if is_sequence else ()
    if not is_sequence or any(each not in FALLBACKS or channels.count(each) > 1 for each in channels):
        raise DefinitionError(
            f"{where}: channels={given!r:.100} is not possible; use a tuple of "
            f"{', '.join(map(repr, FALLBACKS))}, each at most once and in the order of your choice"
        )
    return channels


def tool_channels(name: str, given: Sequence[Fallback], parameters: Parameters) -> tuple[Fallback, ...]:
    """Return the option `channels` of a tool with these parameters. Raises DefinitionError."""
    channels = check_channels(name, given)
    if parameters.context_parameter is not None and CONTINUATION_CODE in parameters.names:
        raise DefinitionError(
            f"{name}: a tool that asks gets an argument {CONTINUATION_CODE!r} from the server; give the "
            "parameter another name"
        )
    if "model" in channels and INPUT_RESPONSES in parameters.names:
        raise DefinitionError(
            f'{name}: the channel "model" adds an argument {INPUT_RESPONSES!r}; give the parameter another '
            "name"
        )
    return channels


def own_view(server: str, tool: str, ui: str | Path, extra: Mapping[str, Any]) -> View:
    """Return the view that the option `ui` gives a tool. Raises DefinitionError."""
    from mcp_roundtrip.server.views import View  # few tools have one of their own

    if "ui" in extra.get("_meta", {}):
        raise DefinitionError(f"{tool}: ui= sets the member 'ui' of meta= as well; remove one of them")
    return View.from_option(server, tool, ui)


def check_task_support(name: str, task: TaskSupport | None) -> TaskSupport | None:
    """Return the option `task` of a tool. Raises DefinitionError."""
    if task is not None and task not in get_args(TaskSupport):
        raise DefinitionError(f'{name}: task={task!r} does not exist; use "optional" or "required"')
    return task


def feature_name(decorator: str, name: str | None, function: Any) -> str:
    """Return the given name or else the one of the function. Raises DefinitionError."""
    check_callable(decorator, function)
    found = function_name(function) if name is None else name
    if found == "<lambda>":
        raise DefinitionError(f"{decorator}: a lambda has no name; pass name=, or write a `def`")
    if not isinstance(found, str) or not found:
        raise DefinitionError(f"{decorator}: name={found!r:.100} is no name; write text, or leave it out")
    return found


def check_name(kind: str, name: Any, present: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a name that is not allowed or already registered."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise DefinitionError(
            f"{kind} name {name!r:.200} is not allowed; use 1 to 128 of the characters A-Z a-z 0-9 _ - ."
        )
    if name in present:
        raise DefinitionError(f"{kind} {name!r} is registered twice; give one of them another name=")


def string_arguments_of(function: Callable[..., Any]) -> StringArguments:
    """Return the parameters of a prompt or a resource. Raises DefinitionError."""
    from mcp_roundtrip.arguments.string_arguments import StringArguments  # tools do not need it

    parameters = StringArguments.from_function(function, _CONTEXTS)
    _check_context(parameters.signature)
    return parameters


def arguments_of(
    function: Callable[..., Any], input_schema: Mapping[str, Any] | None, *, is_lenient: bool
) -> Parameters:
    """Return the parameters of a tool. Raises DefinitionError."""
    if input_schema is None:
        typed = Arguments.from_function(function, _CONTEXTS)
        _check_context(typed.signature)
        return replace(typed, is_lenient=is_lenient)
    from mcp_roundtrip.arguments.raw_arguments import RawArguments  # few tools have a schema of their own

    raw = RawArguments.from_function(function, _CONTEXTS, input_schema)
    _check_context(raw.signature)
    return replace(raw, is_lenient=is_lenient)


def _check_context(signature: Signature) -> None:
    context_type = signature.context_type
    if context_type is None:
        return
    from mcp_roundtrip.engine.context import Context  # the author's module has imported it

    if issubclass(context_type, Context) is signature.is_async:
        expected = "AsyncContext" if signature.is_async else "Context"
        instead = f"write `{signature.context_parameter}: {expected}`"
        raise DefinitionError(
            f"{signature.name} is an async function and takes an AsyncContext; {instead}"
            if signature.is_async
            else f"{signature.name} is not async and takes a Context; {instead}, or `async def`"
        )
