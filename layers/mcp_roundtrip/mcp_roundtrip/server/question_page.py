"""Serve the question page: a form behind a link, for a user whose client cannot show a question.

The link's token is the permission to answer. A GET changes nothing, because mail scanners and chat programs
open links, too. A POST has the token in its body. There are no cookies, so a request of another site has no
permission that its sender did not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Observer, Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit, payload_size
from mcp_roundtrip.question_ui import posted_form
from mcp_roundtrip.question_ui.page import NOTICES, STYLE_SOURCE, TOKEN, FormPage, render_form, render_notice
from mcp_roundtrip.server.lambda_invocation import Operation, log_fault
from mcp_roundtrip.tasks.question_page_tokens import LinkedQuestions, QuestionLinks

HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": (
        f"default-src 'none'; style-src {STYLE_SOURCE}; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
}

_STATUS_HEADERS: Final = {405: {"allow": "GET, HEAD, POST"}, 503: {"retry-after": "10"}}


class _Outcome(Struct, frozen=True):
    """How a request ended: the name of a notice, or a form with its status; `headers` of a redirect."""

    name: str
    status: int = 200
    form: FormPage | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class QuestionPage(Struct, frozen=True):
    """The question page of an endpoint. `server`: the name that the page shows."""

    ports: Ports
    server: str
    operation: Operation

    def respond(self, request: HttpRequest) -> HttpResponse:
        observer = self.ports.observer
        try:
            outcome = self._handle(request)
            body, status = _body(outcome)
        except Exception as error:  # the visitor of the page is a person, not an MCP client
            outcome = _Outcome(_notice_for(error, observer))
            body, status = _body(outcome)
        if payload_size(body) > request.max_response_bytes:
            outcome = _Outcome("unshowable")
            body, status = _body(outcome)
        fields = {"outcome": f"question_page_{outcome.name}", "status": status}
        observer.record("request_completed", **fields)
        self.operation.end_request("request_completed", fields)
        headers = {**HEADERS, **_STATUS_HEADERS.get(status, {}), **outcome.headers}
        return HttpResponse(status, "" if request.method == "HEAD" else body, headers)

    def _handle(self, request: HttpRequest) -> _Outcome:
        if request.method in ("GET", "HEAD"):
            return self._show_form(request.query.get(TOKEN, ""))
        if request.method != "POST":
            return _Outcome("method")
        if _is_foreign(request.headers, self.ports.settings.required("audience")):
            return _Outcome("foreign")
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/x-www-form-urlencoded":
            return _Outcome("media_type")
        if request.body is None:
            return _Outcome("malformed")
        if not body_within_limit(request.body, posted_form.MAX_FORM_BYTES):
            return _Outcome("too_large")
        posted = posted_form.parse_form(request.body)
        self.ports.observer.redact(lambda: [value for values in posted.values() for value in values])
        return self._take_answers(posted)

    def _show_form(self, token: str) -> _Outcome:
        found = QuestionLinks(self.ports.tasks()).find(token)
        if found.state != "open":
            return _Outcome(found.state)
        return _Outcome("shown", form=self._form(found, token))

    def _form(self, found: LinkedQuestions, token: str) -> FormPage:
        questions = posted_form.make_questions(found.requests)
        version = posted_form.questions_version(found.requests)
        return FormPage(
            self.server, found.tool, token, version, questions, posted_form.initial_values(questions)
        )

    def _take_answers(self, posted: posted_form.Values) -> _Outcome:
        """Store the answers; the same ones get the same reply. A form that is not stored is shown again."""
        token, links = posted_form.only_value(posted, TOKEN), QuestionLinks(self.ports.tasks())
        found = links.find(token)
        if found.state not in ("open", "answered"):
            return _Outcome(found.state)
        is_open = found.state == "open"
        form = replace(self._form(found, token), values=posted)
        if posted_form.only_value(posted, posted_form.VERSION) != form.version:
            return _Outcome("changed" if is_open else "late")
        answers = posted_form.read_answers(form.questions, posted)
        if answers.errors and not is_open:
            return _Outcome("late")
        if answers.errors:
            return _Outcome("invalid", 422, replace(form, errors=answers.errors))
        try:
            if found.task is not None and is_open:
                self.operation.begin_answers(found.tool, found.task, answers.responses)
            stored = links.answer(found, answers.responses)
        except (StoreError, ProtocolError) as error:
            if isinstance(error, StoreError):  # otherwise no audit record can be stored, which is logged
                self.ports.observer.record_failure("task_table_unavailable", error)
            return _Outcome("unavailable", 503, replace(form, problem=NOTICES["unavailable"].text))
        except ItemTooLarge:
            return _Outcome("too_large", 413, replace(form, problem=NOTICES["too_large"].text))
        if stored == "stored":
            # A redirect, so that reloading the page does not post again.
            return _Outcome("answered", 303, headers={"location": f"?{TOKEN}={token}"})
        return _Outcome({"answered": "late", "incomplete": "changed"}.get(stored, stored))


def _notice_for(error: Exception, observer: Observer) -> str:
    """Return the name of the notice for an exception, and log what is not the user's mistake."""
    if isinstance(error, posted_form.MalformedForm):
        return "malformed"
    if isinstance(error, StoreError):
        observer.record_failure("task_table_unavailable", error)
        return "unavailable"
    log_fault(observer, error)
    return "failed"


def _body(outcome: _Outcome) -> tuple[str, int]:
    if outcome.form is not None:
        return render_form(outcome.form), outcome.status
    if outcome.status == 303:
        return "", outcome.status
    notice = NOTICES[outcome.name]
    return render_notice(notice.title, notice.text), notice.status


def _is_foreign(headers: Mapping[str, str], audience: str) -> bool:
    """Return whether another site caused the request."""
    parts, host = urlsplit(audience), headers.get("host", "")
    # Under `no-referrer`, browsers send `Origin: null` with the page's own form (Fetch standard).
    own = (None, "null", f"{parts.scheme}://{parts.netloc}", f"https://{host}", f"http://{host}")
    site = headers.get("sec-fetch-site", "same-origin")
    return headers.get("origin") not in own or site not in ("same-origin", "none")
