"""Decisions on requests for approval, made on a page of their own."""

from dataclasses import dataclass, field
from typing import Protocol


class Approvals(Protocol):
    """The approval system, whose page asks somebody to decide.

    It stands for a table, or a service, that the page and this function both reach. The page signs its
    visitor in, opens the link's token as that visitor (`Server.open_link`), and writes what was decided.
    """

    def decision(self, reference: str) -> bool | None:
        """Whether the request was approved; None while nobody has decided."""
        ...


@dataclass(frozen=True, slots=True)
class ApprovalsInMemory:
    """Approvals of one process, which has to be the page's as well: no more than tests need.

    A deployment replaces it; until then everybody who is sent to the page is still waited for.
    """

    decisions: dict[str, bool] = field(default_factory=dict)

    def decision(self, reference: str) -> bool | None:
        return self.decisions.get(reference)
