"""Endpoints of AWS services, with botocore's resolver as the oracle for every Region that it lists."""

from typing import Any

import pytest
from botocore.endpoint_provider import EndpointProvider
from botocore.exceptions import EndpointProviderError
from botocore.session import get_session

from mcp_roundtrip.aws.endpoints import ServiceEndpoint, find_endpoint, parse_endpoint

SERVICES = ("lambda", "kms", "dynamodb", "sqs", "logs")
FIPS, DUAL_STACK = {"AWS_USE_FIPS_ENDPOINT": "true"}, {"AWS_USE_DUALSTACK_ENDPOINT": "true"}

SETTINGS = {"ordinary": {}, "FIPS": FIPS, "dual stack": DUAL_STACK, "both": FIPS | DUAL_STACK}


@pytest.fixture(scope="module")
def loader():
    return get_session().get_component("data_loader")


@pytest.fixture(scope="module")
def regions(loader):
    """Return the Regions of all partitions, and those that botocore lists for a service."""
    session = get_session()
    listed = {name for each in loader.load_data("partitions")["partitions"] for name in each["regions"]}
    for partition in session.get_available_partitions():
        for service in SERVICES:
            listed |= set(session.get_available_regions(service, partition))
    assert {"us-east-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1"} <= listed
    assert {"eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"} <= listed
    return sorted(listed)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("service", SERVICES)
def test_botocore_finds_the_same_endpoint_in_every_region(loader, regions, service, settings):
    rules = loader.load_service_model(service, "endpoint-rule-set-1")
    oracle = EndpointProvider(rules, loader.load_data("partitions"))
    found = {}
    for region in regions:
        endpoint = find_endpoint(service, region, settings)
        # boto3 is used for a Region that stands for a whole partition: it is no Region of an endpoint.
        assert (endpoint is None) is region.endswith("-global")
        if endpoint is not None:
            found[region] = endpoint.url
    parameters = {
        "UseFIPS": "AWS_USE_FIPS_ENDPOINT" in settings,
        "UseDualStack": settings.keys() >= DUAL_STACK.keys(),
    }
    assert found == {region: oracle.resolve_endpoint(Region=region, **parameters).url for region in found}
    assert len(found) > 40


def test_a_new_region_of_a_known_partition_needs_no_release():
    assert find_endpoint("kms", "eu-middle-7", {}) == ServiceEndpoint(
        "https", "kms.eu-middle-7.amazonaws.com", 443
    )


@pytest.mark.parametrize(
    "region", ["", "local", "fips-us-east-1", "us-east-1-fips", "xx-east-1", "us-east-1.evil.test"]
)
def test_an_unknown_region_is_left_to_boto3(region):
    assert find_endpoint("dynamodb", region, {}) is None


CONFIGURED = {
    "for the service": ({"AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1"}, None, "http://127.0.0.1:1"),
    "for all services": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:2"}, None, "http://127.0.0.1:2"),
    "for both": (
        {"AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1", "AWS_ENDPOINT_URL": "http://127.0.0.1:2"},
        None,
        "http://127.0.0.1:1",
    ),
    "for another service": ({"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1"}, None, None),
    "empty": ({"AWS_ENDPOINT_URL_KMS": "", "AWS_ENDPOINT_URL": ""}, None, None),
    "ignored": (
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:2", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "True"},
        None,
        None,
    ),
    "not ignored": (
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:2", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "1"},
        None,
        "http://127.0.0.1:2",
    ),
    "argument": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:2"}, "https://x.test/kms/", "https://x.test/kms"),
    "argument, others ignored": (
        {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        "https://x.test",
        "https://x.test",
    ),
}


@pytest.mark.parametrize(("environment", "argument", "url"), CONFIGURED.values(), ids=CONFIGURED)
def test_a_configured_endpoint_is_used_as_botocore_uses_it(monkeypatch, environment, argument, url):
    endpoint = find_endpoint("kms", "eu-west-1", environment, argument)
    assert endpoint is not None
    assert endpoint.url == (url or "https://kms.eu-west-1.amazonaws.com")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
    session: Any = get_session()
    oracle = session.create_client("kms", endpoint_url=argument, **keys)
    assert oracle.meta.endpoint_url.rstrip("/") == endpoint.url
    oracle.close()


@pytest.mark.parametrize("settings", [FIPS, DUAL_STACK])
def test_a_configured_endpoint_with_fips_or_dual_stack_is_left_to_boto3_which_refuses_it(loader, settings):
    url = "http://127.0.0.1:1"
    assert find_endpoint("kms", "eu-west-1", settings | {"AWS_ENDPOINT_URL": url}) is None
    oracle = EndpointProvider(
        loader.load_service_model("kms", "endpoint-rule-set-1"), loader.load_data("partitions")
    )
    parameters = {"UseFIPS": settings == FIPS, "UseDualStack": settings == DUAL_STACK}
    with pytest.raises(EndpointProviderError):
        oracle.resolve_endpoint(Region="eu-west-1", Endpoint=url, **parameters)


URLS = {
    "http://127.0.0.1:4566": ServiceEndpoint("http", "127.0.0.1", 4566),
    "https://vpce-1.kms.eu-west-1.vpce.amazonaws.com": ServiceEndpoint(
        "https", "vpce-1.kms.eu-west-1.vpce.amazonaws.com", 443
    ),
    "HTTP://LocalHost/": ServiceEndpoint("http", "localhost", 80),
    "http://[::1]:8000/a/b/": ServiceEndpoint("http", "::1", 8000, "/a/b"),
}


@pytest.mark.parametrize(("url", "endpoint"), URLS.items())
def test_a_url_has_the_parts_of_an_endpoint(url, endpoint):
    assert parse_endpoint(url) == endpoint


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "ftp://x", "http://", "http://u@x", "http://x?q", "http://x#f", "http://x:0"),
        *("http://x\r\nHost: y", "http://x y", "http://x/\n", "//x", "http://x:", "http://é.test"),
        "http://x:65536",
    ],
)
def test_another_url_is_no_endpoint(url):
    assert parse_endpoint(url) is None


def test_the_host_header_omits_the_port_of_the_scheme():
    assert ServiceEndpoint("https", "x.test", 443).authority == "x.test"
    assert ServiceEndpoint("http", "x.test", 443).authority == "x.test:443"
    assert ServiceEndpoint("http", "::1", 80).authority == "[::1]"
