"""What a server offers: tools, as their authors declare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar, overload

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.context import Context
from mcp_roundtrip.errors import DefinitionError, ToolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS, Path, path
from mcp_roundtrip.schema.output import MISSING, Output
from mcp_roundtrip.schema.signature import Arguments

F = TypeVar("F", bound=Callable[..., Any])

TaskSupport = Literal["optional", "required"]
"""Whether a call may become a task, or has to be able to."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Parameters(Protocol):
    """How a tool takes its arguments: `schema.signature.Arguments` or `schema.raw.RawArguments`."""

    @property
    def context_parameter(self) -> str | None: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def description(self) -> str: ...
    def json_schema(self) -> Mapping[str, Any]: ...
    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]: ...


class Feature(Protocol):
    """What a client can call: a tool, a prompt or a resource.

    `kind` says which, `requires` are the client capabilities without which a call is refused at once.
    """

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def requires(self) -> tuple[Path, ...]: ...
    @property
    def task(self) -> TaskSupport | None: ...

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """The result that a returned value is. Raises UsageError for a value that is none."""

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any]:
        """The result that says what went wrong. Raises ProtocolError where there is no such result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool: a `Feature`."""

    name: str
    function: Callable[..., Any]
    parameters: Parameters
    output: Output
    requires: tuple[Path, ...] = ()
    task: TaskSupport | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "tool"

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """CallToolResult."""
        content, structured = self.output.dump(value)
        members = {} if structured is MISSING else {"structuredContent": structured}
        return results.tool_result(server_info, content, members)

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any]:
        """A CallToolResult for the model."""
        return results.tool_error(server_info, str(error))

    def definition(self) -> dict[str, Any]:
        """The Tool object of `tools/list`."""
        members: dict[str, Any] = {"name": self.name}
        if self.parameters.description:
            members["description"] = self.parameters.description
        members |= {"inputSchema": self.parameters.json_schema(), **self.extra}
        output_schema = self.output.json_schema()
        if output_schema is not None:
            members["outputSchema"] = output_schema
        return members


class Registry:
    """Collects tools in the order of their declaration, which is the order of `tools/list`."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}

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
        task: TaskSupport | None = None,
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
        task: TaskSupport | None = None,
    ) -> Any:
        """Register a function as a tool; the function itself is returned unchanged.

        The name defaults to the function's, the description to its docstring, the schemas to its signature.
        `requires` lists client capabilities ("sampling", "elicitation.url") that every call needs; a call
        without them is refused with -32021 before the tool runs. `task` lets the tool call `ctx.run_as_task`:
        with "required", a client that did not declare the tasks extension gets -32021 at once, with
        "optional" the call goes on without becoming a task. `input_schema` replaces the schema of the
        signature: the function then takes the arguments as one dict. Raises DefinitionError.
        """
        extra = {
            "title": title,
            "description": description,
            "annotations": annotations,
            "icons": icons,
            "_meta": meta,
        }

        def register(function: F) -> F:
            self._add(
                Tool(
                    name or function.__name__,
                    function,
                    _parameters(function, input_schema),
                    Output.of(function),
                    tuple(path(capability) for capability in requires)
                    + ((TASKS,) if task == "required" else ()),
                    task,
                    {member: value for member, value in extra.items() if value is not None},
                )
            )
            return function

        return register if function is None else register(function)

    def _add(self, tool: Tool) -> None:
        if not _NAME.fullmatch(tool.name):
            raise DefinitionError(f"tool name {tool.name!r}: use 1 to 128 of A-Z a-z 0-9 _ - .")
        if tool.name in self.tools:
            raise DefinitionError(f"tool {tool.name!r} is registered twice")
        self.tools[tool.name] = tool


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
