"""Forgeries with every key: take a state apart, change one layer, and put it together again.

The layers outside the changed one are rebuilt and valid, so that only the change can be the reason for a
refusal. Attacks are data: `support.attacks_*` has a table for each layer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.state.claims import OpenState
from mcp_roundtrip.state.jws import Signer
from mcp_roundtrip.state.signing_key_certificates import CertifiedKey
from support import tokens

PAYLOAD = {"answers": {"size": {"vcpus": 2}}}
SECRET = tokens.epoch_secret(tokens.EPOCH)


class Forge:
    """A genuine state of a configuration, in layers.

    `inner` is the signed token, `header`, `claims` and `signature` its parts; `certificate` is in the header
    if signing is delegated, `outer` is the header around `inner` if states are encrypted. Every method
    returns a complete state.
    """

    def __init__(self, configuration: tokens.Configuration) -> None:
        self.configuration = configuration
        self.token = configuration.codec().seal(tokens.BINDING, PAYLOAD, round=1, first_issued_at=None)
        self.outer = tokens.header_of(self.token) if configuration.encrypted else {}
        self.inner = tokens.decrypted(self.token, SECRET) if configuration.encrypted else self.token
        self.header, self.claims = tokens.header_of(self.inner), tokens.claims_of(self.inner)
        self.signature = tokens.unb64(self.inner.rpartition(".")[2])
        self.certificate: str = self.header.get("crt", "")
        signer = tokens.DELEGATION.signer() if configuration.delegated else tokens.KEY
        self.key = signer.key if isinstance(signer, CertifiedKey) else tokens.KEY

    def wrap(self, inner: str | bytes) -> str | bytes:
        return tokens.encrypted(self.outer, inner, SECRET) if self.outer else inner

    def signed(self, header: Any, claims: Any, signer: Signer | None = None) -> str | bytes:
        """Return a state with any header and claims, validly signed."""
        return self.wrap(tokens.signed(header, claims, signer or self.key))

    def with_header(self, **members: Any) -> str | bytes:
        """Change members of the header. None removes one."""
        return self.wrap(tokens.with_header(self.inner, self.key, **members))

    def with_claims(self, **members: Any) -> str | bytes:
        return self.wrap(tokens.with_claims(self.inner, self.key, **members))

    def without_claim(self, name: str) -> str | bytes:
        return self.wrap(tokens.without_claim(self.inner, name, self.key))

    def with_signature(self, signature: bytes) -> str | bytes:
        return self.wrap(tokens.with_signature(self.inner, signature))

    def with_outer(self, **members: Any) -> str:
        """Change members of the outer header. None removes one."""
        return tokens.encrypted(tokens.changed(self.outer, members), self.inner, SECRET)

    def at_epoch(self, epoch: object) -> str:
        """Encrypt with the key of the epoch of this name."""
        kid = f"{tokens.MAC.short_key_id}.{epoch}"
        return tokens.encrypted(self.outer | {"kid": kid}, self.inner, tokens.epoch_secret(epoch))


@dataclass(frozen=True, slots=True)
class Attack:
    """A change to a state or its request, and the reason for the refusal (None if it is accepted).

    `on` are the configurations that have the attacked layer, `instead` the reasons if an outer layer
    refuses first. The state is presented `later_s` seconds after it was minted, in the request BINDING with
    the changes `request`, to a verifier with the keyword arguments `verifier` (see `Configuration.codec`).
    """

    forge: Callable[[Forge], object]
    reason: str | None
    on: tuple[tokens.Configuration, ...] = tokens.CONFIGURATIONS
    instead: Mapping[tokens.Configuration, str] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    later_s: int = 0
    verifier: Mapping[str, Any] = field(default_factory=dict)

    def reason_on(self, configuration: tokens.Configuration) -> str | None:
        return self.instead.get(configuration, self.reason)

    def present(self, configuration: tokens.Configuration) -> OpenState:
        """Present the state to the codec, and let its exceptions propagate."""
        codec = configuration.codec(tokens.NOW + self.later_s, **self.verifier)
        return codec.open(replace(tokens.BINDING, **self.request), self.forge(FORGES[configuration]))


FORGES = {configuration: Forge(configuration) for configuration in tokens.CONFIGURATIONS}
