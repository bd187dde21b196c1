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
from messages.cases import says


def name(name: str) -> str:
    return name


def no_parameters() -> str:
    return ""


@says(
    "Server: channels=('ask',) is not possible; use a tuple of 'app', 'page', 'model', 'default', each at "
    "most once and in the order of your choice"
)
def a_channel_that_does_not_exist() -> None:
    Server("x", channels=("ask",))  # type: ignore[arg-type]


@says("legacy_tasks= is set with legacy_clients=False; remove one of them")
def tasks_for_legacy_clients_that_are_not_served() -> None:
    Server("x", legacy_clients=False, legacy_tasks="sep-2322")


@says("legacy_tasks='sep-1' does not exist; use \"sep-2322\" or None")
def tasks_in_a_dialect_that_does_not_exist() -> None:
    Server("x", legacy_tasks="sep-1")  # type: ignore[arg-type]


@says("page_size=0 is not possible; use a whole number from 1")
def a_page_size_of_zero() -> None:
    Server("x", page_size=0)


@says("description= has 0 characters; use 1 to 100, the limit of Server Cards")
def an_empty_description() -> None:
    Server("x", description="")


@says("the server has no name; use the one that clients show")
def a_server_without_a_name() -> None:
    Server(" ")


@says("name, version and title of the server have more than 2000 bytes of JSON; use shorter ones")
def a_title_that_is_too_long() -> None:
    Server("x", title="x" * 3_000)


@says("scopes: 'admin' implies itself; remove it from what it implies")
def a_scope_that_implies_itself() -> None:
    Server("x", scopes={"admin": ["write"], "write": ["admin"]})


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


@says("@server.prompt: a lambda has no name; pass name=, or write a `def`")
def a_prompt_without_a_name() -> None:
    Server("x").prompt(lambda: "")


@says("@server.resource takes a URI; write `@server.resource('docs://guide')`")
def a_resource_without_a_uri() -> None:
    Server("x").resource(no_parameters)  # type: ignore[arg-type]


@says("resource 'guide' has no scheme; write one such as 'docs://guide'")
def a_resource_without_a_scheme() -> None:
    Server("x").resource("guide")(no_parameters)


@says(
    "resource 'docs://{page}': its variables and the function's parameters differ by name, page; "
    "write a parameter of the same name for each variable"
)
def a_resource_with_another_variable() -> None:
    Server("x").resource("docs://{page}")(name)


@says("resource 'docs://guide' is registered twice, first as 'docs://guide'; give one of them another URI")
def a_resource_twice() -> None:
    server = Server("x")
    server.resource("docs://guide")(no_parameters)
    server.resource("docs://guide")(no_parameters)


@says(
    "resource 'docs://guide': ttl_ms=-1, cache_scope='private' is not possible; use whole "
    'milliseconds of at least 0, and "public" or "private"'
)
def a_resource_with_a_negative_lifetime() -> None:
    Server("x").resource("docs://guide", ttl_ms=-1)(no_parameters)


@says("resource 'docs://guide' needs scopes and would be cached for all; use cache_scope=\"private\"")
def a_resource_with_scopes_that_anyone_may_cache() -> None:
    Server("x").resource("docs://guide", scopes=["read"], cache_scope="public")(no_parameters)


@says("resource docs://guide: size must be a whole number of bytes")
def a_resource_whose_size_is_no_number() -> None:
    Server("x").resource("docs://guide", size="2 kB")(no_parameters)  # type: ignore[arg-type]


def template(text: str) -> None:
    Server("x").resource(text)(name)


@says("URI template 'docs://{name': '{' cannot be there; percent-encode it, and write variables as {name}")
def a_template_with_a_brace() -> None:
    template("docs://{name")


@says(
    "URI template 'docs://my docs/{name}': ' ' cannot be there; "
    "percent-encode it, and write variables as {name}"
)
def a_template_with_a_space() -> None:
    template("docs://my docs/{name}")


@says("URI template 'docs://{name}/{name}': a variable occurs twice; give one of them another name")
def a_template_with_a_variable_twice() -> None:
    template("docs://{name}/{name}")


@says(
    "URI template 'docs://{name}{.format}': {.format} is not supported; "
    "write {name}, {+name}, {/name} or {?a,b}"
)
def a_template_with_an_expression_that_is_not_supported() -> None:
    template("docs://{name}{.format}")


@says("URI template 'docs://{name}{other}': put '/' or another reserved character between {other} and {name}")
def a_template_without_text_between_variables() -> None:
    template("docs://{name}{other}")


@says("URI template 'docs://x{/name}.md': put '/' or another reserved character after {/name}")
def a_template_with_text_after_a_segment() -> None:
    template("docs://x{/name}.md")


@says(
    "URI template 'docs://x/{+name}/{+other}': write /{name} for {+other}: after {+…} its end cannot be found"
)
def a_template_with_two_paths() -> None:
    template("docs://x/{+name}/{+other}")


@says(
    "URI template 'docs://x{?name}/more': {?name} is not at the end; "
    "put it there once, without another '?' or '#'"
)
def a_template_with_text_after_a_query() -> None:
    template("docs://x{?name}/more")


@says(
    "completion of 'plan', 'place': no prompt or resource of that name has such an argument; "
    "register the prompt or resource above the completion"
)
def a_completion_without_its_prompt() -> None:
    Server("x").completion("plan", "place")(name)


@says("URI template 'docs://x/../{name}': remove '.' and '..' segments")
def a_template_with_dot_segments() -> None:
    template("docs://x/../{name}")


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


@says("completion of 'plan', 'place' is registered twice; remove one of them")
def a_completion_twice() -> None:
    completion(name).completion("plan", "place")(name)


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


@says("a completion returned str; return a list of str, or a Completion", UsageError)
def a_completion_that_returns_one_text() -> None:
    Completion("Oslo")


@says("a completion returned list; return a list of str, or a Completion", UsageError)
def a_completion_that_returns_numbers() -> None:
    Completion([1])  # type: ignore[list-item]


@says("Completion.total is 1, with 2 values; pass how many there are in all, or None", UsageError)
def a_completion_with_too_small_a_total() -> None:
    Completion(["Oslo", "Bergen"], total=1)


@says("one_of has no options; pass at least one option, and each of them once")
def a_choice_without_options() -> None:
    one_of([])


@says("one_of has 'a' or another option twice; pass at least one option, and each of them once")
def a_choice_twice() -> None:
    one_of(["a", "b", "a"])


def returned(value: Any, annotation: Any = None) -> None:
    def find() -> Any: ...

    if annotation is not None:
        find.__annotations__["return"] = annotation
    Output.from_function(find).dump(value)


@says(
    "find returned a value that does not fit its return type list[int]; return what the annotation "
    "says, or change it\n"
    "result[0]: Input should be a valid integer, unable to parse string as an integer",
    UsageError,
)
def a_result_of_another_type() -> None:
    returned(["secret"], list[int])


@says("find returned int; return Text | None, as annotated", UsageError)
def a_result_that_is_no_block() -> None:
    returned(1, Text | None)


@says(
    "find returned a value that JSON cannot hold, at result.a[0]: object; return text, numbers, "
    "lists, dicts, models or dataclasses",
    UsageError,
)
def a_result_that_json_cannot_hold() -> None:
    returned({"a": [object()]})


@says(
    "find returned a value that does not fit its return type list[dict[str, Any]], at result[0].a: "
    "object; return what the annotation says, or change it",
    UsageError,
)
def a_typed_result_that_json_cannot_hold() -> None:
    returned([{"a": object()}], list[dict[str, Any]])


@says("find returned content blocks, and its return type list[Any] is for data; write `-> list`", UsageError)
def blocks_as_data() -> None:
    returned([Text("a")], list[Any])


@says(
    "find returned a value that JSON cannot hold, at result[0]: NaN or Infinity; return text, "
    "numbers, lists, dicts, models or dataclasses",
    UsageError,
)
def a_typed_result_that_is_no_number() -> None:
    returned([math.nan], list[Any])


@says(
    "find returned a value that does not fit its return type int; return what the annotation says, or change "
    "it\n"
    "result: Input should be 1 or more",
    UsageError,
)
def a_result_that_its_schema_refuses() -> None:
    returned(0, Annotated[int, Field(ge=1)])


@says(
    "find returned a value that JSON cannot hold, at result[0]: half of a surrogate pair; return text, "
    "numbers, lists, dicts, models or dataclasses",
    UsageError,
)
def a_typed_result_with_half_of_a_surrogate_pair() -> None:
    returned(["\udc80"], list[str])


@says("find returned a dict with two keys that have one name in JSON; use other keys", UsageError)
def a_result_with_two_keys_of_one_name() -> None:
    returned({1: "a", "1": "b"})


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


@says("Text.text must be str", UsageError)
def a_text_block_of_a_number() -> None:
    Text(1)  # type: ignore[arg-type]


@says("Text.text must be text without half of a surrogate pair", UsageError)
def text_that_is_no_unicode() -> None:
    Text("\udc80")


@says("Image.data must be bytes", UsageError)
def an_image_of_text() -> None:
    Image("…", "image/png")  # type: ignore[arg-type]


@says("resource docs://guide: meta must be a mapping")
def metadata_that_are_no_mapping() -> None:
    Server("x").resource("docs://guide", meta=["a"])(lambda: "")  # type: ignore[arg-type]


@says("Text.annotations must be a mapping", UsageError)
def annotations_of_a_block_that_are_no_mapping() -> None:
    Text("a", annotations="user")  # type: ignore[arg-type]


@says('Text.annotations.audience must be a list of "user" and "assistant"', UsageError)
def an_audience_that_is_no_list() -> None:
    Text("a", annotations={"audience": "user"})


@says("Text.annotations must be JSON, at Text.annotations.a: object", UsageError)
def annotations_that_are_no_json() -> None:
    Text("a", annotations={"a": object()}).to_wire()


@says("ResourceLink.size must be a whole number of bytes", UsageError)
def a_link_with_a_negative_size() -> None:
    ResourceLink("docs://guide", "guide", size=-1)


@says("EmbeddedResource has both text and blob, or neither; pass one of them", UsageError)
def a_resource_with_two_contents() -> None:
    EmbeddedResource("docs://guide", text="a", blob=b"a")


@says(
    "guide returned ResourceLink, which is no contents of a resource; return text, bytes, Image, Audio or "
    "ResourceContents",
    UsageError,
)
def a_link_as_contents() -> None:
    resource_contents("guide", ResourceLink("docs://guide", "guide"), "docs://guide", None)


@says("ResourceContents has both text and blob, or neither; pass one of them", UsageError)
def contents_without_content() -> None:
    ResourceContents()


@says(
    "guide returned a list of ResourceContents and other items; return only ResourceContents",
    UsageError,
)
def contents_beside_other_items() -> None:
    resource_contents("guide", [ResourceContents("a"), "b"], "docs://guide", None)


@says("guide returned None; return contents, or raise ResourceNotFound", UsageError)
def contents_that_are_not_there() -> None:
    resource_contents("guide", None, "docs://guide", None)


@says(
    "guide returned a value that JSON cannot hold, at result.a: object; return text, numbers, lists, "
    "dicts, models or dataclasses",
    UsageError,
)
def contents_that_json_cannot_hold() -> None:
    resource_contents("guide", {"a": object()}, "docs://guide", None)


@says(
    "PromptMessage: 'system' with str is not a message; pass a str or one content block, and "
    'role="user" or role="assistant"',
    UsageError,
)
def a_message_with_an_unknown_role() -> None:
    PromptMessage("a", role="system")  # type: ignore[arg-type]


@says(
    "plan returned int, which is not a message; return a str, a content block, a PromptMessage or a "
    "list of them",
    UsageError,
)
def a_prompt_that_returns_a_number() -> None:
    prompt_messages("plan", 1)


@says(
    "server.skills('skills') is no path, or there twice; write "
    'server.skills(Path(__file__).with_name("skills")) once'
)
def a_folder_of_skills_as_text() -> None:
    Server("x").skills("skills")  # type: ignore[arg-type]


@says("/nowhere/skills.json is missing or no manifest; run `make catalog`")
def a_folder_of_skills_without_a_manifest() -> None:
    read_manifests({Path("/nowhere/skills"): ()})


@says("skill://one/SKILL.md differs from its manifest; run `make catalog`, and deploy again")
def a_file_of_a_skill_that_was_edited() -> None:
    file = {"uri": "skill://one/SKILL.md", "digest": "sha256:", "size": 1}
    entry: SkillEntry = {"uri": "skill://one/SKILL.md", "frontmatter": {}, "resources": [file]}
    OwnSkill(Path("/nowhere/skills"), entry).read(file)
