from collections import UserDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state.claims import Limits, OpenState, build, check, principal_digest
from support.tokens import BINDING, NOW

LIMITS = Limits()


def built(binding=BINDING, *, now=NOW, first_issued_at=None):
    given = {"first_issued_at": first_issued_at, "now": now, "jti": "id", "limits": LIMITS}
    return build(binding, {"a": 1}, round_number=2, **given)


def test_digests_are_stable_across_releases():
    # A changed digest invalidates every token in flight at the next deployment.
    assert BINDING.request_digest == "AZmD2SI_YgokSnbqZusuJUfcgaECRtoNfGHwGiGJaEA"
    assert principal_digest("id", "alice") == "B4DP4TJZHwS6IDOG9gwSmg"
    assert BINDING.identity() == "KxAjwaiPx_HvJ6s2K-QIcEnmi8p25afP"


class CountingArguments(UserDict):
    reads = 0

    def __iter__(self):
        self.reads += 1
        return super().__iter__()


def test_a_round_computes_the_digest_of_its_arguments_once():
    arguments = CountingArguments({"a": 1})
    binding = replace(BINDING, arguments=arguments)
    check(built(binding), binding, now=NOW, limits=LIMITS)
    assert arguments.reads == 1


@given(now=st.integers(NOW, NOW + 3599), offset=st.floats(0, 0.999))  # a float this large has no more digits
def test_claims_are_accepted_from_their_creation_until_they_expire(now, offset):
    claims = built(now=now + offset, first_issued_at=NOW)
    expected = OpenState({"a": 1}, 2, NOW, NOW + LIMITS.flow_ttl_s + LIMITS.skew_s)
    assert check(claims, BINDING, now=now + offset, limits=LIMITS) == expected
    assert check(claims, BINDING, now=claims["exp"] - 0.001, limits=LIMITS) == expected
    with pytest.raises(StateRejected):
        check(claims, BINDING, now=claims["exp"], limits=LIMITS)


@given(st.lists(st.integers(1, 600), min_size=1, max_size=30))
def test_no_sequence_of_rounds_exceeds_the_lifetime_of_the_flow(waits):
    now, first = NOW, None
    for wait in [*waits, 3600]:
        claims = built(now=now, first_issued_at=first)
        assert claims["exp"] <= NOW + 3600
        first, now = claims["oiat"], min(now + wait, NOW + 3600)
        if now == NOW + 3600:
            break
    with pytest.raises(StateRejected) as refused:
        built(now=now, first_issued_at=first)
    assert refused.value.reason == "flow_expired"


def test_a_digest_separates_its_parts():
    one = replace(BINDING, method="ab", name="c")
    assert one.request_digest != replace(BINDING, method="a", name="bc").request_digest
    assert principal_digest("ab", "c") != principal_digest("a", "bc")


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "other"},
        {"audience": "https://mcp.example/other"},
        {"principal": "[]"},
        {"method": "prompts/get"},
        {"name": "other"},
        {"arguments": {"name": "db", "vcpus": 3}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_calls_that_differ_in_one_part_have_different_identities(change):
    assert replace(BINDING, **change).identity() != BINDING.identity()
