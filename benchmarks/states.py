"""`requestState` in all its configurations beside the SDK's codec, with KMS answering over HTTP from here."""

import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric import ec

import measure
from mcp_roundtrip.state import claims
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip_local.http.messages import Reply, Request
from mcp_roundtrip_local.services.kms import FakeKms, respond
from stand_in import served

SIZES = {"200 B": 200, "2 KB": 2_000, "20 KB": 20_000}
"""Of the state as JSON, without the claims around it."""

CONFIGURATIONS = {
    "direct, signed": ("direct", False),
    "direct, encrypted": ("direct", True),
    "delegated, signed": ("delegated", False),
    "delegated, encrypted": ("delegated", True),
}
SDK = "AESGCMRequestStateCodec"
CONTENDERS = (*CONFIGURATIONS, SDK)

PRINCIPAL = '{"client":"c1","issuer":"https://id.example","kind":"jwt","subject":"alice"}'
BINDING: Mapping[str, Any] = {
    "issuer": measure.ENVIRONMENT["MCP_ISSUER"],
    "audience": measure.ENVIRONMENT["MCP_AUDIENCE"],
    "principal": PRINCIPAL,
    "method": "tools/call",
    "name": "provision",
    "arguments": {"name": "db", "vcpus": 2},
}

OPERATIONS = ("mint", "resume", "forged", "characters")
"""In the order of the table."""

Name = tuple[str, str]
"""One of OPERATIONS, and who does it."""

PYJWT = ("resume", "PyJWT's decode alone")

_Figure = TypeVar("_Figure")
ByName = Mapping[Name, _Figure]


@dataclass(frozen=True, slots=True)
class States:
    """Milliseconds and characters for each of SIZES, and calls of KMS as KMS counts them.

    Late in an hour, a first token can take one call more, which fetches the next hour's key ahead.
    """

    warm_ms: ByName[Sequence[float]]
    warm_calls: ByName[float]
    cold_ms: ByName[Sequence[float]]
    cold_calls: ByName[float]
    characters: ByName[Sequence[int]]


def figures(cold_runs: int, warm_calls: int) -> States:
    """Measure everything. Raises DidNotRun."""
    with _deployment() as deployment:
        warm = deployment.warm(warm_calls)
        cold = deployment.cold(cold_runs)
    calls = _by_name(size["calls"] for size in warm)
    return States(
        warm_ms=_by_name(size["ms"] for size in warm),
        warm_calls={name: max(of_sizes) for name, of_sizes in calls.items()},
        cold_ms={
            name: [median(first.ms for first in runs) for runs in sizes] for name, sizes in cold.items()
        },
        cold_calls={name: median(first.calls for first in chain(*sizes)) for name, sizes in cold.items()},
        characters=_by_name(size["characters"] for size in warm),
    )


def _by_name(sizes: Iterable[ByName[_Figure]]) -> dict[Name, list[_Figure]]:
    by_size = list(sizes)
    return {name: [figures[name] for figures in by_size] for name in by_size[0]}


@dataclass(frozen=True, slots=True)
class First:
    """A fresh process's first token, minted or opened: its result and milliseconds, and calls of KMS."""

    result: Any
    ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """What all environments share.

    `variables` lead to KMS, `settings` are those of each configuration, `secret` is the SDK's.
    """

    kms: FakeKms
    variables: Mapping[str, str]
    settings: Mapping[str, Mapping[str, str]]
    secret: bytes

    def warm(self, count: int) -> list[dict[str, Any]]:
        """What `state_warm.py` finds for each of SIZES in `count` calls."""
        given = {"settings": self.settings, "secret": self.secret, "count": count}
        return measure.process("state_warm.py", given=given, variables=self.variables)["sizes"]

    def cold(self, runs: int) -> dict[Name, list[list[First]]]:
        """For each of SIZES: `runs` environments that mint, and as many that resume what those minted."""
        found: dict[Name, list[list[First]]] = {
            (operation, title): [[] for _ in SIZES]
            for operation in ("mint", "resume")
            for title in CONTENDERS
        }
        for title in CONTENDERS:
            self._first(title, {}, None)  # leaves bytecode behind
        for run in range(runs):
            for index, size in enumerate(SIZES.values()):
                for title in CONTENDERS if run % 2 else reversed(CONTENDERS):
                    payload = payload_of(size)
                    minted = self._first(title, payload, None)
                    resumed = self._first(title, payload, minted.result)
                    if resumed.result != payload:
                        raise measure.DidNotRun(f"{title} returned another state")
                    found["mint", title][index].append(minted)
                    found["resume", title][index].append(resumed)
        return found

    def _first(self, title: str, payload: Any, token: str | None) -> First:
        given: dict[str, Any]
        if title == SDK:
            contender, given = "sdk", {"secret": self.secret, "claims": claims_of(payload)}
        else:
            contender, given = "ours", {"binding": dict(BINDING), "payload": payload}
        variables = {**self.variables, **self.settings.get(title, {})}
        self.kms.calls.clear()
        found = measure.process(
            "state_cold.py", contender, given={**given, "token": token}, variables=variables
        )
        return First(found["result"], found["ms"], self.kms.calls.total())


@contextmanager
def _deployment() -> Iterator[Deployment]:
    kms = FakeKms(region=measure.ENVIRONMENT["AWS_REGION"])
    signing_arn = kms.import_key(ec.generate_private_key(ec.SECP256R1()))
    encrypted = {"MCP_STATE_ENCRYPTION_KEY_ARN": kms.import_key(secrets.token_bytes(32))}
    variables = {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": measure.ENVIRONMENT["AWS_REGION"],
        "MCP_STATE_KEY_ARN": signing_arn,
    }
    settings = {
        title: {"MCP_STATE_SIGNING": signing}
        | (encrypted if encrypts else {"MCP_STATE_ENCRYPTION": "disabled"})
        for title, (signing, encrypts) in CONFIGURATIONS.items()
    }
    with served(partial(_answer, kms)) as url:
        variables["AWS_ENDPOINT_URL_KMS"] = url
        yield Deployment(kms, variables, settings, secrets.token_bytes(32))


def _answer(kms: FakeKms, request: Request) -> Reply:
    """KMS, which tells a process that does not know this one how often it was called."""
    if request.method == "GET":
        return Reply(200, body=str(kms.calls.total()).encode())
    return respond(kms, request)


def payload_of(size: int) -> dict[str, str]:
    """A state that has `size` bytes as JSON."""
    return {"text": random.Random(size).randbytes(size).hex()[: size - len('{"text":""}')]}


def claims_of(payload: Any) -> dict[str, Any]:
    """The claims of a state's first token."""
    return claims.build(
        Binding(**BINDING),
        payload,
        round_number=1,
        first_issued_at=None,
        now=time.time(),
        jti=secrets.token_hex(16),
        limits=Limits(),
    )
