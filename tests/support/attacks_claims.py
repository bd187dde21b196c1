"""Attacks on the binding of a state: validly signed claims, and the request that presents the state."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from support.forgery import Attack
from support.tokens import ALICE, BINDING, DELEGATED, ENCRYPTED, NOW, Configuration, claims_of, sealed

TIMES_AND_NUMBERS = ("iat", "nbf", "exp", "rnd", "oiat")
NOT_TEXTS: tuple[Any, ...] = (5, None)
TEXTS = ("iss", "aud", "sub", "jti", "rq")


def claims(reason: str, **members: object) -> Attack:
    return Attack(lambda forge: forge.with_claims(**members), reason)


def without(name: str, reason: str = "claims") -> Attack:
    return Attack(lambda forge: forge.without_claim(name), reason)


def in_a_list(name: str) -> Attack:
    return Attack(lambda forge: forge.with_claims(**{name: [forge.claims[name]]}), "claims")


def presented_with(reason: str | None, **request: object) -> Attack:
    """Present the state with another request."""
    return Attack(lambda forge: forge.token, reason, request=request)


def minted_for_other(reason: str | None, minted: Mapping[str, Any], **request: object) -> Attack:
    """Present a state minted for one request with another."""
    binding = replace(BINDING, **minted)
    return Attack(
        lambda forge: forge.configuration.codec().seal(binding, None, round=1, first_issued_at=None),
        reason,
        request=request,
    )


def at(later_s: int, reason: str | None, instead: Mapping[Configuration, str] | None = None) -> Attack:
    return Attack(lambda forge: forge.token, reason, instead=instead or {}, later_s=later_s)


CLAIMS = {
    **{
        f"without {name}": without(name)
        for name in ("iss", "aud", "iat", "nbf", "exp", "jti", "rq", "rnd", "oiat", "st")
    },
    "without sub": without("sub", "wrong_principal"),
    "an unknown claim": claims("claims", admin=True),
    **{
        f"{name} {value!r}": claims("claims", **{name: value})
        for name in TIMES_AND_NUMBERS
        for value in (str(NOW), True, None, NOW + 0.5, [NOW])
    },
    **{f"{name} {value!r}": claims("claims", **{name: value}) for name in TEXTS for value in NOT_TEXTS},
    **{f"{name} in a list": in_a_list(name) for name in TEXTS},
    "another issuer": claims("wrong_issuer", iss="other"),
    "another audience": claims("wrong_audience", aud="https://mcp.example/mcp/"),
    "another principal's sub": claims("wrong_principal", sub=claims_of(sealed())["sub"]),
    "another id": claims("wrong_principal", jti="0" * 32),
    "another request's digest": claims("wrong_request", rq="A" * 43),
    "exp now": claims("expired", exp=NOW),
    "iat in the future": claims("not_yet_valid", iat=NOW + 6),
    "nbf in the future": claims("not_yet_valid", nbf=NOW + 6),
    "a lifetime over the limit": claims("lifetime", exp=NOW + 601),
    "a lifetime from long ago": claims("lifetime", iat=0),
    "a flow over the limit": claims("flow_expired", oiat=NOW - 3600),
    "a flow that begins in the future": claims("lifetime", oiat=NOW + 6),
}
REQUESTS = {
    "the same request": presented_with(None),
    "arguments in another order": presented_with(None, arguments={"vcpus": 2, "name": "db"}),
    "another principal": presented_with("wrong_principal", principal=ALICE.replace("alice", "mallory")),
    "no principal": presented_with("wrong_principal", principal=None),
    "an empty principal": presented_with("wrong_principal", principal=""),
    "another deployment": Attack(
        lambda forge: forge.token,
        "wrong_issuer",
        instead=dict.fromkeys(DELEGATED, "certificate_wrong_issuer"),
        request={"issuer": "other"},
    ),
    "another endpoint": Attack(
        lambda forge: forge.token,
        "wrong_audience",
        instead=dict.fromkeys(DELEGATED, "certificate_wrong_audience"),
        request={"audience": "https://mcp.example/other"},
    ),
    "another method": presented_with("wrong_request", method="prompts/get"),
    "another tool": presented_with("wrong_request", name="destroy"),
    "a changed argument": presented_with("wrong_request", arguments={"name": "db", "vcpus": 3}),
    "an argument as a string": presented_with("wrong_request", arguments={"name": "db", "vcpus": "2"}),
    "a further argument": presented_with("wrong_request", arguments={"name": "db", "vcpus": 2, "x": None}),
    "empty arguments": presented_with("wrong_request", arguments={}),
    "an anonymous caller's state, without a principal": minted_for_other(
        None, {"principal": None}, principal=None
    ),
    "an anonymous caller's state, with a principal": minted_for_other("wrong_principal", {"principal": None}),
    "another principal's state": minted_for_other("wrong_principal", {"principal": "mallory"}),
}
TIMES = {
    "a second before the end": at(599, None),
    "at the end": at(600, "expired"),
    "behind by 4 seconds": at(-4, None),
    "behind by the skew": at(-5, None),
    # The state was minted in the first second of an epoch.
    "behind by 7 seconds": at(-7, "not_yet_valid", dict.fromkeys(ENCRYPTED, "epoch")),
    "an hour later": at(3600, "expired", dict.fromkeys(DELEGATED, "certificate_expired")),
    "two hours later": at(
        7200,
        "expired",
        {**dict.fromkeys(DELEGATED, "certificate_expired"), **dict.fromkeys(ENCRYPTED, "epoch")},
    ),
}
BINDINGS = CLAIMS | REQUESTS | TIMES
