"""The approval system: a web service that asks people and keeps what they decided.

It has a page for each request, at `<url>/<reference>`. The page signs its visitor in, and opens the link's
token as that visitor (`Server.open_link`) before it takes a decision. At `<url>/<reference>/decision`,

- GET says what was decided: `{"approved": true}` or `{"approved": false}`, and 404 where nothing is;
- POST says the same and consumes the decision, atomically, for the call that its `Idempotency-Key` names.

A consumed decision exists for that call only: both give it the same answer again, and all others 404.
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
        """The service that the environment names. Raises ToolError where there is none."""
        url = environment.get(VARIABLE, "").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
            raise ToolError(f"There is no approval page: this server's operator has to set {VARIABLE}.")
        return cls(url)

    def page(self, reference: str) -> str:
        """The address of the page for a request."""
        return f"{self.url}/{reference}"

    def is_decided(self, reference: str, call: str) -> bool:
        """Whether there is a decision that this call may take, or has taken. Raises ToolError."""
        return self._decision("GET", reference, call) is not None

    def take(self, reference: str, call: str) -> bool:
        """Consume the decision; whether the request was approved. Raises ToolError where there is none."""
        approved = self._decision("POST", reference, call)
        if approved is None:
            raise ToolError("Another call has used this decision. Call the tool again to ask for a new one.")
        return approved

    def _decision(self, method: str, reference: str, call: str) -> bool | None:
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen  # HTTP and TLS cost 40 ms, and the first round needs none

        # `configured` lets no other scheme through.
        request = Request(  # noqa: S310
            f"{self.page(reference)}/decision", method=method, headers={"Idempotency-Key": call}
        )
        try:
            with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                approved = json.load(response)["approved"]
        except HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            raise ToolError(
                f"The approval system answered with status {error.code}. Try again later."
            ) from None
        except (OSError, ValueError, LookupError, TypeError):
            raise ToolError(
                "The approval system gives no answer that can be used. Try again later."
            ) from None
        return approved is True
