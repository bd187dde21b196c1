"""What a server offers: tools, prompts and resources, as their authors declare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args, overload

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.context import Context
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.capabilities import TASKS, path
from mcp_roundtrip.schema.output import Output
from mcp_roundtrip.schema.signature import Arguments
from mcp_roundtrip.server.tools import LegacyQuestions, TaskSupport, Tool

if TYPE_CHECKING:
    from mcp_roundtrip.schema.texts import Texts
    from mcp_roundtrip.server.completions import Completer, Reference
    from mcp_roundtrip.server.feature import Parameters
    from mcp_roundtrip.server.prompts import Prompt
    from mcp_roundtrip.server.resources import Resource

F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Registry:
    """Collects tools, prompts and resources in the order of their declaration, which is that of the lists.

    `legacy_questions` is the choice for tools that make none. Raises DefinitionError for one there is not.
    """

    def __init__(self, legacy_questions: LegacyQuestions = "error") -> None:
        self.legacy_questions = _known(legacy_questions)
        self.tools: dict[str, Tool] = {}
        self.prompts: dict[str, Prompt] = {}
        self.resources: dict[str, Resource] = {}
        self.completers: dict[tuple[Reference, str], Completer] = {}

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
        task: TaskSupport | None = None,
        legacy_questions: LegacyQuestions | None = None,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
        task: TaskSupport | None = None,
        legacy_questions: LegacyQuestions | None = None,
    ) -> Any:
        """Register a function as a tool; the function itself is returned unchanged.

        The name defaults to the function's, the description to its docstring, the schemas to its signature.
        `requires` lists client capabilities ("sampling", "elicitation.url") that every call needs; a call
        without them is refused with -32021 before the tool runs; without all of the `scopes`, or broader
        ones, with HTTP 403. `task` lets the tool call `ctx.run_as_task`:
        with "required", a client that did not declare the tasks extension gets -32021 at once, with
        "optional" the call goes on without becoming a task. `input_schema` replaces the schema of the
        signature: the function then takes the arguments as one dict. `legacy_questions` says what becomes of
        questions to clients before 2026-07-28, instead of what the server says. Raises DefinitionError.
        """
        texts = {"title": title, "description": description}
        extra = _declared("tool", name, **texts, annotations=annotations, icons=icons, _meta=meta)

        def register(function: F) -> F:
            choice = self.legacy_questions if legacy_questions is None else _known(legacy_questions)
            if choice == "model":
                from mcp_roundtrip.server.input_responses import refuse_own  # few tools choose it

                refuse_own(function, input_schema)
            self._add(
                Tool(
                    name or function.__name__,
                    function,
                    _parameters(function, input_schema),
                    Output.of(function),
                    tuple(path(capability) for capability in requires)
                    + ((TASKS,) if task == "required" else ()),
                    task,
                    extra,
                    choice,
                    _scopes(scopes),
                )
            )
            return function

        return register if function is None else register(function)

    def _add(self, tool: Tool) -> None:
        _check_name("tool", tool.name, self.tools)
        self.tools[tool.name] = tool

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
    ) -> Callable[[F], F]: ...
    def prompt(
        self,
        name: Any = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
    ) -> Any:
        """Register a function as a prompt, which it returns as text, content blocks or `PromptMessage`s.

        The name defaults to the function's, the description to its docstring, the arguments to its
        parameters: they arrive as text, and are what their annotations say. `scopes` are what its callers,
        and those who ask for completions, have to have been granted. Raises DefinitionError.
        """
        if callable(name):
            return self.prompt()(name)
        extra = _declared("prompt", name, title=title, description=description, icons=icons, _meta=meta)

        def register(function: F) -> F:
            from mcp_roundtrip.server.prompts import Prompt  # servers without prompts do without it

            prompt = Prompt(
                name or function.__name__,
                function,
                _texts(function),
                tuple(map(path, requires)),
                extra,
                _scopes(scopes),
            )
            _check_name("prompt", prompt.name, self.prompts)
            self.prompts[prompt.name] = prompt
            return function

        return register

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
        ttl_ms: int = 0,
        cache_scope: Literal["public", "private"] = "private",
    ) -> Callable[[F], F]:
        """Register a function as the resource of a URI, or as those of a URI template (RFC 6570).

        It takes the template's variables as parameters, and returns text, bytes, `ResourceContents` or a
        list of them, or any other value as JSON. `ttl_ms` and `cache_scope` say how long a client may keep
        what it has read, and whether others may share it; what needs `scopes` nobody may. Raises
        DefinitionError.
        """
        if not isinstance(uri, str):
            raise DefinitionError("resource takes a URI: @server.resource('scheme://...')")
        given = {"title": title, "description": description, "mimeType": mime_type, "size": size}
        extra = _declared("resource", uri, **given, annotations=annotations, icons=icons, _meta=meta)

        def register(function: F) -> F:
            from mcp_roundtrip.protocol.uri_template import UriTemplate
            from mcp_roundtrip.server.resources import Resource  # servers without resources do without it

            resource = Resource(
                UriTemplate.parse(uri),
                name or function.__name__,
                function,
                _texts(function),
                tuple(map(path, requires)),
                mime_type,
                ttl_ms,
                cache_scope,
                extra,
                scopes=_scopes(scopes),
            )
            if uri in self.resources:
                raise DefinitionError(f"resource {uri!r} is registered twice")
            self.resources[uri] = resource
            return function

        return register

    def completion(self, reference: str, argument: str, /) -> Callable[[F], F]:
        """Register a function that suggests values for an argument of a prompt or a variable of a template.

        `reference` is the prompt's name or the template. The function takes what has been typed and, if it
        has a second parameter, the other arguments so far; it returns texts, best first, or a `Completion`.
        Raises DefinitionError.
        """

        def register(function: F) -> F:
            from mcp_roundtrip.server.completions import Completer  # servers without do without it

            kind = "resource" if reference in self.resources else "prompt"
            feature = self.resources.get(reference) or self.prompts.get(reference)
            if feature is None or argument not in feature.parameters.names:
                raise DefinitionError(
                    f"completion of {reference!r}, {argument!r}: register it after a prompt or a resource "
                    "with that argument"
                )
            if ((kind, reference), argument) in self.completers:
                raise DefinitionError(f"completion of {reference!r}, {argument!r} is registered twice")
            self.completers[(kind, reference), argument] = Completer.of(function)
            return function

        return register


def _declared(kind: str, name: str | None, /, **members: Any) -> dict[str, Any]:
    given = {member: value for member, value in members.items() if value is not None}
    if given:
        from mcp_roundtrip.schema import declared  # many declare nothing but a function

        return declared.members(kind, name, given)
    return given


def _scopes(given: Sequence[str]) -> tuple[str, ...]:
    if not given:
        return ()
    from mcp_roundtrip.auth.scopes import scope_tokens  # servers without scopes do without it

    return scope_tokens(given)


def _known(choice: LegacyQuestions) -> LegacyQuestions:
    if choice not in get_args(LegacyQuestions):
        raise DefinitionError(f'legacy_questions={choice!r}: it is "error", "default" or "model"')
    return choice


def _check_name(kind: str, name: str, present: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(name):
        raise DefinitionError(f"{kind} name {name!r}: use 1 to 128 of A-Z a-z 0-9 _ - .")
    if name in present:
        raise DefinitionError(f"{kind} {name!r} is registered twice")


def _texts(function: Callable[..., Any]) -> Texts:
    from mcp_roundtrip.schema.texts import Texts  # tools have arguments of every kind

    parameters = Texts.of(function, (Context, AsyncContext))
    if parameters.context_parameter is not None:
        _check_context(function, AsyncContext if parameters.is_async else Context)
    return parameters


def _parameters(function: Callable[..., Any], input_schema: Mapping[str, Any] | None) -> Parameters:
    contexts = (Context, AsyncContext)
    if input_schema is None:
        parameters: Parameters = Arguments.of(function, contexts)
    else:
        from mcp_roundtrip.schema.raw import RawArguments  # for the few tools that bring a schema

        parameters = RawArguments.of(function, contexts, input_schema)
    if parameters.context_parameter is not None:
        _check_context(function, AsyncContext if parameters.is_async else Context)
    return parameters


def _check_context(function: Callable[..., Any], expected: type) -> None:
    if Arguments.of(function, (expected,)).context_parameter is None:
        raise DefinitionError(f"{function.__name__}: this kind of function takes {expected.__name__}")
