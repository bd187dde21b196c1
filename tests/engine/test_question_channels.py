"""Each kind of question: the request it sends and how it reads answers."""

import math
from typing import Any

import pytest
from mcp_types import CreateMessageRequestParams

from mcp_roundtrip import (
    Context,
    DefinitionError,
    NamespacedRequest,
    Sample,
    Sampled,
    UsageError,
)
from mcp_roundtrip.engine.context_base import CallInfo
from support.passes import Passes, error, value


def messages(**content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


TOOL = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {}}}}
EVERYTHING: dict[str, Any] = {
    "systemPrompt": "Be brief",
    "temperature": 0,
    "stopSequences": ["."],
    "includeContext": "none",
    "modelPreferences": {"hints": [{"name": "small"}, {}], "costPriority": 1, "speedPriority": 0.5},
    "metadata": {"a": None},
    "tools": [TOOL, {**TOOL, "annotations": {"readOnlyHint": True}, "description": "Add."}],
    "toolChoice": {"mode": "auto"},
    "_meta": {"a/b": 1},
}
CONTENTS: list[dict[str, Any]] = [
    {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 1}},
    {"type": "image", "data": "iVA=", "mimeType": "image/png"},
    {"type": "audio", "data": "", "mimeType": "audio/wav"},
    {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}},
    {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "a"}], "isError": False},
]

TEXT, _, _, USE, RESULT = CONTENTS


def test_all_params_of_the_schema_are_accepted():
    *others, _, _ = CONTENTS
    conversation = [
        {"role": "user", "content": others},
        {"role": "assistant", "content": [*others, USE]},
        {"role": "user", "content": [RESULT]},
        *(messages(**each)[0] for each in others),
    ]
    params = Sample("a", conversation, 5, EVERYTHING).params()
    assert params == {"messages": conversation, "maxTokens": 5, **EVERYTHING}
    CreateMessageRequestParams.model_validate(params)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"messages": [{"role": "system", "content": CONTENTS[0]}]}, "$.messages[0].role"),
        ({"messages": messages(type="video")}, "$.messages[0].content.type"),
        ({"messages": messages(type="image", data="!", mimeType="image/png")}, "$.messages[0].content.data"),
        ({"messages": messages(type="image", data=b"", mimeType="image/png")}, "bytes"),
        ({"messages": messages(**TEXT, _meta=1)}, "$.messages[0].content._meta"),
        ({"max_tokens": 2**53}, "$.maxTokens"),
        ({"temperature": math.nan}, "JSON"),
        ({"_meta": {"com.example/a b": 1}}, "$._meta"),
        ({"tools": [{"name": "a", "inputSchema": {"type": "string"}}]}, "$.tools[0].inputSchema.type"),
        ({"tools": [{**TOOL, "icons": [1]}]}, "$.tools[0].icons[0]"),
    ],
)
def test_params_that_the_schema_does_not_allow_are_refused_by_place(given, place):
    call = Passes(lambda ctx: ctx.sample("a", **{"messages": "?", "max_tokens": 5, **given}))
    assert place in str(error(call(), DefinitionError))


@pytest.mark.parametrize(
    "conversation",
    [
        [("assistant", USE)],
        [("assistant", USE), ("user", TEXT), ("user", RESULT)],
        [("assistant", USE), ("user", RESULT, TEXT)],
        [("assistant", USE), ("assistant", RESULT)],
        [("assistant", USE), ("user", RESULT, RESULT)],
        [("user", TEXT), ("user", RESULT)],
    ],
    ids=["no result", "another message before it", "mixed", "not the user's", "twice", "without a use"],
)
def test_each_use_of_a_tool_has_its_result_in_the_next_message(conversation):
    given = [{"role": role, "content": blocks} for role, *blocks in conversation]
    call = Passes(lambda ctx: ctx.sample("a", given, max_tokens=5))
    assert "$.messages[1]" in str(error(call(), DefinitionError))


def test_the_text_of_several_blocks_is_joined():
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"},
              {"type": "text", "text": "b"}]  # fmt: skip
    assert Sampled("assistant", blocks, "m").text == "ab"


def approval(ctx: Context) -> Any:
    return ctx.request("approve", "com.example/approval", {"amount": 5})


EXTENDED = {"extensions": {"com.example/approval": {}}}
ENABLED = CallInfo(namespaced_requests=True)


def test_namespaced_requests_are_disabled_by_default():
    among_others = NamespacedRequest("approve", "com.example/approval", {})
    for body in (approval, lambda ctx: ctx.ask(among_others)):
        assert error(Passes(body, EXTENDED)(), UsageError)


@pytest.mark.parametrize(
    "name",
    ["approval", "com.example", "io.modelcontextprotocol/x", "com.mcp/x", "tasks/get", "COM.example/x", "a/"],
)
def test_only_reverse_dns_names_outside_the_reserved_ones_are_namespaced(name):
    call = Passes(lambda ctx: ctx.request("k", name), {"extensions": {name: {}}}, info=ENABLED)
    assert error(call(), DefinitionError)


def test_a_signed_links_token_is_in_the_query_and_not_in_the_fragment():
    link = value(Passes(lambda ctx: ctx.signed_link("link", "https://x.test/app?a=1#/pay"))())
    address, _, fragment = link.partition("#")
    assert address.startswith("https://x.test/app?a=1&mcp_link=")
    assert fragment == "/pay"
