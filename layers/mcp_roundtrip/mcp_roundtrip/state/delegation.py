"""Signing without a key service call for each token: the root key certifies a key in memory.

Benefit: one call of the key service for many tokens, and none while it is unavailable for some minutes.
Cost: an attacker who reads this process's memory can sign states until the certificate expires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from mcp_roundtrip.state import certificates
from mcp_roundtrip.state.certificates import LIFETIME_S
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.key_renewal import RenewalBackoff, renewal_time
from mcp_roundtrip.state.keys import LocalKey, Signer


class CertifiedKey(Struct, frozen=True):
    """A key in memory with its certificate, valid from `issued_at` to `expires_at` (epoch seconds)."""

    key: LocalKey
    certificate: str
    issued_at: int

    @property
    def expires_at(self) -> int:
        return self.issued_at + LIFETIME_S

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"crt": self.certificate}

    def sign(self, signing_input: bytes) -> bytes:
        return self.key.sign(signing_input)


class Delegation(Struct):
    """Creates a key and its certificate at the first token, and replaces them regularly.

    Not earlier: all environments started from one snapshot (AWS Lambda SnapStart) would share the key.
    """

    root: Signer
    issuer: str
    audience: str
    limits: Limits
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    random: Callable[[], float]
    """In [0, 1)."""
    renewals: RenewalBackoff
    on_issued: Callable[[str, int], None]
    """Called with the `jti` and the expiry (epoch seconds) of each certificate. The `jti` can be revoked."""

    _certified: CertifiedKey | None = None
    _renew_at: float = 0.0

    def signer(self) -> Signer:
        """Return a key whose certificate outlasts any token signed now.

        It is renewed early. If that fails, the old key is used as long as possible. Raises KeyServiceError if
        there is no usable key.
        """
        now = self.clock()
        certified = self._certified
        if certified is None or not self._is_usable(certified, now):
            return self._renew(now)
        if now < self._renew_at:
            return certified
        return self.renewals.attempt(lambda: self._renew(now)) or certified

    def _is_usable(self, certified: CertifiedKey, now: float) -> bool:
        # After the clock was set back, the certificate may be in the future.
        first, last = certified.issued_at - self.limits.skew_s, certified.expires_at - self.limits.round_ttl_s
        return first <= now <= last

    def _renew(self, now: float) -> CertifiedKey:
        issued_at, jti = int(now), self.random_bytes(16).hex()
        key = LocalKey.generate(self.random_bytes)
        certificate = certificates.issue(
            self.root,
            key.public_key,
            issuer=self.issuer,
            audience=self.audience,
            issued_at=issued_at,
            jti=jti,
        )
        certified = self._certified = CertifiedKey(key, certificate, issued_at)
        self._renew_at = renewal_time(now, certified.expires_at - self.limits.round_ttl_s, self.random())
        self.on_issued(jti, certified.expires_at)
        return certified
