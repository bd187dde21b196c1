from collections.abc import Mapping
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state.claims import Limits, OpenState, build, check, principal_digest
from support.tokens import BINDING, NOW

LIMITS = Limits()


def built(binding=BINDING, *, now=NOW, first_issued_at=None, jti="id", limits=LIMITS):
    return build(
        binding, {"a": 1}, round_number=2, first_issued_at=first_issued_at, now=now, jti=jti, limits=limits
    )


def test_the_claims_are_these():
    assert built() == {
        "iss": "stack",
        "aud": "https://mcp.example/mcp",
        "sub": principal_digest("id", BINDING.principal),
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 600,
        "jti": "id",
        "rq": BINDING.request_digest,
        "rnd": 2,
        "oiat": NOW,
        "st": {"a": 1},
    }


def test_the_limits_are_these():
    assert asdict(Limits()) == {
        "round_ttl_s": 600,
        "flow_ttl_s": 3600,
        "skew_s": 5,
        "max_minted": 65_536,
        "max_presented": 262_144,
    }


def test_times_are_whole_seconds():
    assert built(now=NOW + 0.999)["iat"] == NOW


def test_the_digests_stay_what_they_are():
    # A change here makes every token in flight worthless at the next deployment.
    assert BINDING.request_digest == "AZmD2SI_YgokSnbqZusuJUfcgaECRtoNfGHwGiGJaEA"
    assert principal_digest("id", "alice") == "B4DP4TJZHwS6IDOG9gwSmg"


class CountedArguments(Mapping):
    def __init__(self):
        self.reads = 0

    def __getitem__(self, name):
        return {"a": 1}[name]

    def __len__(self):
        return 1

    def __iter__(self):
        self.reads += 1
        return iter(["a"])


def test_a_round_digests_its_arguments_once():
    binding = replace(BINDING, arguments=CountedArguments())
    check(built(binding), binding, now=NOW, limits=LIMITS)
    assert binding.arguments.reads == 1


@given(now=st.integers(NOW, NOW + 3599), offset=st.floats(0, 0.999))  # a float this large has no more digits
def test_what_is_built_is_accepted_at_once_and_until_it_ends(now, offset):
    claims = built(now=now + offset, first_issued_at=NOW)
    expected = OpenState({"a": 1}, 2, NOW)
    assert check(claims, BINDING, now=now + offset, limits=LIMITS) == expected
    assert check(claims, BINDING, now=claims["exp"] - 0.001, limits=LIMITS) == expected
    with pytest.raises(StateRejected):
        check(claims, BINDING, now=claims["exp"], limits=LIMITS)


@given(st.lists(st.integers(1, 600), min_size=1, max_size=30))
def test_no_sequence_of_rounds_outlives_the_flow(waits):
    now, first = NOW, None
    for wait in waits:
        if now >= NOW + 3600:
            with pytest.raises(StateRejected):
                built(now=now, first_issued_at=first)
            return
        claims = built(now=now, first_issued_at=first)
        assert claims["exp"] <= NOW + 3600
        first, now = claims["oiat"], now + wait


def test_the_separation_of_name_and_method_is_part_of_the_digest():
    one = replace(BINDING, method="ab", name="c")
    assert one.request_digest != replace(BINDING, method="a", name="bc").request_digest


def test_the_separation_of_salt_and_principal_is_part_of_the_digest():
    assert principal_digest("ab", "c") != principal_digest("a", "bc")
