"""A user who signs in at the page of the local issuer, without a browser."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from support.html_form import BrowserForm
from support.oauth_client import REDIRECT


@dataclass
class SigningIn:
    """Chooses a user, and scopes if they are given. `pages` has the forms that it saw."""

    user: str
    scopes: list[str] | None = None
    action: str = "allow"
    pages: list[BrowserForm] = field(default_factory=list)

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            shown = await http.get(url)
            form = BrowserForm(shown.text)
            self.pages.append(form)
            form.choose("user", [self.user])
            if self.scopes is not None:
                form.choose("granted", self.scopes)
            target = urljoin(url, form.form.attributes["action"] or "")
            sent = {"content-type": "application/x-www-form-urlencoded", "origin": "null"}
            answer = await http.post(
                target, content=form.body(self.action), headers={**sent, "sec-fetch-site": "same-origin"}
            )
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(REDIRECT)
        self.query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def code(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.query)
