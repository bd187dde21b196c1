"""The issuer of a run, as its HTTP server, the console and tests use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcp_roundtrip_tools.run.issuer.tokens import TokenSigner
from mcp_roundtrip_tools.run.issuer.users import User, check_name, check_scopes

CONSOLE_CLIENT = "mcp-roundtrip-console"


class LocalIssuer:
    """Issues tokens for the endpoint of a run. `users` can sign in; the first is preselected.

    `url` is the `iss` of the tokens. `resource` returns their `aud`: the URI of the endpoint.
    """

    def __init__(self, url: str, users: Sequence[User], resource: Callable[[], str]) -> None:
        self.url = url
        self.users = tuple(users)
        self.signer = TokenSigner(url)
        self._resource = resource

    @property
    def resource(self) -> str:
        """The URI of the endpoint."""
        return self._resource()

    def user(self, name: str) -> User:
        """Return a user of this name; every name can sign in. Raises ValueError."""
        known = next((user for user in self.users if user.name == name), None)
        return known or User(check_name(name), self.users[0].scopes if self.users else None)

    def token(
        self, user: str, scopes: Iterable[str] | None = None, *, client_id: str = CONSOLE_CLIENT
    ) -> str:
        """Return an access token for a user; without `scopes`, with those of the user. Raises ValueError."""
        found = self.user(user)
        granted = found.default_scopes(()) if scopes is None else check_scopes(scopes)
        return self.signer.access_token(user, granted, resource=self.resource, client_id=client_id)
