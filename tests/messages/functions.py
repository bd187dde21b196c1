from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mcp_types import PromptMessage, TextContent, TextResourceContents
from pydantic import AliasChoices, AliasPath, BaseModel, Field, ImportString

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Server, Text
from mcp_roundtrip.arguments.mcp_header import McpHeader
from messages.cases import mistake, mistakes

if TYPE_CHECKING:
    from collections import OrderedDict


class Connection:
    """No type that JSON has a form for."""


class Days(Enum):
    TEXT = "2026-07-28"
    DATE = date(2026, 7, 28)


class Point(BaseModel):
    x: int


class Undefined(BaseModel):
    other: "Elsewhere"  # noqa: F821, UP037 - the mistake


FASTMCP_CONTEXT = type("Context", (), {"__module__": "fastmcp.server.context"})
FASTMCP_IMAGE = type("Image", (), {"__module__": "fastmcp.utilities.types"})


class Service:
    def find(self, query: str) -> str:
        return query

    @classmethod
    def search(cls, query: str) -> str:
        return query


def tool(function: Callable[..., Any], **given: Any) -> None:
    server = Server("x")
    server.tool(**given)(function)
    server.check_definitions()


def refused(**given: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table that is no tool. Its message calls it "find"."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__.replace("_", " ")
        function.__name__ = "find"
        mistakes(__name__, DefinitionError, {name: partial(tool, function, **given)})
        return function

    return add


def annotated(annotation: Any) -> Callable[..., Any]:
    def find(query: Any) -> str:
        return ""

    find.__annotations__["query"] = annotation
    return find


def returning(annotation: Any) -> Callable[..., Any]:
    def find() -> Any: ...

    find.__annotations__["return"] = annotation
    return find


def with_context(annotation: Any) -> Callable[..., Any]:
    def find(ctx: Any) -> str:
        return ""

    find.__annotations__["ctx"] = annotation
    return find


@mistake()
def a_name_twice() -> None:
    server = Server("x")
    server.tool(annotated(str))
    server.tool(annotated(str))


@refused()
def a_parameter_without_annotation(query): ...


@refused()
def a_context_without_annotation(ctx, query: str): ...


@refused()
async def a_context_without_annotation_in_an_async_tool(ctx, query: str): ...


@refused()
def a_generator(query: str) -> list[str]:
    yield query


@refused()
async def an_async_generator(query: str) -> list[str]:
    yield query


@refused()
def two_contexts(ctx: Context, other: Context) -> None: ...


@mistake()
def a_context_class_of_the_author() -> None:
    class Shop(Context): ...

    def find(ctx: Shop) -> None: ...

    find.__annotations__["ctx"] = Shop
    tool(find)


@refused()
async def a_context_in_an_async_tool(ctx: Context) -> None: ...


@refused()
def an_async_context_in_a_tool_that_is_not_async(ctx: AsyncContext) -> None: ...


@refused()
def a_positional_parameter(query: str, /) -> None: ...


@refused()
def any_number_of_arguments(*queries: str) -> None: ...


@refused()
def any_keyword_arguments(**filters: str) -> None: ...


@refused()
def an_annotation_for_type_checkers_only(orders: OrderedDict[str, int]) -> None: ...


@mistake()
def two_mistakes() -> None:
    server = Server("x")
    server.tool(name="one")(annotated(Connection))
    server.tool(name="two")(returning(Connection))
    server.check_definitions()


@refused(channels=("model",))
def an_argument_that_the_model_needs(input_responses: str) -> None: ...


@refused()
def an_argument_that_continues_calls(ctx: Context, continuation_code: str) -> None: ...


@refused()
def one_header_for_two_parameters(
    a: Annotated[str, McpHeader("Region")], b: Annotated[str, McpHeader("region")]
) -> None: ...


@mistake()
def two_aliases_for_a_header() -> None:
    several = Field(validation_alias=AliasChoices("a", "b"))
    tool(annotated(Annotated[str, McpHeader("Region"), several]))


class Declares(str):
    """Declares a header in a way that no annotation shows."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(str)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "x-mcp-header": "Region"}


def raw(schema: dict[str, Any], **arguments: Any) -> None:
    server = Server("x")

    @server.tool(input_schema=schema)
    def find(arguments: dict[str, Any]) -> None: ...

    server.tools["find"].parameters.validate(arguments)


@refused(input_schema={"type": "object"})
def a_schema_for_two_parameters(query: str, limit: int) -> None: ...


@refused()
def a_result_with_a_pattern_that_clients_cannot_compile() -> dict[
    str, Annotated[str, Field(pattern="(?i)^abc$")]
]: ...


@mistake()
def a_schema_that_is_too_deep() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    raw(schema)


mistakes(
    __name__,
    DefinitionError,
    {
        "no function": lambda: tool(42),
        "a class": lambda: tool(Connection),
        "a builtin": lambda: tool(len),
        "a classmethod object": lambda: tool(vars(Service)["search"]),
        "a method without its instance": lambda: tool(Service.find),
        "a lambda without a name": lambda: tool(lambda: ""),
        "a function without a signature": lambda: tool(partial(max), name="max"),
        "two names": lambda: Server("x").tool("one", name="two"),
        "a name of other characters": lambda: tool(annotated(str), name="find orders"),
        "a context or none": lambda: tool(with_context(Context | None)),
        "the context of fastmcp": lambda: tool(with_context(FASTMCP_CONTEXT)),
        "an annotation that cannot be evaluated": lambda: tool(annotated("1 / 0")),
        "a type without a form in json": lambda: tool(annotated(list[Connection])),
        "a type that json schema cannot describe": lambda: tool(annotated(Callable[[int], int])),
        "a model with a type that is not defined": lambda: tool(annotated(Undefined)),
        "a pattern that is not a regular expression": lambda: tool(
            annotated(Annotated[str, Field(pattern="(")])
        ),
        "a return type without a form in json": lambda: tool(returning(Connection)),
        "a return type of fastmcp": lambda: tool(returning(list[str | FASTMCP_IMAGE])),
        "content of the python sdk": lambda: tool(returning(list[TextContent] | None)),
        "a prompt of the python sdk": lambda: Server("x").prompt(returning(list[PromptMessage])),
        "contents of the python sdk": lambda: Server("x").resource("x://a")(returning(TextResourceContents)),
        "a return type that is not defined": lambda: tool(returning(Undefined)),
        "a return type of blocks and data": lambda: tool(returning(Text | int)),
        "a capability that does not exist": lambda: tool(annotated(str), requires=["elicitation.ur"]),
        "capabilities that are no list": lambda: tool(annotated(str), requires="sampling"),
        "scopes that are no list": lambda: tool(annotated(str), scopes="orders.read orders.write"),
        "a scope for clients": lambda: tool(annotated(str), scopes=["offline_access"]),
        "task support that does not exist": lambda: tool(annotated(str), task="always"),
        "a channel that does not exist": lambda: tool(annotated(str), channels=("ask",)),
        "annotations in snake case": lambda: tool(annotated(str), annotations={"read_only_hint": True}),
        "a view that is no document": lambda: tool(annotated(str), ui=5),
        "a view that cannot be read": lambda: tool(annotated(str), ui=Path("/no/view.html")),
        "a view that is named by text": lambda: tool(annotated(str), ui="view.html"),
        "a view that is too large": lambda: tool(annotated(str), ui="<!doctype html>" + "x" * 5_000_000),
        "a view that meta names as well": lambda: tool(
            annotated(str), ui="<!doctype html>", meta={"ui": {"resourceUri": "ui://x/y"}}
        ),
        "a title that is no text": lambda: tool(annotated(str), name="find", title=1),
        "a title that is no unicode": lambda: tool(annotated(str), name="find", title="\udc80"),
        "a keyword that breaks the dialect": lambda: tool(
            annotated(Annotated[int, Field(json_schema_extra={"minimum": "x"})])
        ),
        "a keyword that json does not have": lambda: tool(
            annotated(Annotated[int, Field(json_schema_extra={"minimum": float("-inf")})])
        ),
        "a schema that is not json": lambda: raw({"type": "object", "default": float("nan")}),
        "a version that is no text": lambda: Server("shop", version=5),
        "a media type without a slash": lambda: Server("shop").resource("x://a", mime_type="png")(lambda: ""),
        "a website without a scheme": lambda: Server("shop", website_url="shop.example"),
        "a name in meta= with a blank": lambda: tool(annotated(str), name="find", meta={"order id": 1}),
        "icons without src": lambda: tool(
            annotated(str), name="find", icons=[{"url": "https://example.com/icon.png"}]
        ),
        "annotations that are no mapping": lambda: tool(
            annotated(str), name="find", annotations=["readOnlyHint"]
        ),
        "a time with a blank": lambda: Server("shop").resource(
            "x://a", annotations={"lastModified": "2026-07-28 14:30:00Z"}
        )(lambda: ""),
        "a priority that json has as text": lambda: Server("shop").resource(
            "x://a", annotations={"priority": Decimal("0.5")}
        )(lambda: ""),
        "meta that is no json": lambda: tool(annotated(str), name="find", meta={"since": [object()]}),
        "a pattern of python": lambda: tool(annotated(Annotated[str, Field(pattern=re.compile("a+"))])),
        "a pattern with nested counts": lambda: tool(
            annotated(Annotated[str, Field(pattern="(a{1,300}){1,20}b")])
        ),
        "a pattern as an argument": lambda: tool(annotated(re.Pattern[str])),
        "an enumeration of values that are equal in json": lambda: tool(annotated(Days)),
        "an import as an argument": lambda: tool(annotated(ImportString)),
        "an alias that is a path": lambda: tool(
            annotated(Annotated[str, Field(validation_alias=AliasPath("a", "b"))])
        ),
        "a header with a space": lambda: McpHeader("My Region"),
        "a header for a number": lambda: tool(annotated(Annotated[float, McpHeader("Amount")])),
        "a header for a type without a form in json": lambda: tool(
            annotated(Annotated[Connection, McpHeader("Amount")])
        ),
        "two headers for a parameter": lambda: tool(
            annotated(Annotated[str, McpHeader("Region"), McpHeader("Place")])
        ),
        "a header that only the schema has": lambda: tool(annotated(Declares)),
        "a header that only the schema of an item has": lambda: tool(annotated(list[Declares])),
        "a schema that is no mapping": lambda: tool(annotated(str), input_schema=True),
        "a name without characters": lambda: tool(annotated(str), name=""),
        "a parameter that is a class": lambda: tool(annotated(type[int])),
        "a parameter of no enumeration": lambda: tool(annotated(Enum)),
        "a set of objects": lambda: tool(annotated(set[Point])),
        "a dict whose names are pairs": lambda: tool(annotated(dict[tuple[int, int], str])),
        "a schema of no object": lambda: raw({"type": "string"}),
        "a schema in another dialect": lambda: raw({"type": "object", "$schema": "https://example.com"}),
        "a schema with an empty enumeration": lambda: raw({"type": "object", "enum": []}),
        "a property that is a boolean": lambda: raw({"type": "object", "properties": {"query": True}}),
        "a schema that leaves the document": lambda: raw(
            {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}
        ),
        "a schema with an enumeration of many objects": lambda: raw(
            {"type": "object", "properties": {"a": {"enum": [{"a": number} for number in range(300)]}}}
        ),
        "a schema with a reference to nowhere": lambda: raw(
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/absent"}}}, a=1
        ),
        "a schema with a pattern that looks ahead": lambda: raw(
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)"}}}
        ),
        "a schema with a pattern that is too large": lambda: raw(
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a{1,300}){1,20}b"}}}
        ),
        "a schema that breaks its dialect": lambda: raw(
            {"type": "object", "properties": {"a": {"type": "text"}}}
        ),
        "a schema beyond the bounds": lambda: raw(
            {"type": "object", "properties": {f"a{number}": {} for number in range(2_001)}}
        ),
    },
)
