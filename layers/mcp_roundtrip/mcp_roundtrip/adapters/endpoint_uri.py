"""Derive the URI of an endpoint from members of an event that its caller cannot choose.

The URI becomes the audience of tokens and states, so a caller that chose it could use a token that was issued
for another server. Therefore:

- The host is one that AWS gave to the API or function URL: `<id>.execute-api.<Region>.<suffix of AWS>` or
  `<id>.lambda-url.<Region>.on.aws`, where the id is the event's `apiId`. `domainName` is what the caller has
  written into Host: any subdomain of a custom domain with a wildcard, and more for private APIs.
- The path is that of the stage and of the route, as their owner defined them, up to the first variable. The
  path of the request is never read.

Other requests have no URI here. Sources: API Gateway developer guide, "Variables for access logging"
(`domainName`, `resourcePath`), "Wildcard custom domain names", "Invoke a private API"; Lambda developer
guide, "Invoking Lambda function URLs".
"""

from __future__ import annotations

from typing import Final

from mcp_roundtrip.adapters.event import Event, text

DEFAULT: Final = "$default"
"""The stage and the route of HTTP APIs that have no path."""

_GATEWAY_SUFFIXES: Final = frozenset(
    {
        *("amazonaws.com", "amazonaws.com.cn", "amazonaws.eu"),
        *("c2s.ic.gov", "sc2s.sgov.gov", "cloud.adc-e.uk", "csp.hci.ic.gov"),
    }
)
"""The DNS suffixes of AWS's partitions (botocore, `partitions.json`). Only AWS has names below them."""

_METADATA: Final = "/.well-known/oauth-protected-resource"
_WELL_KNOWN: Final = "/.well-known"


def api_uri(context: Event, route_key: str) -> str | None:
    """Return the URI of a route of an API; None if the caller might have chosen a part of it.

    `context` is the event's `requestContext`. `route_key` is a path, behind a method or not, or `$default`.
    """
    origin = _origin(context, "execute-api", _GATEWAY_SUFFIXES)
    stage, path = text(context, "stage"), _fixed_path(route_key)
    if origin is None or path is None or not _is_stage(stage):
        return None
    return origin + ("" if stage == DEFAULT else f"/{stage}") + path


def function_url(context: Event) -> str | None:
    """Return the URI of a function URL; None if the caller might have chosen a part of it."""
    return _origin(context, "lambda-url", frozenset({"on.aws"}))


def _origin(context: Event, service: str, suffixes: frozenset[str]) -> str | None:
    """Return `https://<id>.<service>.<Region>.<suffix>` if this is the domain of the request."""
    api = text(context, "apiId")
    own, _, rest = text(context, "domainName").lower().partition(f".{service}.")
    region, _, suffix = rest.partition(".")
    is_own = own == api and _is_label(api) and _is_label(region) and suffix in suffixes
    return f"https://{api}.{service}.{region}.{suffix}" if is_own else None


def _is_label(label: str) -> bool:
    """Return whether a text is one label of a host name, in lower case."""
    return label.isascii() and label.replace("-", "").isalnum() and label == label.lower()


def _is_stage(stage: str) -> bool:
    return stage == DEFAULT or (stage.isascii() and stage.replace("-", "").replace("_", "").isalnum())


def _fixed_path(route_key: str) -> str | None:
    """Return the path of a route up to its first variable.

    A route of metadata (RFC 9728 §3.1) has the path of the resource that they describe; with a variable, this
    is the caller's choice.
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
    return fixed.rstrip("/")
