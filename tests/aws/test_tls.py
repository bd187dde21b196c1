from hashlib import sha256
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mcp_roundtrip.aws import connections
from mcp_roundtrip.aws.client_interface import NoResponse
from mcp_roundtrip.aws.signed_client import AwsClients, retry_connection
from support.aws_clients import FUNCTION
from support.certificates import Authority
from support.scripted_server import scripted
from support.signed_callers import calling, fails_with


@pytest.fixture(scope="module")
def authority():
    return Authority("One CA")


LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))


BUNDLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")


@pytest.fixture
def system(monkeypatch, tmp_path):
    """Return a function that sets the authorities that the operating system trusts."""

    def trusting(*authorities):
        bundle = tmp_path / "system.pem"
        certificates = [each.certificate.public_bytes(Encoding.PEM).decode() for each in authorities]
        bundle.write_text("# Autorität\n" + "# Autorität\n".join(certificates))
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))

    for variable in BUNDLES:
        monkeypatch.delenv(variable, raising=False)
    connections.amazon_tls_context.cache_clear()
    connections.tls_context.cache_clear()
    monkeypatch.setattr(connections, "AMAZON_HOSTS", ("127.0.0.1",))
    yield trusting
    connections.amazon_tls_context.cache_clear()
    connections.tls_context.cache_clear()


def test_a_server_with_a_valid_certificate_is_called_over_one_connection(authority, system, tmp_path):
    system(authority)
    with calling(tls=authority.context(tmp_path, LOOPBACK)) as call:
        for _ in range(3):
            assert call() == {}
    assert call.server.connections_used == [1, 1, 1]


WRONG = {
    "another name": (x509.DNSName("kms.test"), 1, ["One CA"]),
    "expired": (LOOPBACK, -1, ["One CA"]),
    "unknown authority": (LOOPBACK, 1, ["Another CA"]),
    "no authority": (LOOPBACK, 1, []),
}


@pytest.mark.parametrize(("name", "days", "trusted"), WRONG.values(), ids=WRONG)
def test_a_server_with_a_wrong_certificate_gets_no_request(authority, system, tmp_path, name, days, trusted):
    authorities = {"One CA": authority, "Another CA": Authority("Another CA")}
    system(*(authorities[each] for each in trusted))
    with (
        calling(tls=authority.context(tmp_path, name, days=days)) as call,
        fails_with("SSLError", NoResponse),
    ):
        call()
    assert call.server.requests == []
    assert call.pauses == [0.05, 0.1]


@pytest.mark.parametrize("variable", BUNDLES)
def test_a_file_of_authorities_replaces_those_of_the_system(
    authority, system, tmp_path, monkeypatch, variable
):
    system(authority)
    is_amazon(authority, monkeypatch)
    bundles = {"SSLError": Authority("Another").bundle(tmp_path), "invalid_ca_bundle": tmp_path / "missing"}
    with scripted(tls=authority.context(tmp_path, LOOPBACK)) as server:
        for code, bundle in bundles.items():
            environment = {**FUNCTION, "AWS_ENDPOINT_URL": server.url, variable: str(bundle)}
            client = AwsClients(environment=environment).invoke_client()
            with fails_with(code):
                client.call("Invoke", FunctionName="f", Payload=b"{}")
    assert server.requests == []


def is_amazon(authority, monkeypatch):
    digest = sha256(authority.certificate.public_bytes(Encoding.DER)).hexdigest()
    monkeypatch.setattr(connections, "AMAZON_AUTHORITIES", frozenset({digest}))


def test_a_server_with_a_certificate_by_amazon_needs_no_other_authority(
    authority, tmp_path, system, monkeypatch
):
    system(Authority("Another"), authority)
    is_amazon(authority, monkeypatch)
    with calling(tls=authority.context(tmp_path, LOOPBACK)) as call:
        assert call() == {}
    context = connections.amazon_tls_context()
    assert context is not None
    assert context.cert_store_stats()["x509"] == 1
    assert connections.tls_context.cache_info().currsize == 0


def test_a_server_with_another_certificate_is_called_if_the_system_trusts_its_authority(
    authority, tmp_path, system, monkeypatch
):
    amazon = Authority("Amazon")
    system(amazon, authority)
    is_amazon(amazon, monkeypatch)
    with calling(tls=authority.context(tmp_path, LOOPBACK), retries=retry_connection) as call:
        for _ in range(2):
            assert call() == {}
            call.connections.close()
    assert len(call.server.requests) == 2
    assert call.server.connections == 3  # Amazon's authorities were tried once


def test_an_authority_of_amazon_that_the_system_does_not_trust_is_not_trusted(
    authority, tmp_path, system, monkeypatch
):
    system(Authority("Another"))
    is_amazon(authority, monkeypatch)
    tls = authority.context(tmp_path, LOOPBACK)
    with calling(tls=tls, retries=retry_connection) as call, fails_with("SSLError", NoResponse):
        call()
    assert connections.amazon_tls_context() is None
    assert call.server.requests == []


@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_system_without_a_file_of_authorities_is_no_error(system, monkeypatch, tmp_path, content):
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert connections.amazon_tls_context() is None


def test_the_names_of_endpoints_outside_amazon_s_partitions_are_none_of_amazon():
    hosts = ["kms.cn-north-1.amazonaws.com.cn", "kms.us-iso-east-1.c2s.ic.gov", "amazonaws.com.evil.test"]
    assert [host for host in hosts if host.endswith(connections.AMAZON_HOSTS)] == []
