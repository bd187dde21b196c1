"""The question page of a deployment in this process. Browsers and attackers send no credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from support.deployment import Deployment
from support.html_form import BrowserForm
from support.page_user import HEADERS
from support.stored_tasks import StoredTasks

PATH = "/mcp/questions"


@dataclass
class QuestionPage:
    deployment: Deployment

    def by(self, **facets: Any) -> QuestionPage:
        return QuestionPage(self.deployment.by(**facets))

    @property
    def calls(self) -> StoredTasks:
        """The calls that wait in the table."""
        return StoredTasks(self.deployment.table)

    def request(
        self, method: str, query: str = "", body: str | bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        sent = HttpRequest(method, headers or {}, body, path=PATH, query=dict(parse_qsl(query)))
        return self.deployment.respond(sent)

    def show(self, token: str) -> HttpResponse:
        return self.request("GET", urlencode({"token": token}))

    def post(self, body: str | bytes, **headers: str) -> HttpResponse:
        """Post a form as a browser does. `headers` (underscores for hyphens) replace."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", body=body, headers={**HEADERS, **changed})

    def form(self, token: str, *entered: str) -> BrowserForm:
        """Return the form after this was entered in the fields of its first question."""
        shown = self.show(token)
        assert shown.status == 200
        form = BrowserForm(shown.body)
        for number, value in enumerate(entered):
            form.enter(f"0.{number}", value)
        return form

    def answer(self, token: str, *entered: str) -> str:
        """Answer the first question, and return the page that a browser is then led to."""
        sent = self.post(self.form(token, *entered).body())
        assert (sent.status, sent.body, sent.headers["location"]) == (303, "", f"?token={token}")
        return self.show(token).body
