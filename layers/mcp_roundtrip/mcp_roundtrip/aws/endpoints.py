"""The endpoints of AWS services in each partition, with the settings that all AWS SDKs read.

https://docs.aws.amazon.com/general/latest/gr/rande.html
https://docs.aws.amazon.com/sdkref/latest/guide/feature-endpoints.html
https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_URL: Final = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?(/[^?#\s]*)?", re.ASCII | re.I
)

_PORTS: Final = {"http": 80, "https": 443}

_PARTITIONS: Final = (
    # Regions, DNS suffix, DNS suffix of dual-stack endpoints
    (r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+", "amazonaws.com", "api.aws"),
    (r"us-gov-\w+-\d+", "amazonaws.com", "api.aws"),
    (r"cn-\w+-\d+", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    (r"eusc-de-\w+-\d+", "amazonaws.eu", "api.amazonwebservices.eu"),
    (r"us-iso-\w+-\d+", "c2s.ic.gov", "api.aws.ic.gov"),
    (r"us-isob-\w+-\d+", "sc2s.sgov.gov", "api.aws.scloud"),
    (r"eu-isoe-\w+-\d+", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    (r"us-isof-\w+-\d+", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
)

_SERVICE_IDS: Final = {"logs": "CLOUDWATCH_LOGS"}
"""Service -> its name in the variables of endpoints, if that differs from the upper-case name."""

_FIPS_BY_DEFAULT: Final = frozenset({"dynamodb", "logs", "sqs"})
"""In GovCloud the ordinary endpoints of these services are FIPS endpoints, and have no other name."""


class ServiceEndpoint(NamedTuple):
    """The address of a service. `host` is what a socket connects to: an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    path: str = ""
    """The path of the endpoint's URL, without a slash at its end."""

    @property
    def authority(self) -> str:
        """The Host header, without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def find_endpoint(
    service: str, region: str, environment: Mapping[str, str], endpoint_url: str | None = None
) -> ServiceEndpoint | None:
    """Return the endpoint of a service in a Region, or the configured one; `endpoint_url` overrides both.

    None means that only an SDK knows the answer: for a Region of no known partition, for a URL of another
    form, and for a configured URL with FIPS or dual stack, which SDKs refuse.
    """
    fips = _is_true(environment, "AWS_USE_FIPS_ENDPOINT")
    dual_stack = _is_true(environment, "AWS_USE_DUALSTACK_ENDPOINT")
    url = endpoint_url or _configured_url(service, environment)
    if url:
        return None if fips or dual_stack else parse_endpoint(url)
    for regions, suffix, dual_stack_suffix in _PARTITIONS:
        if re.fullmatch(regions, region, re.ASCII):
            is_fips_by_default = (
                region.startswith("us-gov-") and service in _FIPS_BY_DEFAULT and not dual_stack
            )
            name = f"{service}-fips" if fips and not is_fips_by_default else service
            return ServiceEndpoint(
                "https", f"{name}.{region}.{dual_stack_suffix if dual_stack else suffix}", 443
            )
    return None


def parse_endpoint(url: str) -> ServiceEndpoint | None:
    """Return the parts of a URL; None if it has userinfo, a query, a fragment or an invalid port."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, host, port, path = match.groups()
    scheme = scheme.lower()
    number = int(port) if port else _PORTS[scheme]
    if not 0 < number < 65_536:
        return None
    return ServiceEndpoint(scheme, host.lower().strip("[]"), number, (path or "").rstrip("/"))


def _configured_url(service: str, environment: Mapping[str, str]) -> str | None:
    if _is_true(environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        return None
    name = _SERVICE_IDS.get(service, service.upper())
    return environment.get(f"AWS_ENDPOINT_URL_{name}") or environment.get("AWS_ENDPOINT_URL")


def _is_true(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() == "true"
