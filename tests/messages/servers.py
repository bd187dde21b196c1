from __future__ import annotations

import json
import math
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from mcp.server.mcpserver import Resolve
from mcp_types import TextContent
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
from mcp_roundtrip.content.blocks import prompt_messages, resource_contents
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.server.skills import OwnSkill, SkillEntry, read_manifests
from mcp_roundtrip_testing import Player
from messages.cases import mistake, mistakes


def name(name: str) -> str:
    return name


def no_parameters() -> str:
    return ""


@mistake()
def a_prompt_with_a_header() -> None:
    def plan(place: Annotated[str, McpHeader("Place")]) -> str:
        return ""

    Server("x").prompt(plan)


@mistake()
def a_dependency_of_fastmcp() -> None:
    def find(user: str = type("_TokenClaim", (), {"__module__": "fastmcp.server.dependencies"})()) -> str: ...

    Server("x").tool(find)


@mistake()
def a_dependency_of_the_python_sdk() -> None:
    def find(user: Annotated[str, Resolve(no_parameters)]) -> str: ...

    Server("x").tool(find)


@mistake()
def a_decorator_for_event_handlers() -> None:
    Server("x").tool(wraps(name)(lambda event, context: event(context)))


@mistake()
def a_resource_twice() -> None:
    server = Server("x")
    server.resource("docs://guide")(no_parameters)
    server.resource("docs://guide")(no_parameters)


def template(text: str) -> None:
    Server("x").resource(text)(name)


@mistake()
def a_front_door_that_hides_what_its_owners_show() -> None:
    owned = {"owner": "find", "scopes": ["read"], "definition": {"name": "find", "inputSchema": {}}}
    with TemporaryDirectory() as folder:
        catalog = Path(folder, "catalog.json")
        catalog.write_text(json.dumps({"tools": [owned]}))
        FrontDoor("x", catalog, hide_unauthorized=True)


@mistake(UsageError)
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


@mistake()
def a_completion_that_is_async() -> None:
    async def suggest(value: str) -> list[str]:
        return []

    completion(suggest)


@mistake()
def a_completion_with_a_context() -> None:
    def suggest(ctx: Context, value: str) -> list[str]:
        return []

    completion(suggest)


@mistake()
def a_completion_without_parameters() -> None:
    def suggest() -> list[str]:
        return []

    completion(suggest)


def returned(value: Any, annotation: Any = None) -> None:
    def find() -> Any: ...

    if annotation is not None:
        find.__annotations__["return"] = annotation
    Output.from_function(find).dump(value)


@mistake(UsageError)
def a_coroutine_as_a_result() -> None:
    async def later() -> str:
        return ""

    server = Server("x")
    server.tool(name="find")(lambda: later())
    if error := Player(server).call("find").raised:
        raise error


@mistake()
def a_result_whose_type_is_unusable() -> None:
    class Connection: ...

    returned(1, Connection)


@mistake()
def a_file_of_a_skill_that_was_edited() -> None:
    file = {"uri": "skill://one/SKILL.md", "digest": "sha256:", "size": 1}
    entry: SkillEntry = {"uri": "skill://one/SKILL.md", "frontmatter": {}, "resources": [file]}
    OwnSkill(Path("/nowhere/skills"), entry).read(file)


mistakes(
    __name__,
    DefinitionError,
    {
        "a channel that does not exist": lambda: Server("x", channels=("ask",)),
        "tasks for legacy clients that are not served": lambda: Server(
            "x", legacy_clients=False, legacy_tasks="sep-2322"
        ),
        "tasks in a dialect that does not exist": lambda: Server("x", legacy_tasks="sep-1"),
        "a page size of zero": lambda: Server("x", page_size=0),
        "a list that was cached before it was sent": lambda: Server("x", list_ttl_ms=-1),
        "an empty description": lambda: Server("x", description=""),
        "a server without a name": lambda: Server(" "),
        "a title that is too long": lambda: Server("x", title="x" * 3_000),
        "scopes of a server that are a list": lambda: Server("x", scopes=["orders.read"]),
        "a scope that implies itself": lambda: Server("x", scopes={"admin": ["write"], "write": ["admin"]}),
        "a prompt without a name": lambda: Server("x").prompt(lambda: ""),
        "a resource without a uri": lambda: Server("x").resource(no_parameters),
        "a resource without a scheme": lambda: Server("x").resource("guide")(no_parameters),
        "a resource with another variable": lambda: Server("x").resource("docs://{page}")(name),
        "a resource with a negative lifetime": lambda: Server("x").resource("docs://guide", ttl_ms=-1)(
            no_parameters
        ),
        "a resource with scopes that anyone may cache": lambda: Server("x").resource(
            "docs://guide", scopes=["read"], cache_scope="public"
        )(no_parameters),
        "a resource whose size is no number": lambda: Server("x").resource("docs://guide", size="2 kB")(
            no_parameters
        ),
        "a template with a brace": lambda: template("docs://{name"),
        "a template with a space": lambda: template("docs://my docs/{name}"),
        "a template with a variable twice": lambda: template("docs://{name}/{name}"),
        "a template with an expression that is not supported": lambda: template("docs://{name}{.format}"),
        "a template without text between variables": lambda: template("docs://{name}{other}"),
        "a template with text after a segment": lambda: template("docs://x{/name}.md"),
        "a template with two paths": lambda: template("docs://x/{+name}/{+other}"),
        "a template with text after a query": lambda: template("docs://x{?name}/more"),
        "a completion without its prompt": lambda: Server("x").completion("plan", "place")(name),
        "a completion of another argument": lambda: completion(name).completion("plan", "places")(name),
        "a template with dot segments": lambda: template("docs://x/../{name}"),
        "a completion twice": lambda: completion(name).completion("plan", "place")(name),
        "a choice without options": lambda: one_of([]),
        "a choice twice": lambda: one_of(["a", "b", "a"]),
        "a choice that is no text": lambda: one_of([["a"]]),
        "metadata that are no mapping": lambda: Server("x").resource("docs://guide", meta=["a"])(lambda: ""),
        "a folder of skills as text": lambda: Server("x").skills("skills"),
        "a folder of skills without a manifest": lambda: read_manifests({Path("/nowhere/skills"): ()}),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "a completion that returns one text": lambda: Completion("Oslo"),
        "a completion that returns numbers": lambda: Completion([1]),
        "a completion with too small a total": lambda: Completion(["Oslo", "Bergen"], total=1),
        "a result of another type": lambda: returned(["secret"], list[int]),
        "a result that is no block": lambda: returned(1, Text | None),
        "no text as a result": lambda: returned(None, str),
        "no model as a result": lambda: returned(None, list[int]),
        "a generator as a result": lambda: returned((each for each in "ab"), list[str]),
        "a result that json cannot hold": lambda: returned({"a": [object()]}),
        "a typed result that json cannot hold": lambda: returned([{"a": object()}], list[dict[str, Any]]),
        "a block of the python sdk": lambda: returned([TextContent(type="text", text="a")]),
        "blocks as data": lambda: returned([Text("a")], list[Any]),
        "a typed result that is no number": lambda: returned([math.nan], list[Any]),
        "a result that its schema refuses": lambda: returned(0, Annotated[int, Field(ge=1)]),
        "a typed result with half of a surrogate pair": lambda: returned(["\udc80"], list[str]),
        "a result with two keys of one name": lambda: returned({1: "a", "1": "b"}),
        "a text block of a number": lambda: Text(1),
        "text that is no unicode": lambda: Text("\udc80"),
        "an image of text": lambda: Image("…", "image/png"),
        "annotations of a block that are no mapping": lambda: Text("a", annotations="user"),
        "an audience that is no list": lambda: Text("a", annotations={"audience": "user"}),
        "annotations that are no json": lambda: Text("a", annotations={"a": object()}).to_wire(),
        "a link with a negative size": lambda: ResourceLink("docs://guide", "guide", size=-1),
        "a link without a scheme": lambda: ResourceLink("guide", "guide"),
        "a resource with two contents": lambda: EmbeddedResource("docs://guide", text="a", blob=b"a"),
        "a link as contents": lambda: resource_contents(
            "guide", ResourceLink("docs://guide", "guide"), "docs://guide", None
        ),
        "contents without content": lambda: ResourceContents(),
        "contents beside other items": lambda: resource_contents(
            "guide", [ResourceContents("a"), "b"], "docs://guide", None
        ),
        "contents that are not there": lambda: resource_contents("guide", None, "docs://guide", None),
        "contents that json cannot hold": lambda: resource_contents(
            "guide", {"a": object()}, "docs://guide", None
        ),
        "a message with an unknown role": lambda: PromptMessage("a", role="system"),
        "a prompt that returns a number": lambda: prompt_messages("plan", 1),
        "a prompt without messages": lambda: prompt_messages("plan", []),
        "a message as a dict": lambda: prompt_messages("plan", ["a", {"role": "user", "content": "b"}]),
    },
)
