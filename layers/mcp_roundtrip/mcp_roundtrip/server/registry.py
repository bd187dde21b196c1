"""The registry of a server's tools, prompts, resources and completions, with the decorators that fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.schema.output import Output
from mcp_roundtrip.schema.signature import check_callable
from mcp_roundtrip.server.declarations import (
    arguments_of,
    check_name,
    declared_members,
    known_questions,
    known_task_support,
    name_of_feature,
    required,
    scopes_of,
    string_arguments_of,
)
from mcp_roundtrip.server.model import Feature, LegacyQuestions, TaskSupport
from mcp_roundtrip.server.tools import Tool

if TYPE_CHECKING:
    from mcp_roundtrip.server.admission import Reference
    from mcp_roundtrip.server.completions import Completer
    from mcp_roundtrip.server.prompts import Prompt
    from mcp_roundtrip.server.resources import Resource

F = TypeVar("F", bound=Callable[..., Any])


class Registry:
    """Collects tools, prompts and resources in the order of their declaration, which is that of the lists.

    `legacy_questions` is the choice for tools that make none. Raises DefinitionError for one there is not.
    """

    def __init__(self, legacy_questions: LegacyQuestions = "error") -> None:
        self.legacy_questions = known_questions("Server", legacy_questions)
        self.tools: dict[str, Tool] = {}
        self.prompts: dict[str, Prompt] = {}
        self.resources: dict[str, Resource] = {}
        self._spellings: dict[str, str] = {}
        self.completers: dict[tuple[Reference, str], Completer] = {}

    @property
    def _registered(self) -> list[Feature]:
        """All tools, prompts and resources."""
        return [*self.tools.values(), *self.prompts.values(), *self.resources.values()]

    def check_definitions(self) -> None:
        """Build the definition of every tool, prompt and resource, as the lists and calls will need them.

        Raises one DefinitionError that names each feature that has none, the parameter, and what to write.
        `load_module`, `Player` and the catalog's command call it, so that mistakes show before deployment.
        """
        problems: dict[str, None] = {}
        for feature in self._registered:
            try:
                feature.parameters.check()
                feature.definition()
            except DefinitionError as error:
                problems[str(error)] = None
        if problems:
            raise DefinitionError("\n".join(problems))

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        called: str | None = None,
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

        `server.tool("name")` names it; the name defaults to the function's, the description to its docstring,
        the schemas to its signature.
        `requires` lists client capabilities ("sampling", "elicitation.url") that every call needs; a call
        without them is refused with -32021 before the tool runs; without all of the `scopes`, or broader
        ones, with HTTP 403. `task` lets the tool call `ctx.run_as_task`:
        with "required", a client that did not declare the tasks extension gets -32021 at once, with
        "optional" the call goes on without becoming a task. `input_schema` replaces the schema of the
        signature: the function then takes the arguments as one dict. `legacy_questions` says what becomes of
        questions to clients before 2026-07-28, instead of what the server says. Raises DefinitionError.
        """
        if isinstance(function, str):
            if name is not None:
                raise DefinitionError(f"tool {function!r} is named twice; remove name={name!r}")
            function, name = None, function
        texts = {"title": title, "description": description}
        extra = declared_members("tool", name, **texts, annotations=annotations, icons=icons, _meta=meta)

        def register(function: F) -> F:
            own_name = name_of_feature("@server.tool", name, function)
            check_name("tool", own_name, self.tools)
            parameters = arguments_of(function, input_schema)
            choice = (
                self.legacy_questions
                if legacy_questions is None
                else known_questions(own_name, legacy_questions)
            )
            if choice == "model":
                from mcp_roundtrip.server.legacy.model_questions import (
                    reject_reserved_parameter,  # few tools choose it
                )

                reject_reserved_parameter(own_name, parameters)
            self.tools[own_name] = Tool(
                own_name,
                function,
                parameters,
                Output.of(function),
                required(own_name, requires) + ((TASKS,) if task == "required" else ()),
                known_task_support(own_name, task),
                extra,
                choice,
                scopes_of(own_name, scopes),
            )
            return function

        return register if function is None else register(function)

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
        if name is not None and not isinstance(name, str):
            return self.prompt()(name)
        extra = declared_members(
            "prompt", name, title=title, description=description, icons=icons, _meta=meta
        )

        def register(function: F) -> F:
            from mcp_roundtrip.server.prompts import Prompt  # servers without prompts do without it

            own_name = name_of_feature("@server.prompt", name, function)
            check_name("prompt", own_name, self.prompts)
            self.prompts[own_name] = Prompt(
                own_name,
                function,
                string_arguments_of(function),
                required(own_name, requires),
                extra,
                scopes_of(own_name, scopes),
            )
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
            raise DefinitionError("@server.resource takes a URI; write `@server.resource('docs://guide')`")
        given = {"title": title, "description": description, "mimeType": mime_type, "size": size}
        extra = declared_members("resource", uri, **given, annotations=annotations, icons=icons, _meta=meta)

        def register(function: F) -> F:
            from mcp_roundtrip.protocol.uri_template import UriTemplate, spelling_key
            from mcp_roundtrip.server.resources import Resource  # servers without resources do without it

            resource = Resource(
                UriTemplate.parse(uri),
                name_of_feature("@server.resource(...)", name, function),
                function,
                string_arguments_of(function),
                required(uri, requires),
                mime_type,
                ttl_ms,
                cache_scope,
                extra,
                scopes=scopes_of(uri, scopes),
            )
            registered = self._spellings.setdefault(spelling_key(uri), uri)
            if registered in self.resources:
                raise DefinitionError(
                    f"resource {uri!r} is registered twice, first as {registered!r}; "
                    "give one of them another URI"
                )
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

            check_callable("@server.completion(...)", function)
            kind = "resource" if reference in self.resources else "prompt"
            feature = self.resources.get(reference) or self.prompts.get(reference)
            if feature is None or argument not in feature.parameters.names:
                raise DefinitionError(
                    f"completion of {reference!r}, {argument!r}: no prompt or resource of that name has such "
                    "an argument; register the prompt or resource above the completion"
                )
            if ((kind, reference), argument) in self.completers:
                raise DefinitionError(
                    f"completion of {reference!r}, {argument!r} is registered twice; remove one of them"
                )
            self.completers[(kind, reference), argument] = Completer.of(function)
            return function

        return register
