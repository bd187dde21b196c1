"""The approval system: a web service that asks people and keeps what they decided.

It has a page for each request, at `<url>/<reference>`, and says at `<url>/<reference>/decision` what was
decided there: 404 until somebody has, then `{"approved": true}` or `{"approved": false}`. The page signs its
visitor in, and opens the link's token as that visitor (`Server.open_link`) before it takes a decision.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp_roundtrip import ToolError

VARIABLE = "APPROVALS_URL"
TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Approvals:
    """The requests below `url`, which is that of a service on https (or on this computer)."""

    url: str

    @classmethod
    def configured(cls, environment: Mapping[str, str]) -> "Approvals":
        """The service this function was told about. Raises ToolError where there is none."""
        url = environment.get(VARIABLE, "").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
            raise ToolError(f"There is no approval page: this server's operator has to set {VARIABLE}.")
        return cls(url)

    def page(self, reference: str) -> str:
        """Where somebody decides."""
        return f"{self.url}/{reference}"

    def decision(self, reference: str) -> bool | None:
        """Whether the request was approved; None while nobody has decided. Raises ToolError."""
        from urllib.error import HTTPError
        from urllib.request import urlopen  # HTTP and TLS cost 40 ms, and the first round has no decision

        try:
            # `configured` lets no other scheme through.
            with urlopen(f"{self.page(reference)}/decision", timeout=TIMEOUT_S) as response:  # noqa: S310
                approved = json.load(response)["approved"]
        except HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            raise ToolError(f"The approval system answered with status {error.code}.") from None
        except (OSError, ValueError, LookupError, TypeError):
            raise ToolError(
                "The approval system gives no answer that can be used. Try again later."
            ) from None
        return approved is True
