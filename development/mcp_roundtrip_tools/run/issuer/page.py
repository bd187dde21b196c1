"""The sign-in page: choose a user and scopes. It works without scripts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit

from mcp_roundtrip.question_ui.controls import render_boxes, render_group
from mcp_roundtrip.question_ui.page import STYLE_SOURCE, render_document
from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.issuer.grants import Grant
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User

_SOURCE: Final = re.compile(r"[a-z][a-z0-9+.-]*:(?://[a-z0-9.:\[\]-]+)?", re.IGNORECASE)


def sign_in_page(request: Grant, issuer: LocalIssuer, given: Mapping[str, str]) -> Response:
    """Return the page for a request. `given` are its parameters, which the form sends again."""
    users, answered_at = issuer.users, _origin(request.redirect_uri)
    body = f"""\
<h1>Sign in to {escape(issuer.resource)}</h1>
<p><strong>{escape(request.client.name)}</strong> asks for access. The answer goes to \
<code>{escape(answered_at)}</code>.</p>
<p class="note">This is the local issuer of <code>make run</code>. It has no passwords: everyone who uses \
this computer may be any user. Its tokens are valid for this run only.</p>
<form method="post" action="/authorize">
{_hidden(given)}
{_users(users)}
{_scopes(users[0].default_scopes(request.scopes), request.scopes)}
<div class="actions"><button class="main" name="action" value="allow">Allow</button>
<button name="action" value="deny">Deny</button></div>
</form>"""
    return _page("Sign in", body, form_action=answered_at)


def error_page(code: str, description: str, location: str | None = None) -> Response:
    """Return the page for a refused request; its client gets the error only if the user opens `location`."""
    body = f"<h1>This request is refused</h1>\n<p><code>{escape(code)}</code>: {escape(description)}.</p>"
    if location is not None:
        body += f'\n<p><a href="{escape(location)}">Tell the client at {escape(_origin(location))}</a></p>'
    return _page("Refused", body, status=400)


def _hidden(given: Mapping[str, str]) -> str:
    return "\n".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in given.items()
    )


def _boxes(kind: str, name: str, texts: Iterable[str], chosen: Iterable[str]) -> str:
    """Return a box for each text, whose value is the text."""
    options = [(escape(text), text) for text in texts]
    return render_boxes(kind, name, options, {escape(text) for text in chosen})


def _users(users: Sequence[User]) -> str:
    boxes = _boxes("radio", "user", [each.name for each in users], [users[0].name])
    other = '<input type="text" name="other_user" maxlength="128" autocomplete="off">'
    return render_group("user", "User", [], f"{boxes}<label>or another user: {other}</label>", "")


def _scopes(selected: Iterable[str], requested: Iterable[str]) -> str:
    marked = {*selected}
    shown = sorted(marked | {*requested})
    if not shown:
        return '<p class="note">No scopes are requested.</p>'
    return render_group("granted", "Scopes", [], _boxes("checkbox", "granted", shown, marked), "")


def _origin(uri: str) -> str:
    """Return the origin of a redirect URI; of a URI of an application its scheme."""
    parts = urlsplit(uri)
    return (
        f"{parts.scheme}://{parts.netloc}"
        if parts.netloc and parts.scheme in ("http", "https")
        else f"{parts.scheme}:"
    )


_HEADERS: Final = (
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)


def _page(title: str, body: str, *, status: int = 200, form_action: str = "") -> Response:
    # Browsers apply form-action to the redirect that answers a form, too.
    source = form_action if _SOURCE.fullmatch(form_action) else ""
    policy = (
        f"default-src 'none'; style-src {STYLE_SOURCE}; base-uri 'none'; form-action 'self' {source}; "
        "frame-ancestors 'none'"
    )
    headers = (("content-type", "text/html; charset=utf-8"), ("content-security-policy", policy), *_HEADERS)
    return Response(status, headers, render_document(title, body).encode())
