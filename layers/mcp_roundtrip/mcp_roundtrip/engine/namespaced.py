"""Requests outside the core protocol, by reverse-DNS name. Experimental."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.engine.questions import UNSET, Question, Unset
from mcp_roundtrip.errors import InvalidAnswer
from mcp_roundtrip.protocol.capabilities import CapabilityPath

_NAMESPACED: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+/[A-Za-z0-9][A-Za-z0-9._/-]*")
_RESERVED_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})


def _is_namespaced(name: str) -> bool:
    return bool(_NAMESPACED.fullmatch(name)) and name.partition("/")[0].split(".")[1] not in _RESERVED_LABELS


@dataclass(frozen=True, slots=True)
class NamespacedRequest(Question[Mapping[str, Any]]):
    """A request outside the core protocol, such as `com.example/approval`, to a client whose `extensions`
    declare that name."""

    key: str
    name: str
    arguments: Mapping[str, Any]
    default: Mapping[str, Any] | Unset = UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _is_namespaced(self.name):
            from mcp_roundtrip.engine import usage_errors

            raise usage_errors.request_name(self.key, self.name)

    def is_user_only(self) -> bool:
        return True  # often an approval, and no client has a reason to answer before it is asked

    @property
    def method(self) -> str:
        return self.name

    def params(self) -> dict[str, Any]:
        return dict(self.arguments)

    def needs(self) -> Sequence[CapabilityPath]:
        return (("extensions", self.name),)

    def read(self, raw: Any) -> Mapping[str, Any]:
        if not isinstance(raw, dict):
            raise InvalidAnswer("the answer is not an object")
        return raw
