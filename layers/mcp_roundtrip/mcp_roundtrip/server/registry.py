"""The registry of a server's tools, prompts, resources and completions, with the decorators that fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.server.admission import Reference
from mcp_roundtrip.server.decorator_options import (
    ToolChoices,
    check_channels,
    check_completion,
    check_hook,
    check_name,
    check_scopes,
    feature_name,
    required_capabilities,
)
from mcp_roundtrip.server.options import ANSWER_TOOL, Fallback, TaskSupport, declared_members
from mcp_roundtrip.server.request_types import Feature
from mcp_roundtrip.server.tools import Tool

if TYPE_CHECKING:
    from mcp_roundtrip.server.hooks import Hook
    from mcp_roundtrip.server.prompts_and_resources import Prompt, PromptsAndResources, Resource

F = TypeVar("F", bound=Callable[..., Any])
H = TypeVar("H", bound="Hook")


class Registry:
    """Holds tools, prompts and resources in the order of their registration, which lists keep."""

    def __init__(self, name: str, channels: Sequence[Fallback], *, lenient_arguments: bool) -> None:
        self.channels = check_channels("Server", channels)
        self._default_only = tuple(each for each in self.channels if each == "default")
        self._name = name
        self._lenient_arguments = lenient_arguments
        self.tools: dict[str, Tool] = {}
        self.prompts: dict[str, Prompt] = {}
        self.resources: dict[str, Resource] = {}
        self.completers: dict[tuple[Reference, str], Callable[..., Any]] = {}
        self.hooks: list[Hook] = []

    @cached_property
    def prompts_and_resources(self) -> PromptsAndResources:
        from mcp_roundtrip.server.prompts_and_resources import PromptsAndResources  # few have any

        return PromptsAndResources(self.prompts, self.resources, self.completers)

    @property
    def features(self) -> list[Feature]:
        return [*self.tools.values(), *self.prompts.values(), *self.resources.values()]

    def check_definitions(self) -> None:
        """Build the definition of every tool, prompt and resource.

        `load_module`, `Player` and `make catalog` call it, so that mistakes show before deployment. Raises
        one DefinitionError with a line for each mistake: the feature, the parameter, and what to write
        instead. Warns (DefinitionWarning) at the line of a tool that works, but that models refuse.
        """
        from mcp_roundtrip.server.definition_lint import check_definitions  # a call needs none

        check_definitions(self.features)

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
        lenient_arguments: bool | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
        task: TaskSupport | None = None,
        channels: Sequence[Fallback] | None = None,
        ui: str | Path | None = None,
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
        lenient_arguments: bool | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
        task: TaskSupport | None = None,
        channels: Sequence[Fallback] | None = None,
        ui: str | Path | None = None,
    ) -> Any:
        """Register a function as a tool, and return the function unchanged.

        By default the name is the function's, the description is its docstring, and the schemas come from its
        signature. `server.tool("name")` sets the name. Raises DefinitionError.

        `requires`: client capabilities such as "sampling" or "elicitation.url"; a call that has neither them
        nor a channel in their place is refused with -32021 before the tool runs.
        `scopes`: a caller without all of them, or broader ones, gets HTTP 403.
        `task`: lets the tool call `ctx.run_as_task`. For a client that did not declare the tasks extension, a
        call is refused with -32021 ("required") or continues without a task ("optional").
        `input_schema`: replaces the schema from the signature; the function takes the arguments as one dict.
        `lenient_arguments`: reads JSON that models send as text where the schema refuses text, such as "5"
        for 5, and drops unknown arguments. By default the server's option.
        `channels`: how to ask the questions that the client cannot show, instead of the server's option.
        `ui`: an HTML document, or its file, in which clients with MCP Apps show the results and questions.
        """
        if isinstance(function, str):
            if name is not None:
                raise DefinitionError(f"tool {function!r} is named twice; remove name={name!r}")
            function, name = None, function
        texts = {"title": title, "description": description}
        extra = declared_members("tool", name, **texts, annotations=annotations, icons=icons, _meta=meta)
        is_lenient = self._lenient_arguments if lenient_arguments is None else lenient_arguments
        chosen = self.channels if channels is None else channels
        choices = ToolChoices(extra, input_schema, is_lenient, requires, scopes, task, chosen, ui)

        def register(function: F) -> F:
            own_name = feature_name("@server.tool", name, function)
            check_name("tool", own_name, {**self.tools, ANSWER_TOOL: None})
            self.tools[own_name] = choices.make_tool(self._name, own_name, function)
            return function

        return register if function is None else register(function)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
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
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        scopes: Sequence[str] = (),
    ) -> Any:
        """Register a function as a prompt. It returns text, content blocks or `PromptMessage`s.

        By default the name is the function's, the description is its docstring, and the arguments are its
        parameters, which are converted from text as their annotations say. `scopes` are required of callers,
        also for completions. Raises DefinitionError.
        """
        if name is not None and not isinstance(name, str):
            return self.prompt()(name)
        extra = declared_members(
            "prompt", name, title=title, description=description, icons=icons, _meta=meta
        )

        def register(function: F) -> F:
            own_name = feature_name("@server.prompt", name, function)
            check_name("prompt", own_name, self.prompts)
            self.prompts_and_resources.add_prompt(
                own_name,
                function,
                requires=required_capabilities(own_name, requires),
                scopes=check_scopes(own_name, scopes),
                channels=self._default_only,
                extra=extra,
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
        """Register a function as the resource of a URI, or as the resources of a URI template (RFC 6570).

        It takes the template's variables as parameters, and returns text, bytes, `ResourceContents` or a list
        of them, or any other value as JSON. `ttl_ms` and `cache_scope` are the caching hints of the result;
        one that requires `scopes` cannot be public. Raises DefinitionError.
        """
        if not isinstance(uri, str):
            raise DefinitionError("@server.resource takes a URI; write `@server.resource('docs://guide')`")
        size = None if "{" in uri else size  # a ResourceTemplate has none
        given = {"mimeType": mime_type, "title": title, "description": description, "size": size}
        extra = declared_members("resource", uri, **given, annotations=annotations, icons=icons, _meta=meta)

        def register(function: F) -> F:
            self.prompts_and_resources.add_resource(
                uri,
                function,
                label=feature_name("@server.resource(...)", name, function),
                requires=required_capabilities(uri, requires),
                scopes=check_scopes(uri, scopes),
                channels=self._default_only,
                extra=extra,
                mime_type=mime_type,
                ttl_ms=ttl_ms,
                cache_scope=cache_scope,
            )
            return function

        return register

    def completion(self, reference: str, argument: str, /) -> Callable[[F], F]:
        """Register a function that suggests values for an argument of a prompt or a variable of a template.

        `reference` is the prompt's name or the template. The function takes the text typed so far and, if it
        has a second parameter, the other arguments. It returns texts, best first, or a `Completion`. Raises
        DefinitionError.
        """

        def register(function: F) -> F:
            check_completion(function)
            kind = "resource" if reference in self.resources else "prompt"
            feature = self.resources.get(reference) or self.prompts.get(reference)
            names = () if feature is None else feature.parameters.names
            if argument not in names:
                remedy = (
                    f"use one of {', '.join(names)}" if names else "pass a prompt's name or a URI template"
                )
                raise DefinitionError(
                    f"completion of {reference!r}, {argument!r}: no prompt or resource above the completion "
                    f"has such an argument; {remedy}"
                )
            if ((kind, reference), argument) in self.completers:
                raise DefinitionError(
                    f"completion of {reference!r}, {argument!r} is registered twice; remove one of them"
                )
            self.completers[(kind, reference), argument] = function
            return function

        return register

    def around(self, hook: H, /) -> H:
        """Register a function that runs around every pass of every tool, prompt and resource.

        It takes a `Call` and yields once; the pass runs at the `yield`. Hooks run in the order of their
        registration, the first outermost. An exception before the `yield` refuses the call. Raises
        DefinitionError.
        """
        name = check_hook(hook)
        if hook in self.hooks:
            raise DefinitionError(f"@server.around: {name} is registered twice; remove one of them")
        self.hooks.append(hook)
        return hook
