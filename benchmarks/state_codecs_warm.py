"""Time minting, resuming and refusing tokens repeatedly: `state_codecs_warm.py PIPE`, the arguments on stdin.

mcp-roundtrip is wired as in a function, with KMS in another process. The SDK's codec protects the same
claims, which are built and checked by the same code.
"""

import json
import marshal
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, cast
from urllib.request import urlopen

import jwt
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState, compact_json
from msgspec.structs import replace

from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import claims
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import RequestStateCodec
from state_codecs import BINDING, PYJWT, SDK, SIZES, RowName, claims_of, payload_of

BATCH = 5
"""Timed calls in succession. An untimed call before them refills the processor caches."""

KMS_COUNTED_CALLS = 10
"""Calls over which KMS requests are averaged."""

Call = Callable[[], object]

binding = Binding(**BINDING)


@dataclass(frozen=True, slots=True)
class PrecomputedSigner:
    """Return a precomputed signature, to measure a direct mint without the wait for KMS."""

    key_members: Mapping[str, str]
    signature: bytes

    def sign(self, signing_input: bytes) -> bytes:
        return self.signature


@dataclass(frozen=True, slots=True)
class RoundtripCodec:
    """The codec of mcp-roundtrip in one of its configurations."""

    codec: RequestStateCodec

    def mint(self, payload: Any) -> str:
        return self.codec.seal(binding, payload, round=1, first_issued_at=None)

    def resume(self, token: str) -> Any:
        return self.codec.open(binding, token).payload

    def without_kms(self) -> "RoundtripCodec":
        """Return the same codec with a precomputed signature."""
        signer = self.codec.signer()
        ready = PrecomputedSigner(signer.key_members, signer.sign(b"any"))
        return RoundtripCodec(replace(self.codec, signer=lambda: ready))


@dataclass(frozen=True, slots=True)
class SdkCodec:
    """The SDK's codec, with the claims of mcp-roundtrip."""

    codec: AESGCMRequestStateCodec

    def mint(self, payload: Any) -> str:
        return self.codec.seal(compact_json(claims_of(payload)).encode())

    def resume(self, token: str) -> Any:
        content = json.loads(self.codec.unseal(token))
        return claims.check(content, binding, now=time.time(), limits=Limits()).payload


def timed_operations(implementation: RoundtripCodec | SdkCodec, payload: Any) -> dict[str, Call]:
    """Return the operations that are measured for every codec."""
    token = implementation.mint(payload)
    assert implementation.resume(token) == payload
    return {
        "mint": lambda: implementation.mint(payload),
        "resume": lambda: implementation.resume(token),
        "forged": expect_refusal(implementation, forge(token)),
    }


def forge(token: str) -> str:
    """Change one character in the signature of a token, or in the ciphertext of an encrypted one.

    It is the 30th from the end: a signature has the last 86 characters, an authentication tag the last 22.
    """
    return token[:-30] + ("A" if token[-30] != "A" else "B") + token[-29:]


def expect_refusal(implementation: RoundtripCodec | SdkCodec, token: str) -> Call:
    def open_forged() -> None:
        try:
            implementation.resume(token)
        except (StateRejected, InvalidRequestState):
            return
        raise AssertionError("a forged token was accepted")

    return open_forged


def additional_operations(
    codecs: Mapping[str, RoundtripCodec], sdk: SdkCodec, payload: Any
) -> dict[RowName, Call]:
    """Return operations that show the cost of single parts."""
    direct = {title: codecs[title].without_kms() for title in ("direct, signed", "direct, encrypted")}
    content = compact_json(claims_of(payload)).encode()
    token = sdk.codec.seal(content)
    return {
        **{
            ("mint", f"{title}, without KMS"): partial(codec.mint, payload) for title, codec in direct.items()
        },
        ("mint", f"{SDK}.seal only"): lambda: sdk.codec.seal(content),
        ("resume", f"{SDK}.unseal only"): lambda: sdk.codec.unseal(token),
        PYJWT: pyjwt_decode(codecs["delegated, signed"].mint(payload)),
    }


def pyjwt_decode(token: str) -> Call:
    """Return a function that decodes a signed token with PyJWT and a key that is already known."""
    certificate = jwt.get_unverified_header(token)["crt"]
    jwk = jwt.decode(certificate, options={"verify_signature": False})["cnf"]["jwk"]
    key = jwt.PyJWK(jwk, algorithm="ES256").key

    def decode() -> None:
        jwt.get_unverified_header(token)
        jwt.decode(token, key, ["ES256"], audience=binding.audience)

    return decode


def medians_ms(calls: Mapping[RowName, Call], count: int) -> dict[RowName, float]:
    """Return the median time of `count` executions of each call, in batches in random order."""
    samples: dict[RowName, list[float]] = {name: [] for name in calls}
    order, shuffle = list(calls.items()), random.Random(0).shuffle
    for _ in range(count // BATCH):
        shuffle(order)
        for name, call in order:
            call()
            samples[name] += [_timed_ms(call) for _ in range(BATCH)]
    return {name: median(values) for name, values in samples.items()}


def _timed_ms(call: Call) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def kms_calls(call: Call) -> float:
    """Return the average number of KMS requests in a call."""
    before = _kms_request_count()
    for _ in range(KMS_COUNTED_CALLS):
        call()
    return (_kms_request_count() - before) / KMS_COUNTED_CALLS


def _kms_request_count() -> int:
    with urlopen(os.environ["AWS_ENDPOINT_URL_KMS"]) as response:
        return int(response.read())


def measure_size(
    codecs: Mapping[str, RoundtripCodec], sdk: SdkCodec, payload: Any, count: int
) -> dict[str, Any]:
    """Return milliseconds, KMS requests and characters for one payload."""
    implementations: dict[str, RoundtripCodec | SdkCodec] = {**codecs, SDK: sdk}
    calls = {
        (operation, title): call
        for title, implementation in implementations.items()
        for operation, call in timed_operations(implementation, payload).items()
    }
    return {
        "ms": medians_ms({**calls, **additional_operations(codecs, sdk, payload)}, count),
        "calls": {name: kms_calls(call) for name, call in calls.items()},
        "characters": {
            ("characters", title): len(implementation.mint(payload))
            for title, implementation in implementations.items()
        },
    }


def main(pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    codecs = {title: RoundtripCodec(_codec(settings)) for title, settings in given["settings"].items()}
    sdk = SdkCodec(AESGCMRequestStateCodec([given["secret"]]))
    sizes = [measure_size(codecs, sdk, payload_of(size), given["count"]) for size in SIZES.values()]
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"sizes": sizes}, out)


def _codec(settings: Mapping[str, str]) -> RequestStateCodec:
    # Ports declare the protocol StateCodec; the wiring for AWS returns this class.
    return cast(RequestStateCodec, wiring.make_ports(load_settings({**os.environ, **settings})).state_codec())


if __name__ == "__main__":
    main(int(sys.argv[1]))
