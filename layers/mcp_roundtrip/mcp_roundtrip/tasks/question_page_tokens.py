"""Links to the questions of a task or of a parked call, which a page asks the user.

A link has a random token of 256 bits. An item under the digest of the token names the task in `call`, and has
what was asked in `req`, also after it was answered. The link expires at the end of the task's time to live.

All requests of a link are answered together, so a link can be used once. The same answers sent again get the
same reply, and other answers are refused. Nothing about the caller is in the link: everyone who has it can
answer.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.tasks.call_and_journal_items import read_task, stored_responses
from mcp_roundtrip.tasks.model import OutstandingRequest, Task, json_value
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import Item

LINK: Final = "K"
"""The sort key of the item."""

PAGE: Final = "page"
"""The channel of the requests that only a page asks."""

APP: Final = "app"
"""The channel of the requests that a view asks."""

LINKED: Final = frozenset({PAGE, APP})
"""The channels whose requests have a link. The user of an app whose host does not show it needs one."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

LinkState = Literal["open", "answered", "expired", "unknown", "ended"]
"""`answered`: no request of the link is open any more. `ended`: the task ended without an answer."""

AnswerState = Literal["stored", "incomplete", "answered", "expired", "unknown", "ended"]
"""`stored`: by this call, or an equal one before it. `answered`: with other answers. `incomplete`: an open
request has no response, or the open requests have changed. Only `stored` has stored anything."""


def new_token(random_bytes: Callable[[int], bytes]) -> str:
    return urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()


def linked_requests(requests: Mapping[str, OutstandingRequest]) -> dict[str, Mapping[str, Any]]:
    """Return the InputRequest objects of the requests that a link leads to, by wire key."""
    return {key: asked.request for key, asked in requests.items() if asked.channel in LINKED}


def link_to_item(token: str, task: Task, tool: str, requests: Mapping[str, OutstandingRequest]) -> Item:
    linked = linked_requests(requests)
    return {
        "pk": _partition_key(token),
        "sk": LINK,
        "call": task.pk,
        "keys": strict_json.compact_json(list(linked)),
        "req": strict_json.compact_json(linked),
        "tool": tool,
        "dead": task.deadline_ms,
        "exp": task.expires_s,
    }


def _partition_key(token: str) -> str:
    return strict_json.digest("mcp-rs/v1/question-link", token, size=24)


class LinkedQuestions(Struct, frozen=True):
    """What a link leads to.

    `requests`: the open InputRequest objects by wire key, in order; if none is open, those that it asked.
    `task`: the task or parked call that asks them.
    """

    state: LinkState
    tool: str = ""
    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    task: Task | None = None


class QuestionLinks(Struct, frozen=True):
    """Reads and answers the questions behind links. The tasks may be of any dialect."""

    tasks: Tasks

    def find(self, token: str) -> LinkedQuestions:
        link = self.tasks.store.get(_partition_key(token), LINK) if _TOKEN.fullmatch(token) else None
        return LinkedQuestions("unknown") if link is None else self._questions(link)

    def answer(self, found: LinkedQuestions, responses: Mapping[str, Any]) -> AnswerState:
        """Store the responses (ElicitResult objects by wire key) to all questions found, or none.

        Of concurrent calls, the first one counts. Raises ItemTooLarge for a response.
        """
        if found.task is None:
            return "ended" if found.state == "open" else found.state
        if not found.requests.keys() <= responses.keys():
            return "incomplete"
        answers, pk = {key: responses[key] for key in found.requests}, found.task.pk
        if self.tasks.store_responses(pk, answers, channels=LINKED, via=PAGE, is_form=True):
            return "stored"
        stored = stored_responses(self.tasks.store, pk, answers)
        if answers and strict_json.is_same_json(stored, answers):
            return "stored"
        return "answered" if stored.keys() == answers.keys() else "incomplete"

    def _questions(self, link: Item) -> LinkedQuestions:
        tool = str(link["tool"])
        if int(link["dead"]) <= self.tasks.clock_ms():
            return LinkedQuestions("expired", tool)
        task, keys = read_task(self.tasks.store, str(link["call"])), strict_json.parse_json(str(link["keys"]))
        if task is None:
            return LinkedQuestions("ended", tool)
        open_requests = linked_requests(task.requests)
        requests = {key: open_requests[key] for key in keys if key in open_requests}
        if not requests:
            asked = json_value(link["req"])
            return LinkedQuestions("answered", tool, {key: asked[key] for key in keys if key in asked}, task)
        if task.is_terminal:
            return LinkedQuestions("ended", tool)
        return LinkedQuestions("open", tool, requests, task)
