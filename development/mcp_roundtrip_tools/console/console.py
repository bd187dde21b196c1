"""The console's own server: its page, its API, and the endpoint for the client that the page plays."""

from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import format_exc
from typing import Any, Final
from urllib.parse import unquote

from mcp_roundtrip import question_ui
from mcp_roundtrip_tools.console.activity import show_activity, show_exchange
from mcp_roundtrip_tools.console.admission import (
    ApiRequest,
    ConsoleError,
    read_request,
    refuse_other_sites,
    refuse_proxies,
    refuse_strangers,
    without_browser,
)
from mcp_roundtrip_tools.console.running_application import (
    describe_application,
    invoke_function,
    issue_token,
)
from mcp_roundtrip_tools.console.states import show_state
from mcp_roundtrip_tools.console.tasks import expire_lease, kill_environment, list_tasks, show_task
from mcp_roundtrip_tools.run.api_gateway.routing import path_parameters
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.browser_protection import PAGE_HEADERS, refuse_cross_origin
from mcp_roundtrip_tools.run.http.messages import Request, Respond, Response, error_response, json_response

WEB: Final = Path(__file__).with_name("web")

FORM: Final = Path(question_ui.__file__).with_name("form.js")
"""The form of questions, which the question app has, too."""

INDEX: Final = "index.html"

CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Content type by suffix. Files with other suffixes are not served."""

SECURITY_HEADERS: Final = (
    (
        "content-security-policy",
        # No inline script or style, no other origin, no frame. Results may hold images and audio.
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'",
    ),
    # A page of another site can neither load a file nor keep a reference to the console's window.
    ("cross-origin-resource-policy", "same-origin"),
    *PAGE_HEADERS,
)


def page_file(name: str) -> Response:
    """Return the file of this name, or 404. The name is joined to no path, so it cannot leave the folder."""
    files = {
        path.relative_to(WEB).as_posix(): path for path in WEB.rglob("*") if path.suffix in CONTENT_TYPES
    }
    path = {FORM.name: FORM, **files}.get(name)
    if path is None:
        return error_response(404, "the console has no such file")
    return Response(200, (("content-type", CONTENT_TYPES[path.suffix]),), path.read_bytes())


def with_security_headers(response: Response) -> Response:
    """Return the response with the headers of the console."""
    return Response(response.status, (*response.headers, *SECURITY_HEADERS), response.body)


FOLDER: Final = "/console/"
API: Final = "/console/api/"


ROUTES: Final[Mapping[str, Mapping[str, Callable[[LocalApp, ApiRequest], Any]]]] = {
    "application": {"GET": describe_application},
    "exchanges/{id}": {"GET": show_exchange},
    "activity": {"GET": show_activity},
    "states": {"POST": show_state},
    "tasks": {"GET": list_tasks},
    "tasks/{id}": {"GET": show_task},
    "tasks/{id}/expire-lease": {"POST": expire_lease},
    "environments/{id}/kill": {"POST": kill_environment},
    "invocations": {"POST": invoke_function},
    "tokens": {"POST": issue_token},
}
"""The function for each path and method. It returns the JSON of the response, or raises ConsoleError."""


class Console:
    """Answers the requests to the console's port.

    `endpoint` answers those that its page sends to the API, whose port is `endpoint_port`.
    """

    def __init__(self, app: LocalApp, endpoint: Respond, endpoint_port: int) -> None:
        self._app = app
        self._endpoint = endpoint
        self._endpoint_port = endpoint_port

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if refusal := refuse_proxies(request):
            return with_security_headers(refusal)
        if path.startswith(API):
            return with_security_headers(refuse_other_sites(request) or self._respond(request, path))
        if path.startswith(FOLDER) or (path == "/" and request.method in ("GET", "HEAD")):
            refusal = refuse_cross_origin(request, lambda origin: False)
            return with_security_headers(refusal or _file(request, path[len(FOLDER) :] or INDEX))
        if refusal := refuse_strangers(request):
            return with_security_headers(refusal)
        return self._endpoint(without_browser(request, self._endpoint_port))

    def _respond(self, request: Request, path: str) -> Response:
        """Answer one request to the API."""
        try:
            return json_response(200, self._call(request, path.removeprefix(API)))
        except ConsoleError as error:
            return json_response(error.status, {"message": str(error), **error.members})
        except Exception as error:
            self._app.recorder.note(f"the console failed:\n{format_exc()}")
            return error_response(500, f"the console failed: {type(error).__name__}; see the terminal")

    def _call(self, request: Request, path: str) -> Any:
        for pattern, answers in ROUTES.items():
            if (parameters := path_parameters(pattern, unquote(path))) is None:
                continue
            if request.method not in answers:
                raise ConsoleError(405, f"{request.method} is not allowed for this path")
            return answers[request.method](self._app, read_request(request, parameters))
        raise ConsoleError(404, "the console's API has no such path")


def _file(request: Request, name: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        return error_response(405, f"{request.method} is not allowed for a file")
    return page_file(name)
