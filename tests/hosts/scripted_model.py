"""A model on 127.0.0.1 that calls the tools of a script, by the APIs that AI applications use.

When a tool's result has the link of a question page, it lets the user answer there and makes the same call
again, as the result tells it to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from support.page_user import LINK

MODEL: Final = "scripted"
DONE: Final = "Done."


@dataclass(frozen=True)
class ToolCall:
    """A tool of the server and its arguments."""

    tool: str
    arguments: Mapping[str, Any]


def _continued(call: ToolCall, output: str) -> ToolCall:
    """Return the call that continues another one: with a code, if its result gives the model one."""
    code = re.search(r'continuation_code \\*"([\w-]+)', output)
    return call if code is None else ToolCall(call.tool, {**call.arguments, "continuation_code": code[1]})


@dataclass
class Script:
    """The calls to make in their order. `outputs` are the results that the model was given for them."""

    calls: Sequence[ToolCall]
    visit: Callable[[str], None]
    made: list[ToolCall] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    position: int = 0

    def next_call(self, outputs: Sequence[str]) -> ToolCall | None:
        """Return the call that follows these results; None at the end of the script."""
        self.outputs = list(outputs)
        if len(outputs) < len(self.made):  # the application repeats a request
            return self.made[len(outputs)]
        if outputs and (link := self._new_link(outputs[-1])):
            self.visit(link)
            self.made.append(_continued(self.made[-1], outputs[-1]))
        elif self.position < len(self.calls):
            self.made.append(self.calls[self.position])
            self.position += 1
        else:
            return None
        return self.made[-1]

    def _new_link(self, output: str) -> str | None:
        found = LINK.search(output)
        if found is None or found[0] in self.visited:
            return None
        self.visited.add(found[0])
        return found[0]


class Anthropic:
    path = "/v1/messages"

    def tools(self, body: Any) -> list[str]:
        return [tool["name"] for tool in body.get("tools", [])]

    def outputs(self, body: Any) -> list[str]:
        blocks = (block for message in body["messages"] for block in _blocks(message["content"]))
        return [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]

    def reply(self, body: Any, name: str | None, arguments: Mapping[str, Any], number: int) -> Response:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": DONE}
        if name is not None:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        stop = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "usage": usage,
        }
        if not body.get("stream"):
            whole = {**block, "input": arguments} if name else {**block, "text": DONE}
            return json_response(200, {**message, **stop, "content": [whole]})
        return _events(
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": usage},
            {"type": "message_stop"},
        )


class OpenAiResponses:
    path = "/v1/responses"

    def tools(self, body: Any) -> list[str]:
        names = []
        for tool in body.get("tools", []):
            nested = [f"{tool['name']}/{each['name']}" for each in tool.get("tools", [])]
            names += nested if tool["type"] == "namespace" else [tool.get("name", "")]
        return names

    def outputs(self, body: Any) -> list[str]:
        return [_text(item["output"]) for item in body["input"] if item["type"] == "function_call_output"]

    def reply(self, body: Any, name: str | None, arguments: Mapping[str, Any], number: int) -> Response:
        item: dict[str, Any] = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": DONE}],
        }
        if name is not None:
            namespace, _, function = name.rpartition("/")
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
            item |= {"name": function, "arguments": json.dumps(arguments)}
            item |= {"namespace": namespace} if namespace else {}
        details = {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
        return _events(
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}},
        )


class OpenAiChat:
    path = "/v1/chat/completions"

    def tools(self, body: Any) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    def outputs(self, body: Any) -> list[str]:
        return [_text(message["content"]) for message in body["messages"] if message["role"] == "tool"]

    def reply(self, body: Any, name: str | None, arguments: Mapping[str, Any], number: int) -> Response:
        delta: dict[str, Any] = {"role": "assistant", "content": DONE}
        if name is not None:
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            delta = {"role": "assistant", "tool_calls": [call]}
        chunk = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return _events(
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**chunk, "choices": [end], "usage": usage},
            "[DONE]",
        )


class Gemini:
    path = "/v1beta/models/"

    def tools(self, body: Any) -> list[str]:
        tools = body.get("tools", [])
        return [each["name"] for tool in tools for each in tool.get("functionDeclarations", [])]

    def outputs(self, body: Any) -> list[str]:
        parts = (part for content in body["contents"] for part in content.get("parts", []))
        responses = (part["functionResponse"]["response"] for part in parts if "functionResponse" in part)
        return [_text(response.get("output", response.get("error"))) for response in responses]

    def reply(self, body: Any, name: str | None, arguments: Mapping[str, Any], number: int) -> Response:
        part = {"functionCall": {"name": name, "args": arguments}} if name else {"text": DONE}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return _events(
            {
                "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
                "usageMetadata": usage,
                "modelVersion": MODEL,
            }
        )


DIALECTS: Final = (Anthropic(), OpenAiResponses(), OpenAiChat(), Gemini())
"""APIs of models: the tools that a request offers, the results in its conversation, and how a model replies.

A reply calls a tool, or ends the conversation if the tool is None.
"""


@dataclass(frozen=True)
class ScriptedModel:
    """Answers the requests of one application; those without the server's tools, as for a title, at once."""

    script: Script

    def __call__(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        dialect = next((each for each in DIALECTS if path.startswith(each.path)), None)
        if request.method != "POST" or dialect is None or path.endswith("count_tokens"):
            return json_response(200, {"input_tokens": 1, "data": [], "models": []})
        body = json.loads(request.body)
        offered = dialect.tools(body)
        if not self._find(offered, self.script.calls[0].tool):
            return dialect.reply(body, None, {}, 0)
        call = self.script.next_call(dialect.outputs(body))
        if call is None:
            return dialect.reply(body, None, {}, len(self.script.made))
        name = self._find(offered, call.tool)
        return dialect.reply(body, name, call.arguments, len(self.script.made))

    @staticmethod
    def _find(offered: Iterable[str], tool: str) -> str | None:
        """Return the name that the application gave the tool: a prefix and its own name."""
        return next((name for name in offered if name.endswith(tool)), None)


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


def _events(*documents: Any) -> Response:
    lines = []
    for document in documents:
        if isinstance(document, dict) and "type" in document:
            lines.append(f"event: {document['type']}")
        lines.append(f"data: {document if isinstance(document, str) else json.dumps(document)}\n")
    body = "\n".join(lines) + "\n"
    return Response(200, (("content-type", "text/event-stream"),), body.encode())
