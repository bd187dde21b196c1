"""Minting, resuming and refusing tokens again and again: `state_warm.py PIPE`, the material on stdin.

Everything is wired as in a function, with KMS in another process. The SDK's codec protects the same claims,
and they are built and checked alike.
"""

import json
import marshal
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, cast
from urllib.request import urlopen

import jwt
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState, compact_json

from mcp_roundtrip import wiring
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import claims
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import RequestStateCodec
from states import BINDING, PYJWT, SDK, SIZES, Name, claims_of, payload_of

BATCH = 5
"""Timed calls in succession, after an untimed one: that one finds the caches full of the other contenders."""

COUNTED = 10
"""Calls over which the calls of KMS are counted."""

Call = Callable[[], object]

bound = Binding(**BINDING)


@dataclass(frozen=True, slots=True)
class ReadySigner:
    """Returns a signature that was made before: what KMS does costs this environment no computing."""

    key_members: Mapping[str, str]
    signature: bytes

    def sign(self, signing_input: bytes) -> bytes:
        return self.signature


@dataclass(frozen=True, slots=True)
class Ours:
    """A token codec in one of its configurations."""

    codec: RequestStateCodec

    def mint(self, payload: Any) -> str:
        return self.codec.seal(bound, payload, round=1, first_issued_at=None)

    def resume(self, token: str) -> Any:
        return self.codec.open(bound, token).payload

    def without_kms(self) -> "Ours":
        """The same with a signer that need not be waited for."""
        signer = self.codec.signer()
        ready = ReadySigner(signer.key_members, signer.sign(b"any"))
        return Ours(replace(self.codec, signer=lambda: ready))


@dataclass(frozen=True, slots=True)
class Sdk:
    """The SDK's codec around the claims that ours has."""

    codec: AESGCMRequestStateCodec

    def mint(self, payload: Any) -> str:
        return self.codec.seal(compact_json(claims_of(payload)).encode())

    def resume(self, token: str) -> Any:
        content = json.loads(self.codec.unseal(token))
        return claims.check(content, bound, now=time.time(), limits=Limits()).payload


def contender_calls(contender: Ours | Sdk, payload: Any) -> dict[str, Call]:
    """What is measured of every contender, by operation."""
    token = contender.mint(payload)
    assert contender.resume(token) == payload
    return {
        "mint": lambda: contender.mint(payload),
        "resume": lambda: contender.resume(token),
        "forged": refusing(contender, forged(token)),
    }


def forged(token: str) -> str:
    """A token with another character in its signature, or in its ciphertext if it is encrypted.

    It is the 30th from the end: a signature has the last 86, an authentication tag the last 22.
    """
    return token[:-30] + ("A" if token[-30] != "A" else "B") + token[-29:]


def refusing(contender: Ours | Sdk, token: str) -> Call:
    def refused() -> None:
        try:
            contender.resume(token)
        except (StateRejected, InvalidRequestState):
            return
        raise AssertionError("a forged token was accepted")

    return refused


def further_calls(ours: Mapping[str, Ours], sdk: Sdk, payload: Any) -> dict[Name, Call]:
    """Parts that are of interest by themselves: without KMS, a signature is there already."""
    direct = {title: ours[title].without_kms() for title in ("direct, signed", "direct, encrypted")}
    content = compact_json(claims_of(payload)).encode()
    token = sdk.codec.seal(content)
    return {
        **{("mint", f"{title}, without KMS"): partial(free.mint, payload) for title, free in direct.items()},
        ("mint", f"{SDK}.seal alone"): lambda: sdk.codec.seal(content),
        ("resume", f"{SDK}.unseal alone"): lambda: sdk.codec.unseal(token),
        PYJWT: pyjwt(ours["delegated, signed"].mint(payload)),
    }


def pyjwt(token: str) -> Call:
    """What PyJWT needs to decode a signed token whose header carries a certificate, the key being at hand."""
    certificate = jwt.get_unverified_header(token)["crt"]
    jwk = jwt.decode(certificate, options={"verify_signature": False})["cnf"]["jwk"]
    key = jwt.PyJWK(jwk, algorithm="ES256").key

    def decode() -> None:
        jwt.get_unverified_header(token)
        jwt.decode(token, key, ["ES256"], audience=bound.audience)

    return decode


def medians_ms(calls: Mapping[Name, Call], count: int) -> dict[Name, float]:
    """The median of `count` times each call. They take turns, always in another order."""
    samples: dict[Name, list[float]] = {name: [] for name in calls}
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
    """The calls of KMS in one call, as KMS counts them."""
    before = _counted()
    for _ in range(COUNTED):
        call()
    return (_counted() - before) / COUNTED


def _counted() -> int:
    with urlopen(os.environ["AWS_ENDPOINT_URL_KMS"]) as answer:
        return int(answer.read())


def figures(ours: Mapping[str, Ours], sdk: Sdk, payload: Any, count: int) -> dict[str, Any]:
    """For one state: milliseconds, calls of KMS and characters."""
    contenders: dict[str, Ours | Sdk] = {**ours, SDK: sdk}
    calls = {
        (operation, title): call
        for title, contender in contenders.items()
        for operation, call in contender_calls(contender, payload).items()
    }
    return {
        "ms": medians_ms({**calls, **further_calls(ours, sdk, payload)}, count),
        "calls": {name: kms_calls(call) for name, call in calls.items()},
        "characters": {
            ("characters", title): len(contender.mint(payload)) for title, contender in contenders.items()
        },
    }


def main(pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    ours = {title: Ours(_codec(settings)) for title, settings in given["settings"].items()}
    sdk = Sdk(AESGCMRequestStateCodec([given["secret"]]))
    sizes = [figures(ours, sdk, payload_of(size), given["count"]) for size in SIZES.values()]
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"sizes": sizes}, out)


def _codec(settings: Mapping[str, str]) -> RequestStateCodec:
    # Ports promise any protector of states; wired on AWS, it is this one.
    return cast(RequestStateCodec, wiring.make_ports(load_settings({**os.environ, **settings})).states())


if __name__ == "__main__":
    main(int(sys.argv[1]))
