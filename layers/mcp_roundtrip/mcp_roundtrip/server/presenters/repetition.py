"""The call that continues a parked call: in words for the model, and as data for programs."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.server.options import CONTINUATION_CODE
from mcp_roundtrip.server.round import META_PARKED_CALL
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.question_page_links import question_page_url


class Repetition(Struct, frozen=True):
    """The call that continues a parked call. A caller without an identity passes its code on.

    `link`: the page on which the user answers the open questions of the parked call, if it has any.
    """

    tool: str
    code: str | None
    link: str

    @classmethod
    def of(cls, call: FeatureCall, task: Task) -> Repetition:
        """Return the call with which this caller continues the parked call."""
        link = question_page_url(call.context.ports.config.audience(), task.link or "")
        return cls(call.name, task.task_id if call.context.principal is None else None, link)

    @property
    def text(self) -> str:
        """The words that follow "call"."""
        code = "" if self.code is None else f", and with {self.code_text}"
        return f"{self.tool} again with the same arguments{code}"

    @property
    def code_text(self) -> str:
        """The argument with the code."""
        return f'{CONTINUATION_CODE} "{self.code}"'

    def meta(self, status: Status, **members: Any) -> dict[str, Any]:
        """Return the `_meta` of a reply that is not the call's result."""
        added = {} if self.code is None else {"arguments": {CONTINUATION_CODE: self.code}}
        return {META_PARKED_CALL: {"status": status.value, **members, **added}}
