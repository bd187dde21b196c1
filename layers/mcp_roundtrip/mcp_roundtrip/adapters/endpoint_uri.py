"""Derive the URI of an endpoint from members of an event that its caller cannot choose.

The URI becomes the audience of tokens and states, so a caller that chose it could use a token that was issued
for another server. Therefore:

- The host is one that AWS gave to the API or function URL: `<id>.execute-api.<Region>.<suffix of AWS>` or
  `<id>.lambda-url.<Region>.on.aws`, where the id is the event's `apiId`. `domainName` is what the caller has
  written into Host: any subdomain of a custom domain with a wildcard, and more for private APIs. `wiring`
  checks that the Region is the function's.
- The path is that of the stage and of the route, as their owner defined them, up to the first variable. The
  path of the request is never read.

Other requests have no URI here. Sources: API Gateway developer guide, "Variables for access logging"
(`domainName`, `resourcePath`), "Wildcard custom domain names", "Invoke a private API"; Lambda developer
guide, "Invoking Lambda function URLs".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from mcp_roundtrip.adapters.event import Event, text

DEFAULT: Final = "$default"
"""The stage and the route of HTTP APIs that have no path."""

_SUFFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cn": "amazonaws.com.cn",
        "eusc-de": "amazonaws.eu",
        "us-iso": "c2s.ic.gov",
        "us-isob": "sc2s.sgov.gov",
        "eu-isoe": "cloud.adc-e.uk",
        "us-isof": "csp.hci.ic.gov",
    }
)
"""The first part of a Region's name -> the DNS suffix of its partition, if it is not `amazonaws.com`.

Only AWS has names below these suffixes. Source: botocore, `partitions.json`.
"""

_METADATA: Final = "/.well-known/oauth-protected-resource"
_WELL_KNOWN: Final = "/.well-known"
_SERVER_CARD: Final = "/server-card"


def api_uri(context: Event, route_key: str) -> str | None:
    """Return the URI of a route of an API; None if the caller might have chosen a part of it.

    `context` is the event's `requestContext`. `route_key` is a path, behind a method or not, or `$default`.
    """
    origin = _origin(context, "execute-api", _dns_suffix)
    stage, path = text(context, "stage"), _fixed_path(route_key)
    if origin is None or path is None or not _is_stage(stage):
        return None
    return origin + ("" if stage == DEFAULT else f"/{stage}") + path


def function_url(context: Event) -> str | None:
    """Return the URI of a function URL; None if the caller might have chosen a part of it."""
    return _origin(context, "lambda-url", lambda region: "on.aws")


def _origin(context: Event, service: str, suffix_of: Callable[[str], str]) -> str | None:
    """Return `https://<id>.<service>.<Region>.<suffix>` if this is the domain of the request."""
    api, domain = text(context, "apiId"), text(context, "domainName").lower()
    region = domain.removeprefix(f"{api}.{service}.").partition(".")[0]
    expected = f"{api}.{service}.{region}.{suffix_of(region)}"
    return f"https://{expected}" if domain == expected and _is_label(api) and _is_label(region) else None


def _dns_suffix(region: str) -> str:
    return _SUFFIXES.get(region.rsplit("-", 2)[0], "amazonaws.com")


def _is_label(label: str) -> bool:
    return label.isascii() and label.replace("-", "").isalnum() and label == label.lower()


def _is_stage(stage: str) -> bool:
    return stage == DEFAULT or (stage.isascii() and stage.replace("-", "").replace("_", "").isalnum())


def _fixed_path(route_key: str) -> str | None:
    """Return the path of a route up to its first variable.

    A route of metadata (RFC 9728 §3.1) has the path of the resource that they describe; with a variable, this
    is the caller's choice. A route of a Server Card begins with the path of the endpoint.
    """
    path = route_key.rpartition(" ")[2]
    if path == DEFAULT:
        return ""
    fixed, variable, _ = path.partition("/{")
    if not path.startswith("/") or "{" in fixed:
        return None
    if f"{fixed}/".startswith(f"{_WELL_KNOWN}/"):
        described = fixed.removeprefix(_METADATA)
        if variable or described == fixed or described[:1] not in ("", "/"):
            return None
        fixed = described
    return fixed.removesuffix(_SERVER_CARD).rstrip("/")
