import pytest

from mcp_roundtrip_tools.console.admission import (
    redirect_to_console,
    refuse_other_sites,
    refuse_strangers,
    without_browser,
)
from mcp_roundtrip_tools.console.console import page_file
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.template.model import Route
from support.sam_applications import ONE_FUNCTION, http, write_application
from support.served_application import serve

HOST = ("host", "127.0.0.1:3000")
OWN_ORIGIN = ("origin", "http://127.0.0.1:3000")
JSON = ("content-type", "application/json")
CLIENT = ("x-console", "1")
SAME = ("sec-fetch-site", "same-origin")


def console_url(running, path=""):
    return f"{running.app.console_url}{path}"


def refused(method, *headers):
    answer = refuse_other_sites(Request(method, "/console/api/application", (HOST, *headers)))
    return answer and answer.status


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://127.0.0.1:8000")],
        [("origin", "http://127.0.0.1:3000.evil.example")],
        [("origin", "http://localhost:3000")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        [OWN_ORIGIN, ("sec-fetch-site", "cross-site")],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_the_api_refuses_pages_of_other_sites(method, headers):
    assert refused(method, *headers, JSON, CLIENT) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_changing_request_has_what_no_form_can_send(method):
    own = (OWN_ORIGIN, SAME)
    assert refused(method, *own, JSON) == 403
    assert refused(method, *own, CLIENT) == 415
    for kind in ("text/plain", "text/plain; a=application/json", "multipart/form-data", ""):
        assert refused(method, *own, CLIENT, ("content-type", kind)) == 415
    assert refused(method, CLIENT, JSON, ("sec-fetch-site", "none")) == 403
    assert refused(method, *own, CLIENT, ("content-type", "application/json; charset=utf-8")) is None
    assert refused(method, CLIENT, JSON) is None


def test_own_pages_programs_and_the_address_bar_may_read():
    for headers in ([], [SAME], [OWN_ORIGIN, SAME], [("sec-fetch-site", "none")]):
        assert refused("GET", *headers) is None


def test_pages_of_other_sites_can_link_to_the_console_and_not_load_its_files(running):
    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return http(console_url(running, "console/main.js"), headers=named).status

    assert status(sec_fetch_site="cross-site", sec_fetch_mode="navigate") == 200
    assert status(sec_fetch_site="same-origin") == 200
    assert status(sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
    assert status(origin="https://evil.example") == 403


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "CF-Connecting-IP"]
)
def test_a_tunnel_from_the_internet_does_not_share_the_console(running, header):
    forwarded = {header: "203.0.113.7", "accept": "text/html"}
    for path in ("", "console/", "console/main.js", "console/api/application", "echo"):
        assert http(console_url(running, path), headers=forwarded).status == 403
    post = {**forwarded, "x-console": "1", "content-type": "application/json"}
    url = console_url(running, "console/api/invocations")
    assert http(url, method="POST", body=b"{}", headers=post).status == 403
    assert http(running.app.url("/echo"), headers=forwarded).status == 200
    assert "location" not in http(running.app.url("/"), headers=forwarded).headers


def test_the_console_plays_a_client_that_is_no_browser():
    sent = (HOST, OWN_ORIGIN, SAME, CLIENT, JSON, ("referer", "http://x/"), ("cookie", "a=b"))
    request = Request("POST", "/mcp", sent)
    assert refuse_strangers(request) is None
    assert without_browser(request, 4000).headers == (("host", "127.0.0.1:4000"), JSON)


@pytest.mark.parametrize(
    "headers",
    [
        (HOST, ("sec-fetch-mode", "navigate"), ("sec-fetch-site", "none")),
        (HOST, OWN_ORIGIN, SAME),
        (HOST, ("origin", "https://app.example"), CLIENT),
        (HOST, OWN_ORIGIN, CLIENT, ("sec-fetch-site", "same-site")),
        (HOST, CLIENT, ("sec-fetch-site", "cross-site")),
    ],
)
def test_no_page_of_the_template_is_shown_under_the_origin_of_the_console(running, headers):
    refusal = refuse_strangers(Request("GET", "/report.html", headers))
    assert refusal is not None
    assert refusal.status == 404
    assert http(running.app.url("/echo")).status == 200
    assert http(console_url(running, "echo")).status == 404
    assert http(console_url(running, "echo"), headers=dict([CLIENT])).status == 200


@pytest.mark.parametrize(
    "name",
    [
        *("../console.py", "%2e%2e/console.py", "..%2fconsole.py", "/etc/passwd", "//etc/passwd"),
        *("views/../../console.py", "index.html/", "index.html%00.js", ".", "..", "web", "console.py"),
    ],
)
def test_only_the_files_of_the_page_are_served(name):
    assert page_file(name).status == 404


def test_a_browser_is_led_to_the_console(running):
    page = http(running.app.url("/"), headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert http(console_url(running)).body == page.body == http(console_url(running, "console/")).body
    assert http(console_url(running, "console/main.js"), method="POST", body=b"{}").status == 405


def test_errors_of_the_api_are_json_with_a_message(running):
    missing = http(console_url(running, "console/api/nothing"))
    assert (missing.status, list(missing.json())) == (404, ["message"])
    post = {"x-console": "1", "content-type": "application/json"}
    wrong = http(console_url(running, "console/api/application"), method="POST", body=b"{}", headers=post)
    assert (wrong.status, list(wrong.json())) == (405, ["message"])
    malformed = http(console_url(running, "console/api/states"), method="POST", body=b"{", headers=post)
    assert (malformed.status, list(malformed.json())) == (500, ["message"])


@pytest.mark.parametrize(
    ("method", "target", "accept", "route"),
    [
        ("GET", "/", "*/*", "/mcp"),  # such as a client that opens a stream at an endpoint without a path
        ("GET", "/mcp", "text/html", "/mcp"),
        ("POST", "/", "text/html", "/mcp"),
        ("GET", "/", "text/html", "/"),
    ],
)
def test_programs_and_a_template_s_own_routes_are_not_led_to_the_console(method, target, accept, route):
    request = Request(method, target, (HOST, ("accept", accept)))
    assert redirect_to_console(request, [Route("GET", route, "F")], 3002) is None


def test_a_run_without_the_console_serves_only_the_template(tmp_path):
    source = {"f/app.py": "def handler(event, context):\n    return event['rawPath']\n"}
    with serve(write_application(tmp_path, ONE_FUNCTION, source), console=False) as app:
        assert app.console_url is None
        for path in ("/", "/console/", "/console/api/application"):
            assert http(app.url(path), headers={"accept": "text/html"}).body == path.encode()
