"""What cannot be registered, and parameters that cannot be arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ImportString

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Server, Text
from mcp_roundtrip.arguments.mcp_header import McpHeader
from messages.cases import mistakes, says

if TYPE_CHECKING:
    from collections import OrderedDict


class Connection:
    """No type that JSON has a form for."""


class Color(Enum):
    RED = (1, 2)


class Undefined(BaseModel):
    other: "Elsewhere"  # noqa: F821, UP037 - the mistake


class ForeignContext:
    """What another library calls a context."""


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


def refuses(message: str, **given: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table that is no tool. Its message calls it "find"."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        make = partial(tool, function, **given)
        mistakes(__name__, DefinitionError, {function.__name__.replace("_", " "): (make, message)})
        function.__name__ = "find"
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


@says("tool 'find' is registered twice; give one of them another name=")
def a_name_twice() -> None:
    server = Server("x")
    server.tool(annotated(str))
    server.tool(annotated(str))


@refuses("find: parameter 'query' has no annotation; write its type, such as `query: str`")
def a_parameter_without_annotation(query): ...


@refuses("find: parameter 'ctx' has no annotation; write `ctx: Context`")
def a_context_without_annotation(ctx, query: str): ...


@refuses("find: parameter 'ctx' has no annotation; write `ctx: AsyncContext`")
async def a_context_without_annotation_in_an_async_tool(ctx, query: str): ...


@refuses("find: parameters 'ctx' and 'other' are both annotated as the context; keep one of them")
def two_contexts(ctx: Context, other: Context) -> None: ...


@says("find: the server passes no Shop; write `ctx: Context`")
def a_context_class_of_the_author() -> None:
    class Shop(Context): ...

    def find(ctx: Shop) -> None: ...

    find.__annotations__["ctx"] = Shop
    tool(find)


@refuses("find is an async function and takes an AsyncContext; write `ctx: AsyncContext`")
async def a_context_in_an_async_tool(ctx: Context) -> None: ...


@refuses("find is not async and takes a Context; write `ctx: Context`, or `async def`")
def an_async_context_in_a_tool_that_is_not_async(ctx: AsyncContext) -> None: ...


@refuses("find: parameter 'query' is positional-only; remove the `/` from the signature")
def a_positional_parameter(query: str, /) -> None: ...


@refuses("find: parameter 'queries' collects positional arguments; write one parameter that is a list")
def any_number_of_arguments(*queries: str) -> None: ...


@refuses("find: parameter 'filters' collects keyword arguments; write one parameter for each argument")
def any_keyword_arguments(**filters: str) -> None: ...


@refuses(
    "find: the annotation 'OrderedDict' does not exist at run time; define it at module level and "
    "import it outside `if TYPE_CHECKING:`"
)
def an_annotation_for_type_checkers_only(orders: OrderedDict[str, int]) -> None: ...


@says(
    "find: parameter 'query': Connection cannot be written as JSON; use a type such as str, int, "
    "bool, datetime, list[str], a dataclass or a pydantic model\n"
    "find: the return type: Connection cannot be written as JSON; use a type such as str, int, bool, "
    "datetime, list[str], a dataclass or a pydantic model"
)
def two_mistakes() -> None:
    server = Server("x")
    server.tool(name="one")(annotated(Connection))
    server.tool(name="two")(returning(Connection))
    server.check_definitions()


@refuses(
    "find: the channel \"model\" adds an argument 'input_responses'; give the parameter another name",
    channels=("model",),
)
def an_argument_that_the_model_needs(input_responses: str) -> None: ...


@refuses(
    "find: a tool that asks gets an argument 'continuation_code' from the server; give the parameter another "
    "name"
)
def an_argument_that_continues_calls(ctx: Context, continuation_code: str) -> None: ...


class Left(BaseModel):
    inner: Left | Right


class Right(BaseModel):
    inner: Left | Right


@refuses(
    "find: parameters 'a' and 'b' have the same x-mcp-header 'region' (in any case); give one of "
    "them another name"
)
def one_header_for_two_parameters(
    a: Annotated[str, McpHeader("Region")], b: Annotated[str, McpHeader("region")]
) -> None: ...


@says("find: parameter 'query': an alias is one name here, not several or a path; write Field(alias=...)")
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


@refuses(
    "find: with input_schema= the function takes one parameter besides the context, not 2; write "
    "`arguments: dict[str, Any]` in their place",
    input_schema={"type": "object"},
)
def a_schema_for_two_parameters(query: str, limit: int) -> None: ...


@refuses(
    "find: the return type: the pattern '(?i)^abc$' has '(?i)^abc$', which ECMA-262 with the flag u does not "
    "have there; write it as JavaScript reads it"
)
def a_result_with_a_pattern_that_clients_cannot_compile() -> dict[
    str, Annotated[str, Field(pattern="(?i)^abc$")]
]: ...


@says("find: the schema is nested deeper than 64 levels; use a flatter one")
def a_schema_that_is_too_deep() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    raw(schema)


mistakes(
    __name__,
    DefinitionError,
    {
        "no function": (
            lambda: tool(42),
            "@server.tool: 42 is not a function; write @server.tool above a `def`",
        ),
        "a class": (
            lambda: tool(Connection),
            "@server.tool: Connection is a class; register a function, or an instance whose class defines "
            "__call__, as in `@server.tool(Connection())`",
        ),
        "a builtin": (
            lambda: tool(len),
            "@server.tool: len is built in without annotations; write a `def` with annotated parameters that "
            "calls len",
        ),
        "a classmethod object": (
            lambda: tool(vars(Service)["search"]),
            "@server.tool: search is a classmethod object; register the bound method below the class, as in "
            "`@server.tool(Service.search)`",
        ),
        "a method without its instance": (
            lambda: tool(Service.find),
            "find: parameter 'self' has no annotation; register the method of an instance, such as "
            "`server.tool(service.find)`",
        ),
        "a lambda without a name": (
            lambda: tool(lambda: ""),
            "@server.tool: a lambda has no name; pass name=, or write a `def`",
        ),
        "a function without a signature": (
            lambda: tool(partial(max), name="max"),
            "max: Python cannot read its parameters; write a function with annotated parameters that calls "
            "max",
        ),
        "two names": (
            lambda: Server("x").tool("one", name="two"),
            "tool 'one' is named twice; remove name='two'",
        ),
        "a name of other characters": (
            lambda: tool(annotated(str), name="find orders"),
            "tool name 'find orders' is not allowed; use 1 to 128 of the characters A-Z a-z 0-9 _ - .",
        ),
        "a context or none": (
            lambda: tool(with_context(Context | None)),
            "find: parameter 'ctx' is annotated with Context | None, and the server always passes a context; "
            "write `ctx: Context`",
        ),
        "the context of another library": (
            lambda: tool(with_context(ForeignContext)),
            "find: parameter 'ctx': ForeignContext is not this package's; import Context or AsyncContext "
            "from mcp_roundtrip",
        ),
        "an annotation that cannot be evaluated": (
            lambda: tool(annotated("1 / 0")),
            "find: the annotations cannot be evaluated (ZeroDivisionError: division by zero); write each as "
            "a type, such as `str` or `list[int]`",
        ),
        "a type without a form in json": (
            lambda: tool(annotated(list[Connection])),
            "find: parameter 'query': Connection cannot be written as JSON; use a type such as str, int, "
            "bool, datetime, list[str], a dataclass or a pydantic model",
        ),
        "a type that json schema cannot describe": (
            lambda: tool(annotated(Callable[[int], int])),
            "find: parameter 'query': JSON Schema cannot describe Callable[[int], int]; use a type such as "
            "str, int, bool, datetime, list[str], a dataclass or a pydantic model",
        ),
        "a model with a type that is not defined": (
            lambda: tool(annotated(Undefined)),
            "find: parameter 'query': Undefined refers to a type that is not defined; define that type at "
            "module level",
        ),
        "a pattern that is not a regular expression": (
            lambda: tool(annotated(Annotated[str, Field(pattern="(")])),
            "find: parameter 'query': the pattern of str is not compiled by the engine, or too large to "
            "match long texts; write it as JavaScript reads it, with `+` or `*` in place of large counts, "
            "and check what needs look-around in the function",
        ),
        "a return type without a form in json": (
            lambda: tool(returning(Connection)),
            "find: the return type: Connection cannot be written as JSON; use a type such as str, int, bool, "
            "datetime, list[str], a dataclass or a pydantic model",
        ),
        "a return type that is not defined": (
            lambda: tool(returning(Undefined)),
            "find: the return type: Undefined refers to a type that is not defined; define that type at "
            "module level",
        ),
        "a return type of blocks and data": (
            lambda: tool(returning(Text | int)),
            "find: the return type Text | int mixes content blocks with structured values; return either "
            "blocks, str and None, or a model",
        ),
        "a capability that does not exist": (
            lambda: tool(annotated(str), requires=["elicitation.ur"]),
            "find: clients have no capability 'elicitation.ur'; write one of elicitation, elicitation.form, "
            "elicitation.url, sampling, sampling.context, sampling.tools, roots, extensions.<name> or "
            "experimental.<name>",
        ),
        "capabilities that are no list": (
            lambda: tool(annotated(str), requires="sampling"),
            "find: requires is a list; write requires=['sampling']",
        ),
        "scopes that are no list": (
            lambda: tool(annotated(str), scopes="orders.read orders.write"),
            "find: scopes='orders.read orders.write' are not scopes; use a list of str such as "
            "['orders.read'], without spaces, quotes and backslashes",
        ),
        "a scope for clients": (
            lambda: tool(annotated(str), scopes=["offline_access"]),
            "find: scopes: 'offline_access' is for clients that want refresh tokens; remove it",
        ),
        "task support that does not exist": (
            lambda: tool(annotated(str), task="always"),
            'find: task=\'always\' does not exist; use "optional" or "required"',
        ),
        "a channel that does not exist": (
            lambda: tool(annotated(str), channels=("ask",)),
            "find: channels=('ask',) is not possible; use a tuple of 'app', 'page', 'model', 'default', each "
            "at most once and in the order of your choice",
        ),
        "a view that is no document": (
            lambda: tool(annotated(str), ui=5),
            "find: ui=5 is no view; use the text of an HTML document, or a Path",
        ),
        "a view that cannot be read": (
            lambda: tool(annotated(str), ui=Path("/no/view.html")),
            "find: the view cannot be read; give another path: [Errno 2] No such file or directory: "
            "'/no/view.html'",
        ),
        "a view that is named by text": (
            lambda: tool(annotated(str), ui="view.html"),
            "find: the view is no HTML5 document; write <!doctype html> at its start, or pass a file as "
            "ui=Path(...)",
        ),
        "a view that is too large": (
            lambda: tool(annotated(str), ui="<!doctype html>" + "x" * 1_000_000),
            "find: the view has more than 1000000 bytes; use a smaller one",
        ),
        "a view that meta names as well": (
            lambda: tool(annotated(str), ui="<!doctype html>", meta={"ui": {"resourceUri": "ui://x/y"}}),
            "find: ui= sets the member 'ui' of meta= as well; remove one of them",
        ),
        "a title that is no text": (
            lambda: tool(annotated(str), name="find", title=1),
            "tool find: title must be str",
        ),
        "a title that is no unicode": (
            lambda: tool(annotated(str), name="find", title="\udc80"),
            "tool find: title must be text without half of a surrogate pair",
        ),
        "a keyword that breaks the dialect": (
            lambda: tool(annotated(Annotated[int, Field(json_schema_extra={"minimum": "x"})])),
            'find: inputSchema.properties.query.minimum: "x" is not of type "number"; write what '
            "https://json-schema.org/draft/2020-12/schema allows",
        ),
        "a keyword that json does not have": (
            lambda: tool(annotated(Annotated[int, Field(json_schema_extra={"minimum": float("-inf")})])),
            "find: parameter 'query': the schema has NaN or Infinity; write numbers that JSON has",
        ),
        "a schema that is not json": (
            lambda: raw({"type": "object", "default": float("nan")}),
            "find: input_schema is not JSON; write text, numbers, lists and dicts",
        ),
        "a version that is no text": (
            lambda: Server("shop", version=5),
            "version=5 of the server must be str",
        ),
        "a media type without a slash": (
            lambda: Server("shop").resource("x://a", mime_type="png")(lambda: ""),
            'resource x://a: mime_type must be a media type, such as "image/png"',
        ),
        "a website without a scheme": (
            lambda: Server("shop", website_url="shop.example"),
            'server shop: website_url must be a URL with its scheme, such as "https://example.com/icon.png"',
        ),
        "icons without src": (
            lambda: tool(annotated(str), name="find", icons=[{"url": "https://example.com/icon.png"}]),
            "tool find: icons must be a list of mappings, each with src",
        ),
        "annotations that are no mapping": (
            lambda: tool(annotated(str), name="find", annotations=["readOnlyHint"]),
            "tool find: annotations must be a mapping",
        ),
        "meta that is no json": (
            lambda: tool(annotated(str), name="find", meta={"since": [object()]}),
            "tool find: meta must be JSON, at meta.since[0]: object",
        ),
        "a pattern of python": (
            lambda: tool(annotated(Annotated[str, Field(pattern=re.compile("a+"))])),
            "find: parameter 'query': the pattern 'a+' runs on Python's re, which can take exponential time "
            'for a client\'s text; write Field(pattern="...") without re.compile and without '
            'regex_engine="python-re", and check what needs look-around or back-references in the function',
        ),
        "a pattern with nested counts": (
            lambda: tool(annotated(Annotated[str, Field(pattern="(a{1,300}){1,20}b")])),
            "find: parameter 'query': the pattern '(a{1,300}){1,20}b' is not compiled by the engine, or too "
            "large to match long texts; write it as JavaScript reads it, with `+` or `*` in place of large "
            "counts, and check what needs look-around in the function",
        ),
        "a pattern as an argument": (
            lambda: tool(annotated(re.Pattern[str])),
            "find: parameter 'query': re.Pattern would run what a client sends as a pattern; take a str "
            "instead",
        ),
        "an import as an argument": (
            lambda: tool(annotated(ImportString)),
            "find: parameter 'query': ImportString would import what a client names; take a Literal of names "
            "instead",
        ),
        "a union that takes exponential time": (
            lambda: tool(annotated(Left)),
            "find: Left: several members of a union in it are JSON objects that may hold Left again, and "
            "checking them takes exponential time; give each a Literal field, and name that field in "
            "Field(discriminator=...)",
        ),
        "a literal that json does not have": (
            lambda: tool(annotated(Literal[Color.RED])),
            "find: parameter 'query': JSON cannot hold <Color.RED: (1, 2)>; write the enumeration itself, or "
            "Literal of its value",
        ),
        "an alias that is a path": (
            lambda: tool(annotated(Annotated[str, Field(validation_alias=AliasPath("a", "b"))])),
            "find: parameter 'query': an alias is one name here, not several or a path; write "
            "Field(alias=...)",
        ),
        "a header with a space": (
            lambda: McpHeader("My Region"),
            "x-mcp-header 'My Region' is not a header name; use letters, digits and !#$%&'*+-.^_`|~",
        ),
        "a header for a number": (
            lambda: tool(annotated(Annotated[float, McpHeader("Amount")])),
            "find: parameter 'query' has x-mcp-header and is not a string, an integer or a boolean; use str, "
            "int or bool, and a default of that type instead of None",
        ),
        "a header for a type without a form in json": (
            lambda: tool(annotated(Annotated[Connection, McpHeader("Amount")])),
            "find: parameter 'query': Connection cannot be written as JSON; use a type such as str, int, "
            "bool, datetime, list[str], a dataclass or a pydantic model",
        ),
        "two headers for a parameter": (
            lambda: tool(annotated(Annotated[str, McpHeader("Region"), McpHeader("Place")])),
            "find: parameter 'query' has several McpHeaders, or one as its default; write one in its "
            "annotation, as in `Annotated[str, McpHeader('Region')]`",
        ),
        "a header that only the schema has": (
            lambda: tool(annotated(Declares)),
            "find: the schema of a type declares x-mcp-header; write McpHeader on a parameter of the tool "
            "instead",
        ),
        "a header that only the schema of an item has": (
            lambda: tool(annotated(list[Declares])),
            "find: x-mcp-header is behind items, a composition, a condition or a $ref, such as the field of "
            "a model, where clients do not read it; put McpHeader around the whole type of a parameter of "
            "the tool",
        ),
        "a schema that is no mapping": (
            lambda: tool(annotated(str), input_schema=True),
            "find: input_schema is a JSON Schema; write a dict, or leave it out for the parameters' own "
            "types",
        ),
        "a name without characters": (
            lambda: tool(annotated(str), name=""),
            "@server.tool: name='' is no name; write text, or leave it out",
        ),
        "a parameter that is a class": (
            lambda: tool(annotated(type[int])),
            "find: parameter 'query': JSON cannot hold a class; write a Literal of names",
        ),
        "a parameter of no enumeration": (
            lambda: tool(annotated(Enum)),
            "find: parameter 'query': Enum has no members; write an enumeration that has some",
        ),
        "a schema of no object": (
            lambda: raw({"type": "string"}),
            'find: input_schema is not that of an object; write "type": "object" at its root',
        ),
        "a schema in another dialect": (
            lambda: raw({"type": "object", "$schema": "https://example.com/schema"}),
            "find: $schema 'https://example.com/schema' of input_schema is not supported; use one of "
            "https://json-schema.org/draft/2020-12/schema, https://json-schema.org/draft/2019-09/schema, "
            "http://json-schema.org/draft-07/schema, http://json-schema.org/draft-06/schema, "
            "http://json-schema.org/draft-04/schema",
        ),
        "a schema that leaves the document": (
            lambda: raw({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}),
            "find: $ref 'https://example.com/a.json' of input_schema leaves the document; write "
            "'#/$defs/...'",
        ),
        "a schema with an enumeration of many objects": (
            lambda: raw(
                {"type": "object", "properties": {"a": {"enum": [{"a": number} for number in range(300)]}}}
            ),
            "find: the schema makes more than 4000 checks of one value; use fewer alternatives, and fewer "
            'arrays and objects in an enum, and write "type": "integer" beside an enum of integers',
        ),
        "a schema with a reference to nowhere": (
            lambda: raw({"type": "object", "properties": {"a": {"$ref": "#/$defs/absent"}}}, a=1),
            "find: input_schema: a $ref leads nowhere: Pointer '/$defs/absent' does not exist; define it "
            "under $defs",
        ),
        "a schema with a pattern that looks ahead": (
            lambda: raw({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)"}}}),
            "find: input_schema: the pattern '^(?=a)' is not one that can be matched in linear time; write "
            "it without look-around and back-references, and check the rest in the function",
        ),
        "a schema with a pattern that is too large": (
            lambda: raw(
                {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a{1,300}){1,20}b"}}}
            ),
            "find: input_schema: the pattern '(a{1,300}){1,20}b' is not compiled by the engine, or too large "
            "to match long texts; write it as JavaScript reads it, with `+` or `*` in place of large counts, "
            "and check what needs look-around in the function",
        ),
        "a schema that breaks its dialect": (
            lambda: raw({"type": "object", "properties": {"a": {"type": "text"}}}),
            'find: input_schema.properties.a.type: "text" is not valid under any of the schemas listed in '
            "the 'anyOf' keyword; write what https://json-schema.org/draft/2020-12/schema allows",
        ),
        "a schema beyond the bounds": (
            lambda: raw({"type": "object", "properties": {f"a{number}": {} for number in range(2_001)}}),
            "find: the schema has more than 2000 subschemas; use a smaller one",
        ),
    },
)
