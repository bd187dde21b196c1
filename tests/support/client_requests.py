"""What a client of a deployment sends, and what its user answers on the question page or in the app."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Self

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import (
    HEADER_SESSION_ID,
    META_CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
    UI_EXTENSION,
    UI_MIME_TYPE,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.tasks.question_page_tokens import QuestionLinks
from mcp_roundtrip_testing.http_requests import read_messages
from mcp_roundtrip_testing.task_table import TaskTable
from support import callers, legacy_schema
from support.messages import META, headers, message
from support.stored_tasks import answer_link

TASKS: Final[Mapping[str, Any]] = {"extensions": {TASKS_EXTENSION: {}}}
"""Capabilities of a client that follows tasks, and cannot be asked in another way."""

ASKABLE: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, **TASKS}
"""Capabilities of a client that answers questions and follows tasks."""

FORMS: Final[Mapping[str, Any]] = {"elicitation": {}}
"""Capabilities of a client that shows forms, and cannot follow tasks."""

APPS: Final[Mapping[str, Any]] = {"extensions": {UI_EXTENSION: {"mimeTypes": [UI_MIME_TYPE]}}}
"""Capabilities of a client that shows MCP Apps, and answers no input requests."""

QUESTIONS: Final = "mcp-roundtrip/questions"
"""The member of a result's `_meta` that the app reads."""

TOKEN: Final = re.compile(r"https://mcp\.test/mcp/questions\?token=([A-Za-z0-9_-]{43})(?!\S)")


class ClientRequests:
    """The requests of one client. The attributes are those of `Deployment`."""

    server: Server
    user: str | None
    scopes: tuple[str, ...]
    session_id: str | None
    version: str | None
    capabilities: Mapping[str, Any]
    mode: AuthMode | None
    clock: Any
    table: TaskTable

    @property
    def auth_mode(self) -> AuthMode:
        """How the deployment identifies this caller."""
        return self.mode or (AuthMode.NONE if self.user is None else AuthMode.JWT)

    def respond(self, request: HttpRequest) -> HttpResponse:
        raise NotImplementedError

    # -- any request --------------------------------------------------------------------------------------

    @property
    def is_legacy(self) -> bool:
        """Whether the client opens with `initialize`."""
        return self.version != PROTOCOL_VERSION

    def body(self, method: str, /, **params: Any) -> dict[str, Any]:
        meta = None if self.is_legacy else {**META, META_CLIENT_CAPABILITIES: self.capabilities}
        return message(method, **{"meta": meta, **params})

    def send(
        self, body: Any, *, http_method: str = "POST", path: str = "", **changes: str | None
    ) -> HttpResponse:
        """Send a body: JSON, or text. `changes` (underscores for hyphens) replace headers; None removes."""
        given = self._headers(body)
        given |= {name.replace("_", "-"): value for name, value in changes.items()}
        sent = {name: value for name, value in given.items() if value is not None}
        context: dict[str, Any] = {}
        if self.user is not None:
            sent |= callers.authorization(self.auth_mode, self.user, self.scopes, self.clock())
            context = callers.authorizer(self.auth_mode, self.user, self.scopes)
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.respond(HttpRequest(http_method, sent, text, context, path=path))

    def _headers(self, body: Any) -> dict[str, str | None]:
        if not self.is_legacy and isinstance(body, Mapping) and "method" in body:
            return {**headers(body)}
        accept = "application/json, text/event-stream"
        return {
            "accept": accept,
            "content-type": "application/json",
            "mcp-protocol-version": self.version,
            HEADER_SESSION_ID: self.session_id,
        }

    def request(self, method: str, /, **params: Any) -> HttpResponse:
        """Return the HTTP response to a request."""
        return self.send(self.body(method, **params))

    def post(self, method: str, /, **params: Any) -> Any:
        """Return the JSON-RPC response, which is valid in the client's version of the protocol."""
        response = self.request(method, **params)
        answer: Any = read_messages(response)[-1]
        if self.is_legacy:
            assert response.status == 200
            in_dialect = self.server.options.legacy_tasks is not None
            legacy_schema.assert_valid(method, answer, in_dialect=in_dialect)
        return answer

    def result(self, method: str, /, **params: Any) -> Any:
        response = self.post(method, **params)
        assert "result" in response, response
        return response["result"]

    def error(self, method: str, /, **params: Any) -> Any:
        response = self.post(method, **params)
        assert "error" in response, response
        return response["error"]

    def read(self, uri: str) -> Any:
        """Return the only contents of a resource."""
        [contents] = self.result("resources/read", uri=uri)["contents"]
        return contents

    def refusal(self, method: str, /, **params: Any) -> tuple[int, int]:
        """Return the HTTP status and the code of the error that refuses a request."""
        return refused(self.request(method, **params))

    def initialize(self) -> Any:
        info = {"name": "host", "version": "1"}
        opening = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": info}
        response = self.request("initialize", **opening)
        answer = json.loads(response.body)
        legacy_schema.assert_valid("initialize", answer)
        self.session_id = response.headers.get(HEADER_SESSION_ID)
        return answer["result"]

    def connected(self) -> Self:
        """Return this client after it has opened a session, if its version has sessions."""
        if self.is_legacy:
            self.session_id = None
            self.initialize()
        return self

    # -- tools --------------------------------------------------------------------------------------------

    def send_call(self, tool: str, /, arguments: Any = None, **params: Any) -> HttpResponse:
        """Send a `tools/call`; `params` are further members, such as `requestState`."""
        return self.send(self.body("tools/call", name=tool, arguments=arguments or {}, **params))

    def post_call(self, tool: str, /, arguments: Mapping[str, Any] | None = None, **params: Any) -> Any:
        return self.post("tools/call", name=tool, arguments=arguments or {}, **params)

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the result of a tool."""
        return self.result("tools/call", name=tool, arguments=arguments)

    def call_error(self, tool: str, /, **arguments: Any) -> Any:
        return self.error("tools/call", name=tool, arguments=arguments)

    def text(self, tool: str, /, **arguments: Any) -> str:
        return text(self.call(tool, **arguments))

    def error_text(self, tool: str, /, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert result["isError"] is True
        return text(result)

    def retry(self, tool: str, asked: Mapping[str, Any], /, **answers: Any) -> Any:
        """Return the result of a call without arguments that is sent again with the state of a result."""
        return self.result("tools/call", name=tool, arguments={}, **next_round(asked, **answers))

    # -- tasks --------------------------------------------------------------------------------------------

    def start(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that becomes a task at once, and return the task id."""
        result = self.call(tool, **arguments)
        assert result["resultType"] == "task"
        return str(result["taskId"])

    def poll(self, task_id: str) -> Any:
        """Return a task as its client sees it."""
        return self.result("tasks/get", taskId=task_id)

    def status(self, task_id: str) -> str:
        return str(self.poll(task_id)["status"])

    def text_of(self, task_id: str) -> str:
        """Return the text of the result of a task that has completed."""
        return text(self.poll(task_id)["result"])

    def update(self, task_id: str, **responses: Any) -> Any:
        return self.post("tasks/update", taskId=task_id, inputResponses=responses)

    def cancel(self, task_id: str) -> Any:
        return self.post("tasks/cancel", taskId=task_id)

    # -- the question page and the app --------------------------------------------------------------------

    @property
    def links(self) -> QuestionLinks:
        """The links in the table."""
        return QuestionLinks(self.table.tasks())

    def token(self, text: str) -> str:
        """Return the token of the only link in a text."""
        [token] = TOKEN.findall(text)
        return str(token)

    def asked_by(self, text: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the questions behind the link in a text, by wire key."""
        return self.links.find(self.token(text)).requests

    def answer(self, text: str, **values: Any) -> str:
        """Answer the questions behind the link in a text by their keys."""
        assert self.asked_by(text).keys() == values.keys()
        return answer_link(self.links, self.token(text), responses(**values))

    def answer_in_app(self, asked: Mapping[str, Any], /, **answers: Any) -> Any:
        """Answer a result that asks, as the view does, with responses or the values of forms."""
        return self.call("answer_questions", **answer_arguments(asked, **answers))


def code_in(text: str) -> str:
    """Return the code with which the call of an anonymous caller continues."""
    [code] = re.findall(r'continuation_code "([\w-]+)"', text)
    return str(code)


def text(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


def refused(response: HttpResponse) -> tuple[int, int]:
    """Return the HTTP status and the code of an error."""
    return response.status, json.loads(response.body)["error"]["code"]


def accepted(value: Any) -> dict[str, Any]:
    """Return the response that accepts a form with this content, or with this only value."""
    return {"action": "accept", "content": value if isinstance(value, dict) else {"value": value}}


def responses(**values: Any) -> dict[str, Any]:
    """Return the responses of a user by key. A value may be a response itself."""
    return {
        key: value if isinstance(value, dict) and "action" in value else accepted(value)
        for key, value in values.items()
    }


def next_round(asked: Mapping[str, Any], /, **answers: Any) -> dict[str, Any]:
    """Return the members that a call has when it is sent again, for the result that asked."""
    return {"requestState": asked["requestState"], "inputResponses": responses(**answers)}


def answer_arguments(asked: Mapping[str, Any], /, **answers: Any) -> dict[str, Any]:
    """Return the arguments of the answer tool for a result that asks."""
    questions = asked["_meta"][QUESTIONS]
    return {
        **{name: questions[name] for name in ("tool", "arguments", "state")},
        "answers": responses(**answers),
    }


def app_status(result: Mapping[str, Any]) -> str | None:
    """Return where the call stands, as the view reads it."""
    status: str | None = result["_meta"].get(QUESTIONS, {}).get("status")
    return status
