"""The sign-in page: choose a user and scopes. It works without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.issuer.grants import Grant
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User

STYLE: Final = Path(__file__).with_name("style.css")

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
<button class="primary" name="action" value="allow">Allow</button>
<button name="action" value="deny">Deny</button>
</form>"""
    return _page("Sign in", body, form_action=answered_at)


def error_page(code: str, description: str, location: str | None = None) -> Response:
    """Return the page for a refused request; its client gets the error only if the user opens `location`."""
    body = f"<h1>This request is refused</h1>\n<p><code>{escape(code)}</code>: {escape(description)}.</p>"
    if location is not None:
        body += f'\n<p><a href="{escape(location)}">Tell the client at {escape(_origin(location))}</a></p>'
    return _page("Refused", body, status=400)


def style_sheet() -> Response:
    """Return the style of the pages."""
    return Response(200, (("content-type", "text/css; charset=utf-8"), *_HEADERS), STYLE.read_bytes())


def _hidden(given: Mapping[str, str]) -> str:
    return "\n".join(_input("hidden", name, value) for name, value in given.items())


def _input(kind: str, name: str, value: str, *, is_checked: bool = False) -> str:
    checked = " checked" if is_checked else ""
    return f'<input type="{kind}" name="{escape(name)}" value="{escape(value)}"{checked}>'


def _users(users: Sequence[User]) -> str:
    rows = (
        _input("radio", "user", each.name, is_checked=each is users[0]) + escape(each.name) for each in users
    )
    other = 'or another user:\n<input type="text" name="other_user" maxlength="128" autocomplete="off">'
    return _fieldset("User", [*rows, other])


def _scopes(selected: Iterable[str], requested: Iterable[str]) -> str:
    marked = {*selected}
    shown = sorted(marked | {*requested})
    if not shown:
        return '<p class="note">No scopes are requested.</p>'
    rows = (
        f"{_input('checkbox', 'granted', each, is_checked=each in marked)}<code>{escape(each)}</code>"
        for each in shown
    )
    return _fieldset("Scopes", rows)


def _fieldset(legend: str, rows: Iterable[str]) -> str:
    labels = "\n".join(f"<label>{row}</label>" for row in rows)
    return f"<fieldset><legend>{legend}</legend>\n{labels}\n</fieldset>"


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
        f"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self' {source}; "
        "frame-ancestors 'none'"
    )
    document = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
    headers = (("content-type", "text/html; charset=utf-8"), ("content-security-policy", policy), *_HEADERS)
    return Response(status, headers, document.encode())
