import socket
import ssl
from contextlib import closing
from ipaddress import ip_address

import pytest
from cryptography import x509

from mcp_roundtrip_tools.client import http
from mcp_roundtrip_tools.smoke.checked_endpoint import Finding
from mcp_roundtrip_tools.smoke.run import Settings
from support.certificates import Authority
from support.scripted_server import Reply, hang, reset, respond, scripted, send
from tools.smoke.conftest import findings_of

LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))


def the_fault(settings: Settings) -> Finding:
    """Return the only wrong finding, which is the last one."""
    found = [*findings_of(settings).values()]
    assert [each.status for each in found].count("wrong") == 1
    assert found[-1].status == "wrong"
    return found[-1]


WRONG_URLS = (
    *("", "tools.example/mcp", "http://", "http://tools.example/mcp", "https://t.example/mcp?x=1"),
    *("https://[x", "http://127.0.0.1:65536/mcp", "http://127.0.0.1:x/mcp", "https://x\n/mcp"),
    *("http://notlocalhost/mcp", "http://127.0.0.1:0/mcp"),
)


@pytest.mark.parametrize("url", WRONG_URLS)
def test_a_wrong_url_is_refused_before_any_request(url):
    assert the_fault(Settings(url)).check == "url"


def test_a_host_without_an_address_and_a_port_without_a_server_are_named():
    fault = the_fault(Settings("https://no-such-host.invalid/mcp"))
    assert (fault.check, "no-such-host.invalid" in fault.text) == ("connection", True)
    with closing(socket.socket()) as bound:  # nothing listens
        bound.bind(("127.0.0.1", 0))
        assert "refused" in the_fault(Settings(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp")).text


@pytest.mark.parametrize("proxy", ["http", "socks5"])
def test_a_proxy_of_the_environment_that_does_not_answer_is_a_finding(proxy, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", f"{proxy}://127.0.0.1:9")
    fault = the_fault(Settings("https://tools.example/mcp"))
    assert (fault.check, "refused" in fault.text) == ("connection", True), "the proxy was asked"


BROKEN: dict[str, tuple[Reply, str]] = {
    "closes the connection": (reset, "reset"),
    "speaks another protocol": (send(b"SSH-2.0-OpenSSH_9.2\r\n", close=True), "without sending"),
    "does not answer": (hang(), "did not answer"),
}


@pytest.mark.parametrize(("reply", "text"), BROKEN.values(), ids=BROKEN)
def test_a_server_without_http_is_described(reply, text, monkeypatch):
    assert http.request.__kwdefaults__ is not None
    monkeypatch.setitem(http.request.__kwdefaults__, "timeout_s", 0.3)
    with scripted(reply) as server:
        fault = the_fault(Settings(f"{server.url}/mcp"))
    assert fault.check == "connection"
    assert text in fault.text


CERTIFICATES: dict[str, tuple[x509.GeneralName, int, bool, str]] = {
    "of another host": (x509.DNSName("other.example"), 1, True, "not valid for"),
    "expired": (LOOPBACK, -1, True, "expired"),
    "of an unknown authority": (LOOPBACK, 1, False, "local issuer"),
}


@pytest.mark.parametrize(("name", "days", "trusted", "text"), CERTIFICATES.values(), ids=CERTIFICATES)
def test_a_refused_certificate_is_described(tmp_path, name, days, trusted, text):
    authority = Authority("One CA")
    bundle = (authority if trusted else Authority("Another CA")).bundle(tmp_path)
    with scripted(tls=authority.context(tmp_path, name, days=days)) as server:
        fault = the_fault(Settings(f"{server.url}/mcp", tls=ssl.create_default_context(cafile=bundle)))
    assert text in fault.text


ANSWERS: dict[str, tuple[Reply, str]] = {
    "no route": (respond(404, {"message": "Not Found"}), "McpUrl"),
    "a redirect": (
        respond(301, b"", Location="https://other.example/"),
        "redirects to https://other.example/",
    ),
    "throttled": (respond(429, {"message": "Too Many Requests"}), "ThrottlingRate"),
    "a crash": (respond(502, {"message": "Internal Server Error"}), "import error"),
    "no permission to invoke": (respond(500, {"message": "Internal Server Error"}), "may not invoke it"),
    "no capacity": (respond(503, {"message": "Service Unavailable"}), "throttled"),
    "a timeout": (respond(504, {"message": "Endpoint request timed out"}), "in time"),
    "a page": (respond(200, b"<html>", Content_Type="text/html"), "text/html"),
    "another method": (respond(405, b""), "POST"),
}


@pytest.mark.parametrize(("reply", "text"), ANSWERS.values(), ids=ANSWERS)
def test_a_response_that_is_no_mcp_message_is_explained(reply, text):
    with scripted(reply) as server:
        fault = the_fault(Settings(f"{server.url}/mcp"))
    assert fault.check == "anonymous"
    assert text in fault.text


@pytest.mark.parametrize(("status", "is_logged"), [(404, False), (500, True)])
def test_the_log_is_named_only_for_a_request_that_found_a_route(status, is_logged):
    with scripted(respond(status, {"message": "No"}, Apigw_Requestid="abc=")) as server:
        fault = the_fault(Settings(f"{server.url}/mcp"))
    assert ("abc=" in fault.text) is is_logged


EXPIRED = b"<ErrorResponse><Error><Code>ExpiredToken</Code><Message>expired</Message></Error></ErrorResponse>"
PROFILES = """
[profile base]
aws_access_key_id = AKIAEXAMPLE
aws_secret_access_key = secret
[profile role]
role_arn = arn:aws:iam::111122223333:role/caller
source_profile = base
region = eu-west-1
"""


@pytest.mark.parametrize(("profile", "named"), [("no-such-profile",) * 2, ("role", "ExpiredToken")])
def test_credentials_that_boto3_cannot_load_are_a_finding(monkeypatch, tmp_path, profile, named):
    (tmp_path / "config").write_text(PROFILES)
    with scripted(respond(403, EXPIRED)) as sts:
        monkeypatch.setenv("AWS_PROFILE", profile)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_ENDPOINT_URL", sts.url)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
        fault = the_fault(Settings("https://a.execute-api.eu-west-1.amazonaws.com/mcp", iam=True))
    assert named in fault.text


def test_a_refusal_of_unsigned_requests_names_the_setting_for_signatures():
    with scripted(respond(403, {"message": "Forbidden"})) as server:
        found = findings_of(Settings(f"{server.url}/mcp"))
    assert "IAM=1" in found["token"].text
