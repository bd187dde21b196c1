"""Time the verification of a bearer token, compared with PyJWT: `bearer_tokens.py CALLS PIPE`.

Both check signature, issuer, audience and times with the same key. mcp-roundtrip selects the key from its
cache.
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
WARM_UP_CALLS = 20

VerificationTimes = Mapping[str, Mapping[str, float]]
"""Algorithm -> OURS or PYJWT -> milliseconds."""

PRIVATE_KEYS = {
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
}
KEY_ALGORITHMS = {"ES256": ECAlgorithm, "RS256": RSAAlgorithm}


def verifiers(algorithm: str) -> dict[str, Callable[[], object]]:
    """Return functions that verify the same token."""
    private = PRIVATE_KEYS[algorithm]()
    public = private.public_key()
    jwk = {
        **KEY_ALGORITHMS[algorithm].to_jwk(public, as_dict=True),
        "kid": "bench",
        "use": "sig",
        "alg": algorithm,
    }
    keys = IssuerKeys(ISSUER, ISSUER, lambda url, timeout_s: json.dumps({"keys": [jwk]}).encode(), time.time)
    ours = BearerAuthenticator(ISSUER, (AUDIENCE,), frozenset({algorithm}), keys.verify, time.time)
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "user", "client_id": "bench", "scope": "read write"}
    token = jwt.encode({**claims, "iat": now, "exp": now + 3600}, private, algorithm, {"kid": "bench"})
    headers = {"authorization": f"Bearer {token}"}
    return {
        OURS: lambda: ours.authenticate(headers, {}),
        PYJWT: lambda: jwt.decode(token, public, [algorithm], audience=AUDIENCE, issuer=ISSUER),
    }


def measure_verification(calls: int) -> VerificationTimes:
    """Run this script and return its medians. Raise BenchmarkError if it fails."""
    found: VerificationTimes = measure.run_script("bearer_tokens.py", str(calls))["bearer"]
    return found


def verification_table(measured: VerificationTimes) -> str:
    rows = [
        (algorithm, f"{ms[OURS]:.3f}", f"{ms[PYJWT]:.3f}", f"{ms[OURS] / ms[PYJWT]:.2f}")
        for algorithm, ms in measured.items()
    ]
    return table(
        "Warm verification of a bearer token with a cached key, ms",
        ("", OURS, PYJWT, "relative to PyJWT"),
        rows,
    )


def verification_targets(measured: VerificationTimes) -> list[Target]:
    return [
        Target(f"verification of a bearer token ({algorithm}) / PyJWT", ms[OURS] / ms[PYJWT], 3)
        for algorithm, ms in measured.items()
    ]


def main(calls: int, pipe: int) -> None:
    found = {algorithm: _median_times(verifiers(algorithm), calls) for algorithm in PRIVATE_KEYS}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"bearer": found}, out)


def _median_times(verifiers_by_name: Mapping[str, Callable[[], object]], calls: int) -> dict[str, float]:
    samples: dict[str, list[float]] = {name: [] for name in verifiers_by_name}
    for _ in range(WARM_UP_CALLS + calls):
        for name, verify in verifiers_by_name.items():
            started = time.perf_counter()
            verify()
            samples[name].append((time.perf_counter() - started) * 1000)
    return {name: median(times[WARM_UP_CALLS:]) for name, times in samples.items()}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
