"""Views: the HTML documents in which hosts show results (MCP Apps, SEP-1865).

A view has a `ui://` URI. Clients that show views read it with `resources/read`; lists of resources omit it.

A view answers the questions of a call through the answer tool. Hosts pass the name and the arguments of a
view's `tools/call`, and nothing else. So what a retry has beside its arguments, the state and the answers,
are arguments of the tool. The call inside is the one that asked: the same tool with the same arguments, for
the same caller, whose scopes and state are checked as in any retry. A model cannot call the answer tool if
its host keeps the promises of MCP Apps: it neither lists app-only tools to the model nor shows it the state.
Without a valid state, a call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import UI_EXTENSION, UI_MIME_TYPE
from mcp_roundtrip.server.admission import authorize, unknown_item
from mcp_roundtrip.server.options import ANSWER_TOOL, META_QUESTIONS
from mcp_roundtrip.server.request_types import CallParams, Feature, FeatureCall, Reply, RequestContext


def read_question_app() -> str:
    """Return the document of the question app: `view.html` with `form.js` inlined, as it may load no file."""
    folder = Path(__file__).parents[1] / "question_ui"
    document, form = ((folder / name).read_text(encoding="utf-8") for name in ("view.html", "form.js"))
    return document.replace("//= form.js\n", form.replace("\nexport ", "\n"))


def read_own_view(tool: Any, context: RequestContext) -> Reply:
    """Build the result with the view of a Tool that has one."""
    return view_result(context, tool.view.uri, tool.view.document, is_private=bool(tool.scopes))


def view_result(context: RequestContext, uri: str, document: str, *, is_private: bool = False) -> Reply:
    """Build the ReadResourceResult. A view declares no `csp`: it may load nothing from other origins."""
    contents = {
        "uri": uri,
        "mimeType": UI_MIME_TYPE,
        "text": document,
        # A view without a question has no height, and should have no border either.
        "_meta": {"ui": {"prefersBorder": False}},
    }
    ttl_ms = context.options.list_ttl_ms
    return Reply(results.cacheable(context.server_info, ttl_ms, is_private=is_private, contents=[contents]))


def view_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Add what a server with views declares: `resources/read`, and forms in views (draft SEP-3118)."""
    extensions = {**capabilities.get("extensions", {}), UI_EXTENSION: {"elicitation": {}}}
    return {"resources": {}, **capabilities, "extensions": extensions}


# -- the answer tool ----------------------------------------------------------------------------------------


def find_answered_call(tools: Mapping[str, Feature], context: RequestContext) -> FeatureCall | Reply:
    """Return the call that asked, or a reply to malformed arguments. Raises as `authorize`."""
    if not shows_apps(context.request.meta.capabilities):
        raise unknown_item("tool", ANSWER_TOOL)
    given = CallParams.read(context.params).arguments
    for member, kind in (("tool", str), ("arguments", dict), ("state", str), ("answers", dict)):
        if not isinstance(given.get(member), kind):
            text = f"{member}: Input should be {'a string' if kind is str else 'an object'}"
            log_fields = {"tool": ANSWER_TOOL, "outcome": "arguments_refused"}
            return Reply(results.tool_error(context.server_info, text), log_fields=log_fields)
    name = given["tool"]
    tool = authorize(tools.get(name), context, lambda: unknown_item("tool", name))
    params = CallParams(given["arguments"], given["answers"], given["state"], is_retry=True, is_in_app=True)
    # A view can answer neither input requests of the client nor tasks.
    return FeatureCall(tool, tool.name, params, context.without_input_capabilities())


def with_status(reply: Reply) -> Reply:
    """Add the status for the view to a reply that has none."""
    body, outcome = reply.body, reply.log_fields.get("outcome")
    if isinstance(body, ProtocolError) or META_QUESTIONS in body.get("_meta", {}):
        return reply
    if outcome == "answers_too_large":
        return reply  # the view keeps its form
    status = "ended" if outcome in ("call_ended", "answers_late", "state_refused") else "complete"
    meta = {**body.get("_meta", {}), META_QUESTIONS: {"status": status}}
    return replace(reply, body={**body, "_meta": meta})
