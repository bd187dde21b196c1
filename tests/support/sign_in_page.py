"""A user who signs in at the page of the local issuer, without a browser."""

from dataclasses import dataclass, field
from urllib.parse import urljoin

import httpx2

from support.html_form import BrowserForm
from support.oauth_client import User


@dataclass
class SigningIn(User):
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
        self.redirected(answer)
