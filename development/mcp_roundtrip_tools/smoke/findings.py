"""What the checks find, each in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check in one sentence. `note`: works, but some clients need more."""

    check: str
    status: Status
    text: str

    def __str__(self) -> str:
        # Texts of servers must not begin lines: a line `::error::…` is a command to GitHub's runner.
        text = "".join(each if each.isprintable() else " " for each in self.text)
        return f"{self.status:<6}{self.check:<11}{text}"


class Stopped(Exception):
    """A check found what makes the remaining checks impossible; the finding is recorded."""


@dataclass
class Findings:
    """Records findings and passes each one to `show`."""

    show: Callable[[Finding], None] = lambda finding: None
    found: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether no finding is wrong."""
        return all(each.status != "wrong" for each in self.found)

    def ok(self, check: str, text: str) -> None:
        self._add(Finding(check, "ok", text))

    def note(self, check: str, text: str) -> None:
        self._add(Finding(check, "note", text))

    def wrong(self, check: str, text: str) -> None:
        self._add(Finding(check, "wrong", text))

    def stop(self, check: str, text: str) -> Stopped:
        """Record a wrong finding, and return the exception to raise."""
        self.wrong(check, text)
        return Stopped(text)

    def _add(self, finding: Finding) -> None:
        self.found.append(finding)
        self.show(finding)
