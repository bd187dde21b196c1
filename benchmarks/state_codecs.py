"""Measure `requestState` in all configurations, compared with the SDK's codec.

This process serves the KMS emulator over HTTP to the measured processes.
"""

import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from statistics import median
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric import ec

import measure
from mcp_roundtrip.state import claims
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.kms import FakeKms, respond
from stub_server import serve_stub
from tables import Target, table

SIZES = {"200 B": 200, "2 KB": 2_000, "20 KB": 20_000}
"""Bytes of the payload as JSON, without the claims."""

CONFIGURATIONS = ("direct, signed", "direct, encrypted", "delegated, signed", "delegated, encrypted")
SDK = "AESGCMRequestStateCodec"
IMPLEMENTATIONS = (*CONFIGURATIONS, SDK)

COLD_RUNS, WARM_CALLS = 3, 400
TWO_KB = list(SIZES).index("2 KB")

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
"""The order of the rows."""

RowName = tuple[str, str]
"""One of OPERATIONS, and the title of a codec."""

PYJWT = ("resume", "PyJWT decode only")

_Figure = TypeVar("_Figure")
ByName = Mapping[RowName, _Figure]


@dataclass(frozen=True, slots=True)
class StateFigures:
    """Milliseconds and characters for each of SIZES, and KMS requests as the emulator counts them.

    Late in an hour, the first token of a process can need one more request, which fetches the next hour's
    key.
    """

    warm_ms: ByName[Sequence[float]]
    warm_calls: ByName[float]
    cold_ms: ByName[Sequence[float]]
    cold_calls: ByName[float]
    characters: ByName[Sequence[int]]


def measure_state_codecs() -> StateFigures:
    """Measure warm and first operations of all codecs. Raise BenchmarkError."""
    with _deployment() as deployment:
        warm = deployment.warm(WARM_CALLS)
        cold = deployment.cold(COLD_RUNS)
    calls = _by_name(size["calls"] for size in warm)
    return StateFigures(
        warm_ms=_by_name(size["ms"] for size in warm),
        warm_calls={name: max(of_sizes) for name, of_sizes in calls.items()},
        cold_ms={
            name: [median(first.ms for first in runs) for runs in sizes] for name, sizes in cold.items()
        },
        cold_calls={name: median(first.calls for first in chain(*sizes)) for name, sizes in cold.items()},
        characters=_by_name(size["characters"] for size in warm),
    )


def _by_name(sizes: Iterable[ByName[_Figure]]) -> dict[RowName, list[_Figure]]:
    by_size = list(sizes)
    return {name: [figures[name] for figures in by_size] for name in by_size[0]}


@dataclass(frozen=True, slots=True)
class FirstOperation:
    """The first operation of a process: its result, milliseconds and KMS requests."""

    result: Any
    ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """The resources that all measured processes share.

    `variables` configure access to KMS, `settings` select each configuration, `secret` is the key of the
    SDK's codec.
    """

    kms: FakeKms
    variables: Mapping[str, str]
    settings: Mapping[str, Mapping[str, str]]
    secret: bytes

    def warm(self, count: int) -> list[dict[str, Any]]:
        """Run `state_codecs_warm.py` with `count` calls; return its figures for each of SIZES."""
        given = {"settings": self.settings, "secret": self.secret, "count": count}
        return measure.run_script("state_codecs_warm.py", given=given, variables=self.variables)["sizes"]

    def cold(self, runs: int) -> dict[RowName, list[list[FirstOperation]]]:
        """Mint in `runs` fresh processes and resume in as many others, for each of SIZES."""
        found: dict[RowName, list[list[FirstOperation]]] = {
            (operation, title): [[] for _ in SIZES]
            for operation in ("mint", "resume")
            for title in IMPLEMENTATIONS
        }
        for title in IMPLEMENTATIONS:
            self._first(title, {}, None)  # writes the bytecode caches
        for run in range(runs):
            for index, size in enumerate(SIZES.values()):
                for title in IMPLEMENTATIONS if run % 2 else reversed(IMPLEMENTATIONS):
                    payload = payload_of(size)
                    minted = self._first(title, payload, None)
                    resumed = self._first(title, payload, minted.result)
                    if resumed.result != payload:
                        raise measure.BenchmarkError(f"{title} returned a different payload")
                    found["mint", title][index].append(minted)
                    found["resume", title][index].append(resumed)
        return found

    def _first(self, title: str, payload: Any, token: str | None) -> FirstOperation:
        given: dict[str, Any]
        if title == SDK:
            script_argument, given = "sdk", {"secret": self.secret, "claims": claims_of(payload)}
        else:
            script_argument, given = "roundtrip", {"binding": dict(BINDING), "payload": payload}
        variables = {**self.variables, **self.settings.get(title, {})}
        self.kms.calls.clear()
        found = measure.run_script(
            "state_codecs_cold.py", script_argument, given={**given, "token": token}, variables=variables
        )
        return FirstOperation(found["result"], found["ms"], self.kms.calls.total())


@contextmanager
def _deployment() -> Iterator[Deployment]:
    kms = FakeKms(region=measure.ENVIRONMENT["AWS_REGION"])
    variables = {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": measure.ENVIRONMENT["AWS_REGION"],
    }
    with serve_stub(partial(_respond, kms)) as url:
        variables["AWS_ENDPOINT_URL_KMS"] = url
        yield Deployment(kms, variables, settings_with_keys(kms), secrets.token_bytes(32))


def settings_with_keys(kms: FakeKms) -> dict[str, dict[str, str]]:
    """Create keys, and return the settings of each of CONFIGURATIONS, which use them."""
    signing = {"MCP_STATE_KEY_ARN": kms.import_key(ec.generate_private_key(ec.SECP256R1()))}
    protection = {
        "signed": {"MCP_STATE_ENCRYPTION": "disabled"},
        "encrypted": {"MCP_STATE_ENCRYPTION_KEY_ARN": kms.import_key(secrets.token_bytes(32))},
    }
    return {
        f"{way}, {kind}": {"MCP_STATE_SIGNING": way, **signing, **protection[kind]}
        for way, kind in product(("direct", "delegated"), protection)
    }


def _respond(kms: FakeKms, request: Request) -> Response:
    """Respond as KMS. A GET request returns the number of KMS requests so far."""
    if request.method == "GET":
        return Response(200, body=str(kms.calls.total()).encode())
    return respond(kms, request)


def payload_of(size: int) -> dict[str, str]:
    """Return a payload of `size` bytes as JSON."""
    return {"text": random.Random(size).randbytes(size).hex()[: size - len('{"text":""}')]}


def claims_of(payload: Any) -> dict[str, Any]:
    """Return the claims of the first token of a flow."""
    return claims.build(
        Binding(**BINDING),
        payload,
        round_number=1,
        first_issued_at=None,
        now=time.time(),
        jti=secrets.token_hex(16),
        limits=Limits(),
    )


# -- report ---------------------------------------------------------------------------------------------


def state_table(measured: StateFigures) -> str:
    """Format the times of warm and first operations, and the lengths of tokens."""
    title = (
        "requestState by size of the payload; KMS is emulated in another process on 127.0.0.1\n"
        f"warm, ms: medians of {WARM_CALLS} calls with the same claims\n"
        f"first, ms: including imports, medians of {COLD_RUNS} fresh processes"
        " (late in an hour, encryption needs one more request for the next hour's key)"
    )
    rows = [
        *_state_rows("", measured.warm_ms, measured.warm_calls, ".3f"),
        *_state_rows("first ", measured.cold_ms, measured.cold_calls, ".0f"),
        *_state_rows("", measured.characters, {}, "d"),
    ]
    return table(title, ("", *SIZES, "2 KB / SDK", "KMS requests"), rows)


def _state_rows(
    prefix: str, figures: ByName[Sequence[float]], kms_calls: ByName[float], spec: str
) -> Iterator[tuple[str, ...]]:
    for name in sorted(figures, key=lambda name: OPERATIONS.index(name[0])):
        operation, title = name
        ratio = figures[name][TWO_KB] / figures[operation, SDK][TWO_KB]
        yield (
            f"{prefix}{operation}, {title}",
            *(format(value, spec) for value in figures[name]),
            f"{ratio:.2f}",
            f"{kms_calls[name]:g}" if name in kms_calls else "-",
        )


def state_targets(measured: StateFigures) -> list[Target]:
    configuration, kms_calls = "delegated, encrypted", measured.warm_calls
    ms = {name: of_sizes[TWO_KB] for name, of_sizes in measured.warm_ms.items()}
    largest = {name: of_sizes[-1] for name, of_sizes in measured.warm_ms.items()}
    return [
        Target(
            f"mint ({configuration}, 2 KB) / mint of the SDK", ms["mint", configuration] / ms["mint", SDK], 4
        ),
        Target(
            f"resume ({configuration}, 2 KB) / resume of the SDK",
            ms["resume", configuration] / ms["resume", SDK],
            14,
        ),
        Target(
            f"refusal of a forged token ({configuration}, 2 KB) / resume of the SDK",
            ms["forged", configuration] / ms["resume", SDK],
            2,
        ),
        Target(
            f"resume ({configuration}, 20 KB) / decode of PyJWT",
            largest["resume", configuration] / largest[PYJWT],
            1 / 3,
        ),
        Target(
            "KMS requests in a delegated round",
            _maximum_kms_calls(kms_calls, "delegated", "mint", "resume"),
            0,
        ),
        Target("KMS requests in a direct mint", _maximum_kms_calls(kms_calls, "direct", "mint"), 1),
        Target("KMS requests in a direct resume", _maximum_kms_calls(kms_calls, "direct", "resume"), 0),
    ]


def _maximum_kms_calls(kms_calls: ByName[float], signing: str, *operations: str) -> float:
    return max(
        sum(kms_calls[operation, title] for operation in operations)
        for title in CONFIGURATIONS
        if title.startswith(signing)
    )
