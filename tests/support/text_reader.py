"""A stand-in for a model: it does what the text of a result says, with the arguments that the tool lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from support.page_user import LINK
from support.real_clients import Called, Connection


class TextReader:
    """Calls one tool, and calls it again as its results say.

    It knows what its client shows to a model: the listed schema of the tool, and the text of the results.
    """

    def __init__(self, client: Connection, tool: str, arguments: Mapping[str, Any]) -> None:
        self.client, self.tool = client, tool
        [self.schema] = [each["inputSchema"] for each in client.tools() if each["name"] == tool]
        self.arguments = dict(arguments)
        self.result = client.call(tool, arguments)

    @property
    def link(self) -> str | None:
        """The link that the last text asks to show to the user."""
        found = LINK.search(self.result.text)
        return found[0] if found else None

    def call_again(self) -> Called:
        """Make the call that the last text asks for, as far as the listed schema allows it."""
        text = self.result.text
        assert f"call {self.tool} again with the same arguments" in text
        for name in self.schema["properties"]:
            if found := re.search(rf'{name} \\?"([^"\\]+)', text):
                self.arguments[name] = found[1]
        self.result = self.client.call(self.tool, self.arguments)
        return self.result
