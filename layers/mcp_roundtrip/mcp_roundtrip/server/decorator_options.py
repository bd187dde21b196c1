"""Check what an author passes to a decorator: names, capabilities, scopes, channels, views, the function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.arguments.signature import (
    Signature,
    call_parameters,
    check_callable,
    function_name,
    unwrap_function,
)
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.auth.scope_hierarchy import validate_scopes
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import named_errors
from mcp_roundtrip.protocol.capabilities import TASKS, CapabilityPath, declarable_path
from mcp_roundtrip.server.options import CONTINUATION_CODE, FALLBACKS, INPUT_RESPONSES, Fallback, TaskSupport
from mcp_roundtrip.server.tools import Tool

_NAME: Final = r"[A-Za-z0-9_.-]{1,128}"
_VIEW_FILE: Final = 'pass a file beside the module as `ui=Path(__file__).with_name("view.html")`'

MAX_VIEW: Final = 5_000_000
"""Largest view in bytes of UTF-8. As JSON, it has to fit into a response of Lambda; bundled scripts do."""


class ToolChoices(Struct, frozen=True):
    """What an author chooses for a tool (see `Registry.tool`). `extra`: further members of its definition."""

    extra: Mapping[str, Any]
    input_schema: Mapping[str, Any] | None
    is_lenient: bool
    requires: Sequence[str]
    scopes: Sequence[str]
    task: TaskSupport | None
    channels: Sequence[Fallback]
    ui: str | Path | None

    def make_tool(self, server: str, name: str, function: Callable[..., Any]) -> Tool:
        """Return the tool; `server` is the name of the server. Raises DefinitionError."""
        parameters = _arguments_of(function, self.input_schema, is_lenient=self.is_lenient)
        channels = _tool_channels(name, self.channels, parameters)
        if self.task == "required" or _names_view(self.extra):
            # No view follows a task, and a view that the author names knows no questions.
            channels = tuple(channel for channel in channels if channel != "app")
        output, requires = Output.from_function(function), required_capabilities(name, self.requires)
        view = _own_view(name, self.ui, self.extra)
        if self.task not in (None, *get_args(TaskSupport)):
            raise DefinitionError(f'{name}: task={self.task!r} does not exist; use "optional" or "required"')
        return Tool(
            name,
            function,
            parameters,
            requires=requires + ((TASKS,) if self.task == "required" else ()),
            scopes=check_scopes(name, self.scopes),
            channels=channels,
            extra=self.extra,
            task=self.task,
            output=output,
            view_uri=None if view is None else f"ui://{_percent_encoded(server)}/{name}",
            view=view,
        )


def check_scopes(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes of a feature without duplicates. Raises DefinitionError."""
    if not given:
        return ()
    with named_errors(name):
        return validate_scopes(given)


def required_capabilities(name: str, given: Sequence[str]) -> tuple[CapabilityPath, ...]:
    """Return the client capabilities that a feature requires. Raises DefinitionError."""
    if isinstance(given, str):
        raise DefinitionError(f"{name}: requires is a list; write requires=[{given!r}]")
    return tuple(declarable_path(name, capability) for capability in given)


def check_channels(where: str, given: Sequence[Fallback]) -> tuple[Fallback, ...]:
    """Return the option `channels` of a server or a tool. Raises DefinitionError."""
    is_sequence = isinstance(given, Sequence) and not isinstance(given, str)
    channels = tuple(given) if is_sequence else ()
    if not is_sequence or any(each not in FALLBACKS or channels.count(each) > 1 for each in channels):
        raise DefinitionError(
            f"{where}: channels={given!r:.100} is not possible; use a tuple of "
            f"{', '.join(map(repr, FALLBACKS))}, each at most once and in the order of your choice"
        )
    return channels


def _tool_channels(name: str, given: Sequence[Fallback], parameters: Arguments) -> tuple[Fallback, ...]:
    """Return the option `channels` of a tool with these parameters. Raises DefinitionError."""
    channels = check_channels(name, given)
    if parameters.signature.context_parameter is not None and CONTINUATION_CODE in parameters.names:
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


def _own_view(tool: str, ui: object, extra: Mapping[str, Any]) -> str | None:
    """Return the document of the option `ui`: its text, or that of its file. Raises DefinitionError."""
    if ui is None:
        return None
    if _names_view(extra):
        raise DefinitionError(f"{tool}: ui= and meta= both name a view; remove one of them")
    text = ui
    if isinstance(ui, Path):
        try:
            text = ui.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DefinitionError(f"{tool}: the view cannot be read ({error}); {_VIEW_FILE}") from None
    if not isinstance(text, str):
        raise DefinitionError(
            f"{tool}: ui={ui!r:.100} is no view; use the text of an HTML document, or a Path"
        )
    if not text.lstrip("\ufeff \t\r\n").lower().startswith("<!doctype html"):
        raise DefinitionError(
            f"{tool}: the view is no HTML5 document; write <!doctype html> at its start, or {_VIEW_FILE}"
        )
    if len(text.encode("utf-8", "surrogatepass")) > MAX_VIEW:
        raise DefinitionError(f"{tool}: the view has more than {MAX_VIEW} bytes; use a smaller one")
    return text


def _names_view(extra: Mapping[str, Any]) -> bool:
    """Return whether an author names a view in `meta=`. Its member `ui` may have only the visibility."""
    ui = extra.get("_meta", {}).get("ui")
    return isinstance(ui, Mapping) and "resourceUri" in ui


def _percent_encoded(text: str) -> str:
    """Return what `urllib.parse.quote` does, whose import takes 2 ms of a cold start (RFC 3986 §2.1)."""
    octets = text.encode().decode("latin-1")
    return re.sub("[^A-Za-z0-9._~-]", lambda each: f"%{ord(each[0]):02X}", octets)


def feature_name(decorator: str, name: str | None, function: Any) -> str:
    """Return the given name, or that of the function. Raises DefinitionError."""
    check_callable(decorator, function)
    found = function_name(function) if name is None else name
    if found == "<lambda>":
        raise DefinitionError(f"{decorator}: a lambda has no name; pass name=, or write a `def`")
    if not isinstance(found, str) or not found:
        raise DefinitionError(f"{decorator}: name={found!r:.100} is no name; write text, or leave it out")
    return found


def check_name(kind: str, name: str, present: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a name that is not allowed or already registered."""
    if not re.fullmatch(_NAME, name):
        raise DefinitionError(
            f"{kind} name {name!r:.200} is not allowed; use 1 to 128 of the characters A-Z a-z 0-9 _ - ."
        )
    if name in present:
        raise DefinitionError(f"{kind} {name!r} is registered twice; give one of them another name=")


# -- functions ----------------------------------------------------------------------------------------------


def _arguments_of(
    function: Callable[..., Any], input_schema: Mapping[str, Any] | None, *, is_lenient: bool
) -> Arguments:
    """Return the parameters of a tool. Raises DefinitionError."""
    if input_schema is None:
        parameters = Arguments.from_function(function)
    else:
        from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments  # few tools have one

        parameters = OwnSchemaArguments.from_schema(function, input_schema)
    check_context(parameters.signature)
    return replace(parameters, is_lenient=is_lenient)


def check_context(signature: Signature) -> None:
    """Raise DefinitionError for a context of another type than the server passes."""
    if (context_type := signature.context_type) is None:
        return
    expected = "AsyncContext" if signature.is_async else "Context"
    own = {"mcp_roundtrip.engine.context": "Context", "mcp_roundtrip.engine.async_context": "AsyncContext"}
    given = own.get(context_type.__module__)  # None: a subclass, or their base class
    if given == expected:
        return
    instead = f"write `{signature.context_parameter}: {expected}`"
    if given is None:
        raise DefinitionError(f"{signature.name}: the server passes no {context_type.__name__}; {instead}")
    raise DefinitionError(
        f"{signature.name} is an async function and takes an AsyncContext; {instead}"
        if signature.is_async
        else f"{signature.name} is not async and takes a Context; {instead}, or `async def`, also in its "
        "decorators"
    )


def check_completion(function: Any) -> None:
    """Raise DefinitionError unless a completion takes one or two parameters, no context, and is not async."""
    check_callable("@server.completion(...)", function)
    name = function_name(function)
    if inspect.iscoroutinefunction(unwrap_function(function)):
        raise DefinitionError(f"{name}: a completion is not async; write `def`")
    try:
        takes_context = Signature.from_function(function).context_parameter is not None
    except DefinitionError:  # annotations may exist for type checkers only
        takes_context = False
    if takes_context:
        raise DefinitionError(f"{name}: a completion takes no context; remove the parameter")
    if len(call_parameters(function)) not in (1, 2):
        raise DefinitionError(
            f"{name}: a completion takes the text typed so far and, if it needs them, the "
            f"other arguments; write `def {name}(value: str, arguments: dict[str, str])`"
        )


def check_hook(hook: Any) -> str:
    """Return the name of a hook. Raises DefinitionError for a function that is none."""
    check_callable("@server.around", hook)
    name, target = function_name(hook), unwrap_function(hook)
    if not inspect.isroutine(target):
        target = type(target).__call__
    if not (inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)):
        raise DefinitionError(
            f"@server.around: {name} has no `yield`; write one where the tool runs, as in "
            f"`def {name}(call: Call) -> Iterator[None]: yield`, without @contextmanager"
        )
    required = [each for each in call_parameters(hook) if each.default is each.empty]
    if len(required) != 1 or required[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise DefinitionError(f"@server.around: {name} takes one argument; write `def {name}(call: Call)`")
    return name
