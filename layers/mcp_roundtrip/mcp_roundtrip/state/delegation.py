"""Signing without a call for every token: a key in this environment's memory, certified by the root key.

What that costs: whoever reads this process's memory can sign states until the certificate expires. What it
gives: one call of the key service for many tokens, and none failing while the key service is out of reach for
a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcp_roundtrip.state import certificates
from mcp_roundtrip.state.certificates import LIFETIME_S
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.keys import LocalKey, Signer
from mcp_roundtrip.state.renewal import Renewals, early


@dataclass(frozen=True, slots=True)
class CertifiedKey:
    """A key in memory with its certificate, good from `issued_at` to `expires_at` (epoch seconds)."""

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


@dataclass(slots=True)
class Delegation:
    """Makes the key at the first token and a new one, with a new certificate, from time to time.

    The first token, not before: what an environment holds when it is snapshot (AWS Lambda SnapStart) is held
    by every environment that is made from the snapshot.
    """

    root: Signer
    issuer: str
    audience: str
    limits: Limits
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    random: Callable[[], float]
    """In [0, 1)."""
    renewals: Renewals
    issued: Callable[[str, int], None]
    """Told the `jti` and the end (epoch seconds) of each certificate: what it takes to revoke one."""

    _certified: CertifiedKey | None = field(default=None, init=False)
    _renew_at: float = field(default=0.0, init=False)

    def signer(self) -> Signer:
        """A key whose certificate outlasts any token signed now.

        A new one is asked for before that is necessary; should it fail, the old one goes on while it can.
        Raises KeyServiceError when there is none.
        """
        now = self.clock()
        certified = self._certified
        if certified is None or not self._is_usable(certified, now):
            return self._renew(now)
        if now < self._renew_at:
            return certified
        return self.renewals.attempt(lambda: self._renew(now)) or certified

    def _is_usable(self, certified: CertifiedKey, now: float) -> bool:
        # A clock that was set back finds its certificate in the future.
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
        self._renew_at = early(now, certified.expires_at - self.limits.round_ttl_s, self.random())
        self.issued(jti, certified.expires_at)
        return certified
