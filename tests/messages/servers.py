"""Servers, prompts, resources and completions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import Field

from mcp_roundtrip import (
    Completion,
    Context,
    DefinitionError,
    EmbeddedResource,
    FrontDoor,
    Image,
    PromptMessage,
    ProtocolError,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
    UsageError,
    one_of,
)
from mcp_roundtrip.arguments.mcp_header import McpHeader
from mcp_roundtrip.content.blocks import prompt_messages
from mcp_roundtrip.content.resource_contents import resource_contents
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.server.skills import OwnSkill, SkillEntry, read_manifests
from mcp_roundtrip_testing import Player
from messages.cases import mistakes, says


def name(name: str) -> str:
    return name


def no_parameters() -> str:
    return ""


@says(
    "plan: parameter 'places' arrives as text, and list[str] is not read from one; use str, int, "
    "bool, datetime, an Enum or another type of one value"
)
def a_prompt_of_a_list() -> None:
    def plan(places: list[str]) -> str:
        return ""

    Server("x").prompt(plan)


@says("plan: McpHeader is for the parameters of tools; remove it")
def a_prompt_with_a_header() -> None:
    def plan(place: Annotated[str, McpHeader("Place")]) -> str:
        return ""

    Server("x").prompt(plan)


@says("resource 'docs://guide' is registered twice, first as 'docs://guide'; give one of them another URI")
def a_resource_twice() -> None:
    server = Server("x")
    server.resource("docs://guide")(no_parameters)
    server.resource("docs://guide")(no_parameters)


def template(text: str) -> None:
    Server("x").resource(text)(name)


@says(
    "FrontDoor(hide_unauthorized=True), and by the catalog the owners' servers do otherwise, whom "
    "callers can ask at their own paths; write Server(..., hide_unauthorized=True) for each owner "
    "with scopes and run `make catalog`, or remove it from the front door"
)
def a_front_door_that_hides_what_its_owners_show() -> None:
    owned = {"owner": "find", "scopes": ["read"], "definition": {"name": "find", "inputSchema": {}}}
    with TemporaryDirectory() as folder:
        catalog = Path(folder, "catalog.json")
        catalog.write_text(json.dumps({"tools": [owned]}))
        FrontDoor("x", catalog, hide_unauthorized=True)


@says(
    "ProtocolError(-32002) cannot be sent: it belongs to earlier versions of MCP; raise ResourceNotFound",
    UsageError,
)
def an_error_code_of_earlier_versions() -> None:
    server = Server("x")

    @server.tool
    def find() -> None:
        raise ProtocolError(-32002, "not there")

    playing = Player(server)
    playing.call("find")
    raise playing.observer.failures[-1][1]


def completion(function: Any) -> Server:
    server = Server("x")

    @server.prompt
    def plan(place: str) -> str:
        return ""

    server.completion("plan", "place")(function)
    return server


@says("suggest: a completion is not async; write `def`")
def a_completion_that_is_async() -> None:
    async def suggest(value: str) -> list[str]:
        return []

    completion(suggest)


@says("suggest: a completion takes no context; remove the parameter")
def a_completion_with_a_context() -> None:
    def suggest(ctx: Context, value: str) -> list[str]:
        return []

    completion(suggest)


@says(
    "suggest: a completion takes the text typed so far and, if it needs them, the other arguments; "
    "write `def suggest(value: str, arguments: dict[str, str])`"
)
def a_completion_without_parameters() -> None:
    def suggest() -> list[str]:
        return []

    completion(suggest)


def returned(value: Any, annotation: Any = None) -> None:
    def find() -> Any: ...

    if annotation is not None:
        find.__annotations__["return"] = annotation
    Output.from_function(find).dump(value)


@says("find returned a coroutine without awaiting it; write `async def find`", UsageError)
def a_coroutine_as_a_result() -> None:
    async def later() -> str:
        return ""

    returned(later())


@says(
    "find: the return type: Connection cannot be written as JSON; use a type such as str, int, bool, "
    "datetime, list[str], a dataclass or a pydantic model"
)
def a_result_whose_type_is_unusable() -> None:
    class Connection: ...

    returned(1, Connection)


@says("skill://one/SKILL.md differs from its manifest; run `make catalog`, and deploy again")
def a_file_of_a_skill_that_was_edited() -> None:
    file = {"uri": "skill://one/SKILL.md", "digest": "sha256:", "size": 1}
    entry: SkillEntry = {"uri": "skill://one/SKILL.md", "frontmatter": {}, "resources": [file]}
    OwnSkill(Path("/nowhere/skills"), entry).read(file)


mistakes(
    __name__,
    DefinitionError,
    {
        "a channel that does not exist": (
            lambda: Server("x", channels=("ask",)),
            "Server: channels=('ask',) is not possible; use a tuple of 'app', 'page', 'model', 'default', "
            "each at most once and in the order of your choice",
        ),
        "tasks for legacy clients that are not served": (
            lambda: Server("x", legacy_clients=False, legacy_tasks="sep-2322"),
            "legacy_tasks= is set with legacy_clients=False; remove one of them",
        ),
        "tasks in a dialect that does not exist": (
            lambda: Server("x", legacy_tasks="sep-1"),
            "legacy_tasks='sep-1' does not exist; use \"sep-2322\" or None",
        ),
        "a page size of zero": (
            lambda: Server("x", page_size=0),
            "page_size=0 is not possible; use a whole number from 1",
        ),
        "an empty description": (
            lambda: Server("x", description=""),
            "description= has 0 characters; use 1 to 100, the limit of Server Cards",
        ),
        "a server without a name": (
            lambda: Server(" "),
            "the server has no name; use the one that clients show",
        ),
        "a title that is too long": (
            lambda: Server("x", title="x" * 3_000),
            "name, version and title of the server have more than 2000 bytes of JSON; use shorter ones",
        ),
        "a scope that implies itself": (
            lambda: Server("x", scopes={"admin": ["write"], "write": ["admin"]}),
            "scopes: 'admin' implies itself; remove it from what it implies",
        ),
        "a prompt without a name": (
            lambda: Server("x").prompt(lambda: ""),
            "@server.prompt: a lambda has no name; pass name=, or write a `def`",
        ),
        "a resource without a uri": (
            lambda: Server("x").resource(no_parameters),
            "@server.resource takes a URI; write `@server.resource('docs://guide')`",
        ),
        "a resource without a scheme": (
            lambda: Server("x").resource("guide")(no_parameters),
            "resource 'guide' has no scheme; write one such as 'docs://guide'",
        ),
        "a resource with another variable": (
            lambda: Server("x").resource("docs://{page}")(name),
            "resource 'docs://{page}': its variables and the function's parameters differ by name, page; "
            "write a parameter of the same name for each variable",
        ),
        "a resource with a negative lifetime": (
            lambda: Server("x").resource("docs://guide", ttl_ms=-1)(no_parameters),
            "resource 'docs://guide': ttl_ms=-1, cache_scope='private' is not possible; use whole "
            'milliseconds of at least 0, and "public" or "private"',
        ),
        "a resource with scopes that anyone may cache": (
            lambda: Server("x").resource("docs://guide", scopes=["read"], cache_scope="public")(
                no_parameters
            ),
            "resource 'docs://guide' needs scopes and would be cached for all; use cache_scope=\"private\"",
        ),
        "a resource whose size is no number": (
            lambda: Server("x").resource("docs://guide", size="2 kB")(no_parameters),
            "resource docs://guide: size must be a whole number of bytes",
        ),
        "a template with a brace": (
            lambda: template("docs://{name"),
            "URI template 'docs://{name': '{' cannot be there; percent-encode it, and write variables as "
            "{name}",
        ),
        "a template with a space": (
            lambda: template("docs://my docs/{name}"),
            "URI template 'docs://my docs/{name}': ' ' cannot be there; percent-encode it, and write "
            "variables as {name}",
        ),
        "a template with a variable twice": (
            lambda: template("docs://{name}/{name}"),
            "URI template 'docs://{name}/{name}': a variable occurs twice; give one of them another name",
        ),
        "a template with an expression that is not supported": (
            lambda: template("docs://{name}{.format}"),
            "URI template 'docs://{name}{.format}': {.format} is not supported; write {name}, {+name}, "
            "{/name} or {?a,b}",
        ),
        "a template without text between variables": (
            lambda: template("docs://{name}{other}"),
            "URI template 'docs://{name}{other}': put '/' or another reserved character between {other} and "
            "{name}",
        ),
        "a template with text after a segment": (
            lambda: template("docs://x{/name}.md"),
            "URI template 'docs://x{/name}.md': put '/' or another reserved character after {/name}",
        ),
        "a template with two paths": (
            lambda: template("docs://x/{+name}/{+other}"),
            "URI template 'docs://x/{+name}/{+other}': write /{name} for {+other}: after {+…} its end cannot "
            "be found",
        ),
        "a template with text after a query": (
            lambda: template("docs://x{?name}/more"),
            "URI template 'docs://x{?name}/more': {?name} is not at the end; put it there once, without "
            "another '?' or '#'",
        ),
        "a completion without its prompt": (
            lambda: Server("x").completion("plan", "place")(name),
            "completion of 'plan', 'place': no prompt or resource of that name has such an argument; "
            "register the prompt or resource above the completion",
        ),
        "a template with dot segments": (
            lambda: template("docs://x/../{name}"),
            "URI template 'docs://x/../{name}': remove '.' and '..' segments",
        ),
        "a completion twice": (
            lambda: completion(name).completion("plan", "place")(name),
            "completion of 'plan', 'place' is registered twice; remove one of them",
        ),
        "a choice without options": (
            lambda: one_of([]),
            "one_of has no options; pass at least one option, and each of them once",
        ),
        "a choice twice": (
            lambda: one_of(["a", "b", "a"]),
            "one_of has 'a' or another option twice; pass at least one option, and each of them once",
        ),
        "metadata that are no mapping": (
            lambda: Server("x").resource("docs://guide", meta=["a"])(lambda: ""),
            "resource docs://guide: meta must be a mapping",
        ),
        "a folder of skills as text": (
            lambda: Server("x").skills("skills"),
            "server.skills('skills') is no path, or there twice; write "
            'server.skills(Path(__file__).with_name("skills")) once',
        ),
        "a folder of skills without a manifest": (
            lambda: read_manifests({Path("/nowhere/skills"): ()}),
            "/nowhere/skills.json is missing or no manifest; run `make catalog`",
        ),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "a completion that returns one text": (
            lambda: Completion("Oslo"),
            "a completion returned str; return a list of str, or a Completion",
        ),
        "a completion that returns numbers": (
            lambda: Completion([1]),
            "a completion returned list; return a list of str, or a Completion",
        ),
        "a completion with too small a total": (
            lambda: Completion(["Oslo", "Bergen"], total=1),
            "Completion.total is 1, with 2 values; pass how many there are in all, or None",
        ),
        "a result of another type": (
            lambda: returned(["secret"], list[int]),
            "find returned a value that does not fit its return type list[int]; return what the annotation "
            "says, or change it\n"
            "result[0]: Input should be a valid integer, unable to parse string as an integer",
        ),
        "a result that is no block": (
            lambda: returned(1, Text | None),
            "find returned int; return Text | None, as annotated",
        ),
        "a result that json cannot hold": (
            lambda: returned({"a": [object()]}),
            "find returned a value that JSON cannot hold, at result.a[0]: object; return text, numbers, "
            "lists, dicts, models or dataclasses",
        ),
        "a typed result that json cannot hold": (
            lambda: returned([{"a": object()}], list[dict[str, Any]]),
            "find returned a value that does not fit its return type list[dict[str, Any]], at result[0].a: "
            "object; return what the annotation says, or change it",
        ),
        "blocks as data": (
            lambda: returned([Text("a")], list[Any]),
            "find returned content blocks, and its return type list[Any] is for data; write `-> list`",
        ),
        "a typed result that is no number": (
            lambda: returned([math.nan], list[Any]),
            "find returned a value that JSON cannot hold, at result[0]: NaN or Infinity; return text, "
            "numbers, lists, dicts, models or dataclasses",
        ),
        "a result that its schema refuses": (
            lambda: returned(0, Annotated[int, Field(ge=1)]),
            "find returned a value that does not fit its return type int; return what the annotation says, "
            "or change it\n"
            "result: Input should be 1 or more",
        ),
        "a typed result with half of a surrogate pair": (
            lambda: returned(["\udc80"], list[str]),
            "find returned a value that JSON cannot hold, at result[0]: half of a surrogate pair; return "
            "text, numbers, lists, dicts, models or dataclasses",
        ),
        "a result with two keys of one name": (
            lambda: returned({1: "a", "1": "b"}),
            "find returned a dict with two keys that have one name in JSON; use other keys",
        ),
        "a text block of a number": (lambda: Text(1), "Text.text must be str"),
        "text that is no unicode": (
            lambda: Text("\udc80"),
            "Text.text must be text without half of a surrogate pair",
        ),
        "an image of text": (lambda: Image("…", "image/png"), "Image.data must be bytes"),
        "annotations of a block that are no mapping": (
            lambda: Text("a", annotations="user"),
            "Text.annotations must be a mapping",
        ),
        "an audience that is no list": (
            lambda: Text("a", annotations={"audience": "user"}),
            'Text.annotations.audience must be a list of "user" and "assistant"',
        ),
        "annotations that are no json": (
            lambda: Text("a", annotations={"a": object()}).to_wire(),
            "Text.annotations must be JSON, at Text.annotations.a: object",
        ),
        "a link with a negative size": (
            lambda: ResourceLink("docs://guide", "guide", size=-1),
            "ResourceLink.size must be a whole number of bytes",
        ),
        "a resource with two contents": (
            lambda: EmbeddedResource("docs://guide", text="a", blob=b"a"),
            "EmbeddedResource has both text and blob, or neither; pass one of them",
        ),
        "a link as contents": (
            lambda: resource_contents("guide", ResourceLink("docs://guide", "guide"), "docs://guide", None),
            "guide returned ResourceLink, which is no contents of a resource; return text, bytes, Image, "
            "Audio or ResourceContents",
        ),
        "contents without content": (
            lambda: ResourceContents(),
            "ResourceContents has both text and blob, or neither; pass one of them",
        ),
        "contents beside other items": (
            lambda: resource_contents("guide", [ResourceContents("a"), "b"], "docs://guide", None),
            "guide returned a list of ResourceContents and other items; return only ResourceContents",
        ),
        "contents that are not there": (
            lambda: resource_contents("guide", None, "docs://guide", None),
            "guide returned None; return contents, or raise ResourceNotFound",
        ),
        "contents that json cannot hold": (
            lambda: resource_contents("guide", {"a": object()}, "docs://guide", None),
            "guide returned a value that JSON cannot hold, at result.a: object; return text, numbers, lists, "
            "dicts, models or dataclasses",
        ),
        "a message with an unknown role": (
            lambda: PromptMessage("a", role="system"),
            "PromptMessage: 'system' with str is not a message; pass a str or one content block, and "
            'role="user" or role="assistant"',
        ),
        "a prompt that returns a number": (
            lambda: prompt_messages("plan", 1),
            "plan returned int, which is not a message; return a str, a content block, a PromptMessage or a "
            "list of them",
        ),
    },
)
