"""What verifying a bearer token costs, beside PyJWT alone with the same key: `bearer.py CALLS PIPE`.

Both check signature, issuer, audience and times. Ours finds its key among those that were fetched before.
"""

import json
import marshal
import os
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

import measure
from mcp_roundtrip.auth.bearer import BearerAuthenticator
from mcp_roundtrip.auth.issuer_keys import IssuerKeys
from tables import Target, table

ISSUER, AUDIENCE = "https://id.example", "https://bench.example/mcp"
OURS, PYJWT = "mcp-roundtrip", "PyJWT"
SETTLED = 20

Tokens = Mapping[str, Mapping[str, float]]
"""Algorithm -> who -> milliseconds."""

PRIVATE_KEYS = {
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
}
FORMS = {"ES256": ECAlgorithm, "RS256": RSAAlgorithm}


def contenders(algorithm: str) -> dict[str, Callable[[], object]]:
    """Who verifies one and the same token."""
    private = PRIVATE_KEYS[algorithm]()
    public = private.public_key()
    jwk = {**FORMS[algorithm].to_jwk(public, as_dict=True), "kid": "bench", "use": "sig", "alg": algorithm}
    keys = IssuerKeys(ISSUER, ISSUER, lambda url, timeout_s: json.dumps({"keys": [jwk]}).encode(), time.time)
    ours = BearerAuthenticator(ISSUER, AUDIENCE, frozenset({algorithm}), keys, time.time)
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "user", "client_id": "bench", "scope": "read write"}
    token = jwt.encode({**claims, "iat": now, "exp": now + 3600}, private, algorithm, {"kid": "bench"})
    headers = {"authorization": f"Bearer {token}"}
    return {
        OURS: lambda: ours.caller(headers, {}),
        PYJWT: lambda: jwt.decode(token, public, [algorithm], audience=AUDIENCE, issuer=ISSUER),
    }


def figures(calls: int) -> Tokens:
    """Medians, in a process of their own. Raises DidNotRun."""
    found: Tokens = measure.process("bearer.py", str(calls))["bearer"]
    return found


def bearer_table(measured: Tokens) -> str:
    rows = [
        (algorithm, f"{ms[OURS]:.3f}", f"{ms[PYJWT]:.3f}", f"{ms[OURS] / ms[PYJWT]:.2f}")
        for algorithm, ms in measured.items()
    ]
    return table("Verifying a bearer token with a cached key, warm, ms", ("", OURS, PYJWT, "of PyJWT"), rows)


def bearer_targets(measured: Tokens) -> list[Target]:
    return [
        Target(f"verifying a bearer token ({algorithm}), of PyJWT alone", ms[OURS] / ms[PYJWT], 3)
        for algorithm, ms in measured.items()
    ]


def main(calls: int, pipe: int) -> None:
    found = {algorithm: _medians(contenders(algorithm), calls) for algorithm in PRIVATE_KEYS}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"bearer": found}, out)


def _medians(verifying: Mapping[str, Callable[[], object]], calls: int) -> dict[str, float]:
    samples: dict[str, list[float]] = {name: [] for name in verifying}
    for _ in range(SETTLED + calls):
        for name, verify in verifying.items():
            started = time.perf_counter()
            verify()
            samples[name].append((time.perf_counter() - started) * 1000)
    return {name: median(times[SETTLED:]) for name, times in samples.items()}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
