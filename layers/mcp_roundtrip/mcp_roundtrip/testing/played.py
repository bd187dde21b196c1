"""What rounds and tasks have in common: they ask, and they come to a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class NotReplayable(AssertionError):
    """A second pass over the same journal did not come to the same end: the tool is not deterministic."""


class Played(ABC):
    """What a call has come to so far."""

    __slots__ = ()

    @property
    @abstractmethod
    def result(self) -> Mapping[str, Any]:
        """The result; an AssertionError shows what there is instead."""

    @property
    @abstractmethod
    def asked(self) -> Mapping[str, Mapping[str, Any]]:
        """The questions, by the key they have on the wire; empty when nothing is asked."""

    def question(self, key: str) -> str:
        """The message of an elicitation that was asked."""
        return str(self.asked[key]["params"]["message"])

    @property
    def text(self) -> str:
        """The text blocks of a completed call."""
        assert self.result["resultType"] == "complete", self.result
        return "".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def structured(self) -> Any:
        """The structuredContent of a call that completed without an error."""
        assert not self.result.get("isError"), self.text
        return self.result["structuredContent"]

    @property
    def failed(self) -> bool:
        """Whether the model was told of a tool error."""
        return bool(self.result.get("isError"))
