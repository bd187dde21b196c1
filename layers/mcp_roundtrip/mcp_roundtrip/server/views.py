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
from typing import Any, Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import UI_EXTENSION, UI_MIME_TYPE
from mcp_roundtrip.server.admission import UnknownResource, authorize, unknown_item
from mcp_roundtrip.server.model import CallParams, Feature, FeatureCall, Reply, RequestContext
from mcp_roundtrip.server.options import ANSWER_TOOL, QUESTIONS_URI, ServerOptions

SCHEME: Final = "ui://"

MAX_DOCUMENT: Final = 1_000_000
"""Largest view in bytes of UTF-8."""


class View(Struct, frozen=True):
    """The document in which the results of a tool are shown."""

    uri: str
    document: str

    @classmethod
    def from_option(cls, server: str, tool: str, ui: object) -> View:
        """Return the view of the option `ui`: the text of a document, or its file. Raises DefinitionError."""
        if isinstance(ui, Path):
            try:
                text = ui.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise DefinitionError(
                    f"{tool}: the view cannot be read; give another path: {error}"
                ) from None
        elif isinstance(ui, str):
            text = ui
        else:
            raise DefinitionError(
                f"{tool}: ui={ui!r:.100} is no view; use the text of an HTML document, or a Path"
            )
        if not text.lstrip("\ufeff \t\r\n").lower().startswith("<!doctype html"):
            raise DefinitionError(
                f"{tool}: the view is no HTML5 document; write <!doctype html> at its start, or pass a file "
                "as ui=Path(...)"
            )
        if len(text.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT:
            raise DefinitionError(f"{tool}: the view has more than {MAX_DOCUMENT} bytes; use a smaller one")
        return cls(f"{SCHEME}{quote(server, safe='')}/{tool}", text)


class HasView(Protocol):
    """A tool that may have a view of its own."""

    @property
    def view(self) -> View | None: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...


def read_view(
    options: ServerOptions, tools: Mapping[str, HasView], context: RequestContext, uri: str
) -> Reply | None:
    """Return the result with a view, or None for another URI. Raises UnknownResource or InsufficientScope."""
    if uri == QUESTIONS_URI:
        return read_questions_view(options, context)
    for tool in tools.values():
        if tool.view is not None and tool.view.uri == uri:
            authorize(options, tool, context, lambda: UnknownResource(uri))
            return _result(options, context, tool.view, is_private=bool(tool.scopes))
    return None


def read_questions_view(options: ServerOptions, context: RequestContext) -> Reply:
    """Return the result with the question app."""
    return _result(options, context, View(QUESTIONS_URI, read_question_app()))


def read_question_app() -> str:
    """Return the document of the question app: `view.html` with `form.js` inlined, as it may load no file."""
    folder = Path(__file__).parents[1] / "question_ui"
    document, form = ((folder / name).read_text(encoding="utf-8") for name in ("view.html", "form.js"))
    return document.replace("//= form.js\n", form.replace("\nexport ", "\n"))


def _result(
    options: ServerOptions, context: RequestContext, view: View, *, is_private: bool = False
) -> Reply:
    """Build the ReadResourceResult. A view may load nothing from other origins: it declares no `csp`.

    `is_private`: whether it needs scopes, so that no cache may share it.
    """
    contents = {
        "uri": view.uri,
        "mimeType": UI_MIME_TYPE,
        "text": view.document,
        # A view without a question has no height, and should have no border either.
        "_meta": {"ui": {"prefersBorder": False}},
    }
    server_info = context.server_info(options)
    result = results.cacheable(server_info, options.list_ttl_ms, contents=[contents])
    return Reply({**result, "cacheScope": "private"} if is_private else result)


def view_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Add what a server with views declares: `resources/read`, and forms in views (draft SEP-3118)."""
    extensions = {**capabilities.get("extensions", {}), UI_EXTENSION: {"elicitation": {}}}
    return {"resources": {}, **capabilities, "extensions": extensions}


# -- the answer tool ----------------------------------------------------------------------------------------


class _Answer(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any]
    state: str
    answers: Mapping[str, Any]


class AnswerTool(Struct, frozen=True):
    """The handler of calls of the answer tool."""

    options: ServerOptions
    tools: Mapping[str, Feature]

    def find_call(self, context: RequestContext) -> FeatureCall | Reply:
        """Return the call that asked, which continues with the answers; a reply to malformed arguments.

        Raises ProtocolError for a client that shows no views and for an unknown tool, and InsufficientScope
        for the scopes of the tool that asked.
        """
        if not shows_apps(context.request.meta.capabilities):
            raise unknown_item("tool", ANSWER_TOOL)
        given = _read(CallParams.read(context.params))
        if isinstance(given, str):
            error = results.tool_error(context.server_info(self.options), given)
            return Reply(error, log_fields={"tool": ANSWER_TOOL, "outcome": "arguments_refused"})
        tool = authorize(
            self.options, self.tools.get(given.tool), context, lambda: unknown_item("tool", given.tool)
        )
        return self._inner_call(tool, given, context)

    def _inner_call(self, tool: Feature, given: _Answer, context: RequestContext) -> FeatureCall:
        """Return the call that asked. A view can answer neither input requests of the client nor tasks."""
        params = CallParams(given.arguments, given.answers, given.state, is_retry=True, is_in_app=True)
        context, takes_rounds = context.without_input_capabilities(), not context.request.is_legacy
        return FeatureCall(tool, tool.name, params, context, self.options, takes_rounds)


def _read(params: CallParams) -> _Answer | str:
    """Return the arguments, or the text that says what is wrong with them."""
    values = params.arguments
    for name, kind in (("tool", str), ("arguments", dict), ("state", str), ("answers", dict)):
        if not isinstance(values.get(name), kind):
            expected = "a string" if kind is str else "an object"
            return f"{name}: Input should be {expected}"
    return _Answer(values["tool"], values["arguments"], values["state"], values["answers"])
