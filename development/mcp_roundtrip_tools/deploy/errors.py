"""The one exception of this package."""

from __future__ import annotations

from mcp_roundtrip.errors import McpRoundtripError


class Refused(McpRoundtripError):
    """Nothing was built or deployed. `problems` are sentences that say what to change."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
