"""What cannot be registered, and parameters that cannot be arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ImportString

from mcp_roundtrip import AsyncContext, Context, Server, Text
from mcp_roundtrip.arguments.mcp_header import McpHeader
from messages.cases import says

if TYPE_CHECKING:
    from collections import OrderedDict


class Connection:
    """No type that JSON has a form for."""


class Color(Enum):
    RED = (1, 2)


class Undefined(BaseModel):
    other: "Elsewhere"  # type: ignore[name-defined]  # noqa: F821, UP037 - the mistake


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


@says("@server.tool: 42 is not a function; write @server.tool above a `def`")
def no_function() -> None:
    tool(42)  # type: ignore[arg-type]


@says(
    "@server.tool: Connection is a class; register a function, or an instance whose class defines "
    "__call__, as in `@server.tool(Connection())`"
)
def a_class() -> None:
    tool(Connection)


@says(
    "@server.tool: len is built in without annotations; write a `def` with annotated parameters that "
    "calls len"
)
def a_builtin() -> None:
    tool(len)


@says(
    "@server.tool: search is a classmethod object; register the bound method below the class, as in "
    "`@server.tool(Service.search)`"
)
def a_classmethod_object() -> None:
    tool(vars(Service)["search"])


@says(
    "find: parameter 'self' has no annotation; register the method of an instance, such as "
    "`server.tool(service.find)`"
)
def a_method_without_its_instance() -> None:
    tool(Service.find)


@says("@server.tool: a lambda has no name; pass name=, or write a `def`")
def a_lambda_without_a_name() -> None:
    tool(lambda: "")


@says("max: Python cannot read its parameters; write a function with annotated parameters that calls max")
def a_function_without_a_signature() -> None:
    tool(functools.partial(max), name="max")


@says("tool 'one' is named twice; remove name='two'")
def two_names() -> None:
    Server("x").tool("one", name="two")


@says("tool name 'find orders' is not allowed; use 1 to 128 of the characters A-Z a-z 0-9 _ - .")
def a_name_of_other_characters() -> None:
    tool(annotated(str), name="find orders")


@says("tool 'find' is registered twice; give one of them another name=")
def a_name_twice() -> None:
    server = Server("x")
    server.tool(annotated(str))
    server.tool(annotated(str))


@says("find: parameter 'query' has no annotation; write its type, such as `query: str`")
def a_parameter_without_annotation() -> None:
    def find(query): ...  # type: ignore[no-untyped-def]

    tool(find)


@says("find: parameter 'ctx' has no annotation; write `ctx: Context`")
def a_context_without_annotation() -> None:
    def find(ctx, query: str): ...  # type: ignore[no-untyped-def]

    tool(find)


@says("find: parameter 'ctx' has no annotation; write `ctx: AsyncContext`")
def a_context_without_annotation_in_an_async_tool() -> None:
    async def find(ctx, query: str): ...  # type: ignore[no-untyped-def]

    tool(find)


@says(
    "find: parameter 'ctx' is annotated with Context | None, and the server always passes a context; "
    "write `ctx: Context`"
)
def a_context_or_none() -> None:
    tool(with_context(Context | None))


@says("find: parameters 'ctx' and 'other' are both annotated as the context; keep one of them")
def two_contexts() -> None:
    def find(ctx: Context, other: Context) -> None: ...

    tool(find)


@says("find: the server passes no Shop; write `ctx: Context`")
def a_context_class_of_the_author() -> None:
    class Shop(Context): ...

    def find(ctx: Shop) -> None: ...

    find.__annotations__["ctx"] = Shop
    tool(find)


@says("find is an async function and takes an AsyncContext; write `ctx: AsyncContext`")
def a_context_in_an_async_tool() -> None:
    async def find(ctx: Context) -> None: ...

    tool(find)


@says("find is not async and takes a Context; write `ctx: Context`, or `async def`")
def an_async_context_in_a_tool_that_is_not_async() -> None:
    def find(ctx: AsyncContext) -> None: ...

    tool(find)


@says(
    "find: parameter 'ctx': ForeignContext is not this package's; import Context or AsyncContext "
    "from mcp_roundtrip"
)
def the_context_of_another_library() -> None:
    tool(with_context(ForeignContext))


@says("find: parameter 'query' is positional-only; remove the `/` from the signature")
def a_positional_parameter() -> None:
    def find(query: str, /) -> None: ...

    tool(find)


@says("find: parameter 'queries' collects positional arguments; write one parameter that is a list")
def any_number_of_arguments() -> None:
    def find(*queries: str) -> None: ...

    tool(find)


@says("find: parameter 'filters' collects keyword arguments; write one parameter for each argument")
def any_keyword_arguments() -> None:
    def find(**filters: str) -> None: ...

    tool(find)


@says(
    "find: the annotation 'OrderedDict' does not exist at run time; define it at module level and "
    "import it outside `if TYPE_CHECKING:`"
)
def an_annotation_for_type_checkers_only() -> None:
    def find(orders: OrderedDict[str, int]) -> None: ...

    tool(find)


@says(
    "find: the annotations cannot be evaluated (ZeroDivisionError: division by zero); write each as "
    "a type, such as `str` or `list[int]`"
)
def an_annotation_that_cannot_be_evaluated() -> None:
    tool(annotated("1 / 0"))


@says(
    "find: parameter 'query': Connection cannot be written as JSON; use a type such as str, int, "
    "bool, datetime, list[str], a dataclass or a pydantic model"
)
def a_type_without_a_form_in_json() -> None:
    tool(annotated(list[Connection]))


@says(
    "find: parameter 'query': JSON Schema cannot describe Callable[[int], int]; use a type such as "
    "str, int, bool, datetime, list[str], a dataclass or a pydantic model"
)
def a_type_that_json_schema_cannot_describe() -> None:
    tool(annotated(Callable[[int], int]))


@says(
    "find: parameter 'query': Undefined refers to a type that is not defined; define that type at "
    "module level"
)
def a_model_with_a_type_that_is_not_defined() -> None:
    tool(annotated(Undefined))


@says(
    "find: parameter 'query': the pattern of str is not compiled by the engine, or "
    "too large to match long texts; write it as JavaScript reads it, with `+` or `*` in place of large "
    "counts, and check what needs look-around in the function"
)
def a_pattern_that_is_not_a_regular_expression() -> None:
    tool(annotated(Annotated[str, Field(pattern="(")]))


@says(
    "find: the return type: Connection cannot be written as JSON; use a type such as str, int, bool, "
    "datetime, list[str], a dataclass or a pydantic model"
)
def a_return_type_without_a_form_in_json() -> None:
    tool(returning(Connection))


@says(
    "find: the return type: Undefined refers to a type that is not defined; define that type at module level"
)
def a_return_type_that_is_not_defined() -> None:
    tool(returning(Undefined))


@says(
    "find: the return type Text | int mixes content blocks with structured values; return either "
    "blocks, str and None, or a model"
)
def a_return_type_of_blocks_and_data() -> None:
    tool(returning(Text | int))


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


@says(
    "find: clients have no capability 'elicitation.ur'; write one of elicitation, elicitation.form, "
    "elicitation.url, sampling, sampling.context, sampling.tools, roots, extensions.<name> or "
    "experimental.<name>"
)
def a_capability_that_does_not_exist() -> None:
    tool(annotated(str), requires=["elicitation.ur"])


@says("find: requires is a list; write requires=['sampling']")
def capabilities_that_are_no_list() -> None:
    tool(annotated(str), requires="sampling")


@says(
    "find: scopes='orders.read orders.write' are not scopes; use a list of str such as "
    "['orders.read'], without spaces, quotes and backslashes"
)
def scopes_that_are_no_list() -> None:
    tool(annotated(str), scopes="orders.read orders.write")


@says("find: scopes: 'offline_access' is for clients that want refresh tokens; remove it")
def a_scope_for_clients() -> None:
    tool(annotated(str), scopes=["offline_access"])


@says('find: task=\'always\' does not exist; use "optional" or "required"')
def task_support_that_does_not_exist() -> None:
    tool(annotated(str), task="always")


@says(
    "find: channels=('ask',) is not possible; use a tuple of 'app', 'page', 'model', 'default', each at most "
    "once and in the order of your choice"
)
def a_channel_that_does_not_exist() -> None:
    tool(annotated(str), channels=("ask",))


@says("find: the channel \"model\" adds an argument 'input_responses'; give the parameter another name")
def an_argument_that_the_model_needs() -> None:
    def find(input_responses: str) -> None: ...

    tool(find, channels=("model",))


@says(
    "find: a tool that asks gets an argument 'continuation_code' from the server; give the parameter another "
    "name"
)
def an_argument_that_continues_calls() -> None:
    def find(ctx: Context, continuation_code: str) -> None: ...

    tool(find)


@says("find: ui=5 is no view; use the text of an HTML document, or a Path")
def a_view_that_is_no_document() -> None:
    tool(annotated(str), ui=5)


@says(
    "find: the view cannot be read; give another path: [Errno 2] No such file or directory: '/no/view.html'"
)
def a_view_that_cannot_be_read() -> None:
    tool(annotated(str), ui=Path("/no/view.html"))


@says(
    "find: the view is no HTML5 document; write <!doctype html> at its start, or pass a file as ui=Path(...)"
)
def a_view_that_is_named_by_text() -> None:
    tool(annotated(str), ui="view.html")


@says("find: the view has more than 1000000 bytes; use a smaller one")
def a_view_that_is_too_large() -> None:
    tool(annotated(str), ui="<!doctype html>" + "x" * 1_000_000)


@says("find: ui= sets the member 'ui' of meta= as well; remove one of them")
def a_view_that_meta_names_as_well() -> None:
    tool(annotated(str), ui="<!doctype html>", meta={"ui": {"resourceUri": "ui://x/y"}})


@says("tool find: title must be str")
def a_title_that_is_no_text() -> None:
    tool(annotated(str), name="find", title=1)


@says("tool find: title must be text without half of a surrogate pair")
def a_title_that_is_no_unicode() -> None:
    tool(annotated(str), name="find", title="\udc80")


@says(
    'find: inputSchema.properties.query.minimum: "x" is not of type "number"; write what '
    "https://json-schema.org/draft/2020-12/schema allows"
)
def a_keyword_that_breaks_the_dialect() -> None:
    tool(annotated(Annotated[int, Field(json_schema_extra={"minimum": "x"})]))


@says("find: parameter 'query': the schema has NaN or Infinity; write numbers that JSON has")
def a_keyword_that_json_does_not_have() -> None:
    tool(annotated(Annotated[int, Field(json_schema_extra={"minimum": float("-inf")})]))


@says("find: input_schema is not JSON; write text, numbers, lists and dicts")
def a_schema_that_is_not_json() -> None:
    raw({"type": "object", "default": float("nan")})


@says("version=5 of the server must be str")
def a_version_that_is_no_text() -> None:
    Server("shop", version=5)  # type: ignore[arg-type]


@says('resource x://a: mime_type must be a media type, such as "image/png"')
def a_media_type_without_a_slash() -> None:
    Server("shop").resource("x://a", mime_type="png")(lambda: "")


@says('server shop: website_url must be a URL with its scheme, such as "https://example.com/icon.png"')
def a_website_without_a_scheme() -> None:
    Server("shop", website_url="shop.example")


@says("tool find: icons must be a list of mappings, each with src")
def icons_without_src() -> None:
    tool(annotated(str), name="find", icons=[{"url": "https://example.com/icon.png"}])


@says("tool find: annotations must be a mapping")
def annotations_that_are_no_mapping() -> None:
    tool(annotated(str), name="find", annotations=["readOnlyHint"])


@says("tool find: meta must be JSON, at meta.since[0]: object")
def meta_that_is_no_json() -> None:
    tool(annotated(str), name="find", meta={"since": [object()]})


@says(
    "find: parameter 'query': the pattern 'a+' runs on Python's re, which can take exponential time "
    'for a client\'s text; write Field(pattern="...") without re.compile and without '
    'regex_engine="python-re", and check what needs look-around or back-references in the function'
)
def a_pattern_of_python() -> None:
    tool(annotated(Annotated[str, Field(pattern=re.compile("a+"))]))


@says(
    "find: parameter 'query': the pattern '(a{1,300}){1,20}b' is not compiled by the engine, or "
    "too large to match long texts; write it as JavaScript reads it, with `+` or `*` in place of large "
    "counts, and check what needs look-around in the function"
)
def a_pattern_with_nested_counts() -> None:
    tool(annotated(Annotated[str, Field(pattern="(a{1,300}){1,20}b")]))


@says("find: parameter 'query': re.Pattern would run what a client sends as a pattern; take a str instead")
def a_pattern_as_an_argument() -> None:
    tool(annotated(re.Pattern[str]))


@says(
    "find: parameter 'query': ImportString would import what a client names; take a Literal of names instead"
)
def an_import_as_an_argument() -> None:
    tool(annotated(ImportString))


class Left(BaseModel):
    inner: Left | Right


class Right(BaseModel):
    inner: Left | Right


@says(
    "find: Left: several members of a union in it are JSON objects that may hold Left "
    "again, and checking them takes exponential time; give each a Literal field, and name that "
    "field in Field(discriminator=...)"
)
def a_union_that_takes_exponential_time() -> None:
    tool(annotated(Left))


@says(
    "find: parameter 'query': JSON cannot hold <Color.RED: (1, 2)>; write the enumeration itself, or Literal "
    "of its value"
)
def a_literal_that_json_does_not_have() -> None:
    tool(annotated(Literal[Color.RED]))


@says("find: parameter 'query': an alias is one name here, not several or a path; write Field(alias=...)")
def an_alias_that_is_a_path() -> None:
    tool(annotated(Annotated[str, Field(validation_alias=AliasPath("a", "b"))]))


@says("x-mcp-header 'My Region' is not a header name; use letters, digits and !#$%&'*+-.^_`|~")
def a_header_with_a_space() -> None:
    McpHeader("My Region")


@says(
    "find: parameter 'query' has x-mcp-header and is not a string, an integer or a boolean; use str, "
    "int or bool, and a default of that type instead of None"
)
def a_header_for_a_number() -> None:
    tool(annotated(Annotated[float, McpHeader("Amount")]))


@says(
    "find: parameter 'query': Connection cannot be written as JSON; use a type such as str, int, "
    "bool, datetime, list[str], a dataclass or a pydantic model"
)
def a_header_for_a_type_without_a_form_in_json() -> None:
    tool(annotated(Annotated[Connection, McpHeader("Amount")]))


@says(
    "find: parameter 'query' has several McpHeaders, or one as its default; write one in its annotation, "
    "as in `Annotated[str, McpHeader('Region')]`"
)
def two_headers_for_a_parameter() -> None:
    tool(annotated(Annotated[str, McpHeader("Region"), McpHeader("Place")]))


@says(
    "find: parameters 'a' and 'b' have the same x-mcp-header 'region' (in any case); give one of "
    "them another name"
)
def one_header_for_two_parameters() -> None:
    def find(a: Annotated[str, McpHeader("Region")], b: Annotated[str, McpHeader("region")]) -> None: ...

    tool(find)


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


@says("find: the schema of a type declares x-mcp-header; write McpHeader on a parameter of the tool instead")
def a_header_that_only_the_schema_has() -> None:
    tool(annotated(Declares))


@says(
    "find: x-mcp-header is behind items, a composition, a condition or a $ref, such as the field of a "
    "model, where clients do not read it; put McpHeader around the whole type of a parameter of the tool"
)
def a_header_that_only_the_schema_of_an_item_has() -> None:
    tool(annotated(list[Declares]))


def raw(schema: dict[str, Any], **arguments: Any) -> None:
    server = Server("x")

    @server.tool(input_schema=schema)
    def find(arguments: dict[str, Any]) -> None: ...

    server.tools["find"].parameters.validate(arguments)


@says(
    "find: with input_schema= the function takes one parameter besides the context, not 2; write "
    "`arguments: dict[str, Any]` in their place"
)
def a_schema_for_two_parameters() -> None:
    def find(query: str, limit: int) -> None: ...

    tool(find, input_schema={"type": "object"})


@says("find: input_schema is a JSON Schema; write a dict, or leave it out for the parameters' own types")
def a_schema_that_is_no_mapping() -> None:
    tool(annotated(str), input_schema=True)


@says("@server.tool: name='' is no name; write text, or leave it out")
def a_name_without_characters() -> None:
    tool(annotated(str), name="")


@says("find: parameter 'query': JSON cannot hold a class; write a Literal of names")
def a_parameter_that_is_a_class() -> None:
    tool(annotated(type[int]))


@says("find: parameter 'query': Enum has no members; write an enumeration that has some")
def a_parameter_of_no_enumeration() -> None:
    tool(annotated(Enum))


@says('find: input_schema is not that of an object; write "type": "object" at its root')
def a_schema_of_no_object() -> None:
    raw({"type": "string"})


@says(
    "find: $schema 'https://example.com/schema' of input_schema is not supported; use one of "
    "https://json-schema.org/draft/2020-12/schema, https://json-schema.org/draft/2019-09/schema, "
    "http://json-schema.org/draft-07/schema, http://json-schema.org/draft-06/schema, "
    "http://json-schema.org/draft-04/schema"
)
def a_schema_in_another_dialect() -> None:
    raw({"type": "object", "$schema": "https://example.com/schema"})


@says("find: $ref 'https://example.com/a.json' of input_schema leaves the document; write '#/$defs/...'")
def a_schema_that_leaves_the_document() -> None:
    raw({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}})


@says(
    "find: the schema makes more than 4000 checks of one value; use fewer alternatives, and fewer arrays and "
    'objects in an enum, and write "type": "integer" beside an enum of integers'
)
def a_schema_with_an_enumeration_of_many_objects() -> None:
    raw({"type": "object", "properties": {"a": {"enum": [{"a": number} for number in range(300)]}}})


@says(
    "find: input_schema: a $ref leads nowhere: Pointer '/$defs/absent' does not exist; define it under $defs"
)
def a_schema_with_a_reference_to_nowhere() -> None:
    raw({"type": "object", "properties": {"a": {"$ref": "#/$defs/absent"}}}, a=1)


@says(
    "find: input_schema: the pattern '^(?=a)' is not one that can be matched in linear "
    "time; write it without look-around and back-references, and check the rest in the function"
)
def a_schema_with_a_pattern_that_looks_ahead() -> None:
    raw({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)"}}})


@says(
    "find: input_schema: the pattern '(a{1,300}){1,20}b' is not compiled by the engine, or "
    "too large to match long texts; write it as JavaScript reads it, with `+` or `*` in place of large "
    "counts, and check what needs look-around in the function"
)
def a_schema_with_a_pattern_that_is_too_large() -> None:
    raw({"type": "object", "properties": {"a": {"type": "string", "pattern": "(a{1,300}){1,20}b"}}})


@says(
    'find: input_schema.properties.a.type: "text" is not valid under any of the schemas listed in the '
    "'anyOf' keyword; write what https://json-schema.org/draft/2020-12/schema allows"
)
def a_schema_that_breaks_its_dialect() -> None:
    raw({"type": "object", "properties": {"a": {"type": "text"}}})


@says(
    "find: the return type: the pattern '(?i)^abc$' has '(?i)^abc$', which ECMA-262 with the flag u does not "
    "have there; write it as JavaScript reads it"
)
def a_result_with_a_pattern_that_clients_cannot_compile() -> None:
    def find() -> dict[str, Annotated[str, Field(pattern="(?i)^abc$")]]: ...

    tool(find)


@says("find: the schema has more than 2000 subschemas; use a smaller one")
def a_schema_beyond_the_bounds() -> None:
    raw({"type": "object", "properties": {f"a{number}": {} for number in range(2_001)}})


@says("find: the schema is nested deeper than 64 levels; use a flatter one")
def a_schema_that_is_too_deep() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    raw(schema)
