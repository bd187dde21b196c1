"""Links to the questions of a task or of a parked call, which a page asks the user.

A link has a random token of 256 bits. An item under the digest of the token names the task and its requests:

==========  ==============================================================================================
attribute   holds
==========  ==============================================================================================
call        the partition key of the task
keys        the wire keys of the requests, as JSON
tool        the name of the tool that asks
dead        when the link expires: at the end of the task's time to live, in epoch milliseconds
exp         when DynamoDB may delete the item, in epoch seconds
==========  ==============================================================================================

A request accepts one response, so a link can be used once. Nothing about the caller is in the link: everyone
who has it can answer.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from mcp_roundtrip import canonical
from mcp_roundtrip.tasks.changes import Item
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.service import Tasks, UnknownTask

LINK: Final = "K"
"""The sort key of the item."""

PAGE: Final = "page"
"""The channel of the requests that only a page asks."""

LINKED: Final = frozenset({PAGE, "app"})
"""The channels whose requests have a link. The user of an app whose host does not show it needs one."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

LinkState = Literal["open", "answered", "expired", "unknown", "ended"]
"""`answered`: no request of the link is open any more. `ended`: the task ended without an answer."""

AnswerState = Literal["stored", "incomplete", "answered", "expired", "unknown", "ended"]
"""`stored`: by this call. `incomplete`: an open request has no response, and nothing was stored."""


def new_token(random_bytes: Callable[[int], bytes]) -> str:
    """Return a token for a link; `random_bytes` returns n random bytes."""
    return urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()


def question_page_url(audience: str, token: str) -> str:
    """Return the URL of the page; `audience` is the URI of the endpoint."""
    return f"{audience.rstrip('/')}/questions?token={token}"


def link_to_item(token: str, task: Task, tool: str, wire_keys: Collection[str]) -> Item:
    """Return the item of a link to requests of a task."""
    return {
        "pk": _partition_key(token),
        "sk": LINK,
        "call": task.pk,
        "keys": canonical.compact_json(list(wire_keys)),
        "tool": tool,
        "dead": task.deadline_ms,
        "exp": task.expires_s,
    }


def _partition_key(token: str) -> str:
    return canonical.digest("mcp-rs/v1/question-link", token, size=24)


class LinkedQuestions(Struct, frozen=True):
    """What a link leads to. `requests` are the open InputRequest objects by wire key, in order.

    `task` is the task or parked call that asks them.
    """

    state: LinkState
    tool: str = ""
    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    task: Task | None = None


class QuestionLinks(Struct, frozen=True):
    """Reads and answers the questions behind links. The tasks may be of any dialect."""

    tasks: Tasks

    def find(self, token: str) -> LinkedQuestions:
        """Return what a token leads to, without any change. Raises StoreError."""
        link = self._read(token)
        return LinkedQuestions("unknown") if link is None else self._questions(link)

    def answer(self, token: str, responses: Mapping[str, Any]) -> AnswerState:
        """Store the responses (ElicitResult objects by wire key) to all open requests of a link.

        Of concurrent calls, the first response to each request counts. Raises StoreError, and ItemTooLarge
        for a response over the limit of an item.
        """
        link = self._read(token)
        if link is None:
            return "unknown"
        found = self._questions(link)
        if found.state != "open":
            return found.state
        if not found.requests.keys() <= responses.keys():
            return "incomplete"
        answered = {key: responses[key] for key in found.requests}
        try:
            is_stored = self.tasks.store_responses(str(link["call"]), answered, channels=LINKED, via=PAGE)
        except UnknownTask:
            return "ended"
        return "stored" if is_stored else "answered"

    def _questions(self, link: Item) -> LinkedQuestions:
        tool = str(link["tool"])
        if int(link["dead"]) <= self.tasks.clock_ms():
            return LinkedQuestions("expired", tool)
        item = self.tasks.store.get(str(link["call"]), TASK)
        if item is None:
            return LinkedQuestions("ended", tool)
        task, keys = Task.from_item(item), canonical.parse_json(str(link["keys"]))
        requests = {key: task.requests[key].request for key in keys if key in task.requests}
        if not requests:
            return LinkedQuestions("answered", tool)
        if task.is_terminal:
            return LinkedQuestions("ended", tool)
        return LinkedQuestions("open", tool, requests, task)

    def _read(self, token: str) -> Item | None:
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return None
        return self.tasks.store.get(_partition_key(token), LINK)
