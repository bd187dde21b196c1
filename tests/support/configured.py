"""A deployment with ports of settings, as those of a deployed function are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import structs

from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings
from support.aws_clients import DEFAULT_KIND
from support.deployment import Deployment


@dataclass
class Configured(Deployment):
    """A deployment with these settings. Facets of the ports are not used, but `observer` has the log."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        ports = wiring.make_ports(load_settings({"MCP_AWS_CLIENT": DEFAULT_KIND, **self.settings}))
        self._ports = structs.replace(ports, observer=self.observer)

    def ports(self) -> Ports:
        return self._ports
