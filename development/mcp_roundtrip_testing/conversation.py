"""A call as a released client, its model and its user carry it out, through the channels that they have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, Protocol

from mcp_roundtrip.engine.question_channels import Channel
from mcp_roundtrip.protocol.constants import RESOURCES_READ, TOOLS_CALL, TOOLS_LIST, UI_MIME_TYPE
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import URL_ELICITATION_REQUIRED
from mcp_roundtrip.server.options import ANSWER_TOOL, INPUT_RESPONSES, META_PARKED_CALL, META_QUESTIONS
from mcp_roundtrip_testing.client_profile import ClientProfile
from mcp_roundtrip_testing.played_call import DECLINE, describe_unasked_answers, input_response
from mcp_roundtrip_testing.played_task import PlayedTask
from mcp_roundtrip_testing.question_form import PAGE_LINK, fill_in, read_problem
from mcp_roundtrip_testing.round import Round, RoundSender
from mcp_roundtrip_testing.task_table import TaskTable

__tracebackhide__ = True  # pytest shows the line of the test

MAX_CALLS: Final = 20
"""Calls of one tool with the same arguments after which every model gives up."""

_CALL_AGAIN: Final = frozenset({"asked_in_app", "parked", "still_running", "waiting_for_answer"})
"""Outcomes whose text tells the model to call again although nothing was answered here."""

_PATIENCE: Final = 3
"""How often a model calls again when nothing changes."""


class ClientPlayer(RoundSender, Protocol):
    """What a conversation needs from its `Player`."""

    table: TaskTable

    def request(self, method: str, **params: Any) -> Mapping[str, Any]: ...
    def browse(self, method: str, url: str, body: str | None = None) -> HttpResponse: ...


@dataclass(slots=True)
class Conversation:
    """Carries out calls of one tool with the same arguments until the call ends or an answer is missing.

    `answers`: the answers that the user has not given yet, by key.
    `channels`: the channel of each round of questions that was answered.
    `open_questions`: the questions that have no answer, by wire key.
    `relayed`: the answers that the model passes on in each call.
    `unchanged`: how often the model has called again without a change.
    `latest`: the last response to a call of the tool or of its view.
    """

    player: ClientPlayer
    profile: ClientProfile
    answers: dict[str, Any]
    channels: list[Channel] = field(default_factory=list)
    open_questions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    relayed: dict[str, Any] = field(default_factory=dict)
    continued: Mapping[str, Any] = field(default_factory=dict)
    unchanged: int = 0
    view_state: str = ""
    reads_result: bool = False
    latest: Round = field(init=False)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Round:
        """Carry out the call. Raises CallFailed if a call without an error has not asked for all answers."""
        self.tool, self.arguments = tool, arguments
        given = list(self.answers)
        return self._check_asked(self._carry_on(self._call()), given)

    def answer(self, played: Round, answers: Mapping[str, Any]) -> Round:
        """Continue a call that asks something, with more answers. Raises CallFailed as `call` does."""
        self.answers |= answers
        return self._check_asked(self._carry_on(played), list(answers))

    def _check_asked(self, played: Round, given: list[str]) -> Round:
        if self.answers and "error" not in played.message and not played.failed:
            asked = {key for key in given if key not in self.answers} | played.asked.keys()
            text = describe_unasked_answers(sorted(asked), given)
            played.fail(f"{text}; now {played.describe_state()}")
        return played

    def _carry_on(self, played: Round) -> Round:
        self.open_questions, self.latest = {}, played
        for _ in range(MAX_CALLS):
            self.latest = self._follow_rounds(self.latest)
            next_step = self._react(self.latest)
            if next_step is None:
                break
            self.latest = next_step()
        return replace(
            self.latest,
            channels=tuple(self.channels),
            shown=self.open_questions,
            continue_call=self.answer,
        )

    def _call(self) -> Round:
        relayed = {INPUT_RESPONSES: self.relayed} if self.relayed else {}
        params = {"name": self.tool, "arguments": {**self.arguments, **relayed, **self.continued}}
        return self.player.send_round(TOOLS_CALL, params, None, None)

    # -- the client ---------------------------------------------------------------------------------------

    def _follow_rounds(self, played: Round) -> Round:
        """Send the call again for its state and answers, as far as the client does."""
        followed = 0
        while "result" in played.message and played.result.get("resultType") == "input_required":
            responses: Mapping[str, Any] | None = None
            if played.is_checkpoint:
                if not self.profile.follows_state_only_rounds:
                    return played
            elif (responses := self._client_responses(played.asked)) is None:
                return played
            if followed == self.profile.max_rounds:
                return played
            followed += 1
            played = played.respond(responses)
        return played

    def _client_responses(self, asked: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
        if not self.profile.answers_questions:
            return {key: {"action": "cancel"} for key in asked}
        return self._take_answers(asked, "client")

    def _take_answers(
        self, asked: Mapping[str, Mapping[str, Any]], channel: Channel
    ) -> dict[str, Any] | None:
        """Return the user's responses by wire key; None if one of them is missing."""
        keys = {wire_key: wire_key.partition("~")[0] for wire_key in asked}
        if not self.answers.keys() >= set(keys.values()):
            self.open_questions = asked
            return None
        self.channels.append(channel)
        self.unchanged = 0
        return {wire_key: _respond(asked[wire_key], self.answers.pop(key)) for wire_key, key in keys.items()}

    # -- the model, the view and the user -----------------------------------------------------------------

    def _react(self, played: Round) -> Callable[[], Round] | None:
        """Return how the conversation continues after a response; None if it ends here."""
        if "error" in played.message:
            is_url = played.error["code"] == URL_ELICITATION_REQUIRED
            return self._call if is_url and self._visit(played.error["data"]["elicitations"]) else None
        self._take_code(played.result)
        match played.result.get("resultType", "complete"):
            case "task":
                task = self._follow_task(played.task)
                self._take_code(task.result if task.status == "completed" else {})
                return self._react_to_link(task.result) if task.status == "completed" else None
            case "input_required":
                return None
        questions = played.result.get("_meta", {}).get(META_QUESTIONS)
        if questions is not None and self.profile.shows_apps and self._mounts_view():
            return self._use_view(questions)
        if PAGE_LINK.search(_text(played.result)):
            return self._react_to_link(played.result)
        if played.outcome == "asked_through_model":
            return self._call if self._relay(played.log_fields["asked"]) else None
        self.unchanged += 1
        return self._call if played.outcome in _CALL_AGAIN and self.unchanged <= _PATIENCE else None

    def _take_code(self, result: Mapping[str, Any]) -> None:
        """Keep the code with which an anonymous caller's next call continues this one."""
        self.continued = result.get("_meta", {}).get(META_PARKED_CALL, {}).get("arguments", {})

    def _react_to_link(self, result: Mapping[str, Any]) -> Callable[[], Round] | None:
        """Answer on the page that a result names, and call again."""
        link = PAGE_LINK.search(_text(result))
        return self._call if link is not None and self._use_page(link[0]) else None

    def _visit(self, elicitations: list[Mapping[str, Any]]) -> bool:
        """Open the URLs of the error that requires them. It names no keys: a callable answer visits a URL."""
        visits = {key: given for key, given in self.answers.items() if callable(given)}
        if len(visits) < len(elicitations):
            self.open_questions = {
                each["elicitationId"]: {"method": "elicitation/create", "params": each}
                for each in elicitations
            }
            return False
        self.channels.append("client")
        for each, (key, visit) in zip(elicitations, visits.items(), strict=False):
            visit(each["url"])
            del self.answers[key]
        return True

    def _follow_task(self, task: PlayedTask) -> PlayedTask:
        """Answer what the task asks, wait while it sleeps, and return it at rest."""
        while True:
            link = PAGE_LINK.search(task.status_message or "")
            if task.asked:
                responses = self._client_responses(task.asked)
                if responses is None:
                    return task
                task = task.respond(responses)
            elif link is not None and self._use_page(link[0]):
                task = task.poll()
            elif task.status == "working" and link is None:
                task = task.wake()
            else:
                return task

    def _relay(self, keys: list[str]) -> bool:
        """Have the model ask the user, and pass the answers on in the next call."""
        if not self.profile.has_model or not self.answers.keys() >= set(keys):
            return False
        self.channels.append("model")
        for key in keys:
            given = self.answers.pop(key)
            self.relayed[key] = dict(given) if given is DECLINE else _accepted(given)
        return True

    def _use_page(self, url: str) -> bool:
        """Open the question page, and send its form."""
        shown = self.player.browse("GET", url)
        if shown.status != 200:
            return False
        form = fill_in(shown.body, url, self.player.table, lambda asked: self._take_answers(asked, "page"))
        if form is None:
            return False
        posted = self.player.browse("POST", url, form)
        if posted.status != HTTPStatus.SEE_OTHER:
            self.latest.fail(f"the question page refused the answers: {read_problem(posted.body)}")
        return True

    def _mounts_view(self) -> bool:
        """List the tools and read the view, as a host does before it shows one."""
        tools = self._list_tools()
        uri = tools.get(self.tool, {}).get("_meta", {}).get("ui", {}).get("resourceUri")
        if uri is None or ANSWER_TOOL not in tools:  # some hosts call only tools that are listed
            return False
        [view] = self.player.request(RESOURCES_READ, uri=uri)["result"]["contents"]
        return bool(view["mimeType"] == UI_MIME_TYPE and view["text"])

    def _list_tools(self) -> dict[str, Mapping[str, Any]]:
        tools: dict[str, Mapping[str, Any]] = {}
        cursor: dict[str, str] = {}
        while True:
            page = self.player.request(TOOLS_LIST, **cursor)["result"]
            tools |= {tool["name"]: tool for tool in page["tools"]}
            if "nextCursor" not in page:
                return tools
            cursor = {"cursor": page["nextCursor"]}

    def _use_view(self, questions: Mapping[str, Any]) -> Callable[[], Round] | None:
        """Answer in the view until it has the result, which the model reads if the view instructs it to."""
        while (status := questions["status"]) in ("asking", "working"):
            self.reads_result |= "instruction" in questions
            self.view_state = questions.get("state", self.view_state)
            responses: Mapping[str, Any] | None = {}
            if status == "asking":
                responses = self._take_answers(questions["requests"], "app")
                if responses is None:
                    return None
            else:
                self.player.clock.advance(questions["retryAfterMs"] / 1000)
            call = {"tool": self.tool, "arguments": self.arguments, "state": self.view_state}
            params = {"name": ANSWER_TOOL, "arguments": {**call, "answers": responses}}
            self.latest = self.player.send_round(TOOLS_CALL, params, None, None)
            if "error" in self.latest.message:
                return None
            questions = self.latest.result["_meta"][META_QUESTIONS]
        return self._call if self.reads_result and status == "complete" else None


def _respond(request: Mapping[str, Any], given: Any) -> Any:
    """Return a response. A callable visits the URL of a question."""
    if callable(given) and request["params"].get("mode") == "url":
        given(request["params"]["url"])
    return input_response(request, given)


def _accepted(given: Any) -> dict[str, Any]:
    return {"action": "accept", "content": given if isinstance(given, dict) else {"value": given}}


def _text(result: Mapping[str, Any]) -> str:
    blocks = result.get("content", ())
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")
