from collections import Counter
from contextlib import contextmanager

import pytest

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state.jwe import EPOCH_S
from mcp_roundtrip.state.jws import RENEWAL_RETRY_S
from mcp_roundtrip.state.signing_key_certificates import LIFETIME_S
from mcp_roundtrip_testing import FakeClock
from support.kms_clients import ROUND_TTL_S, deployment, fails_with
from support.tokens import BINDING, DELEGATED, NOW, Configuration

pytest_plugins = ["support.ministack"]

WINDOW_S = LIFETIME_S - ROUND_TTL_S


def only(configurations):
    return pytest.mark.parametrize("configuration", configurations, ids=str, indirect=True)


def seal(codec, payload=None):
    return codec.seal(BINDING, payload, round=1, first_issued_at=None)


def opens(codec, token):
    return codec.open(BINDING, token) is not None


@contextmanager
def calls(strict_kms, **expected):
    """Collect the calls of the block, without those that create keys."""
    before = strict_kms.calls.copy()
    yield
    assert strict_kms.calls - before == Counter(expected)


def test_an_environment_loads_each_key_once_and_then_calls_kms_only_to_sign(deployed, strict_kms, kms, clock):
    codec = deployed.environment(kms, clock)
    macs = {"GenerateMac": 1} if deployed.mac_keys else {}
    with calls(strict_kms):
        deployed.environment(kms, clock)
    with calls(strict_kms, GetPublicKey=1, Sign=1, **macs):
        seal(codec)
    with calls(strict_kms) if deployed.delegated else calls(strict_kms, Sign=20):
        tokens = [seal(codec) for _ in range(20)]
    with calls(strict_kms):
        assert all(opens(codec, token) for token in tokens)
    with calls(strict_kms, GetPublicKey=1, **macs):
        elsewhere = deployed.environment(kms, clock)
        assert all(opens(elsewhere, token) for token in tokens)


def test_forgeries_cause_no_kms_call(configuration, deployed, strict_kms, kms, clock):
    codec = deployed.environment(kms, clock)
    good = seal(codec, "x" * 500)
    forgeries = [
        seal(deployment(kms, configuration).environment(kms, clock)),
        seal(deployed.environment(kms, FakeClock(NOW - 2 * EPOCH_S))),
        seal(deployed.environment(kms, FakeClock(NOW + 2 * EPOCH_S))),
        *(f"{good[:at]}{'B' if good[at] == 'A' else 'A'}{good[at + 1 :]}" for at in range(0, len(good), 7)),
    ]
    with calls(strict_kms):
        for forgery in forgeries:
            with pytest.raises(StateRejected):
                codec.open(BINDING, forgery)


@only(DELEGATED)
def test_with_delegated_signing_sealing_works_during_an_outage_while_the_certificate_covers_a_round(
    deployed, strict_kms, kms, clock
):
    codec = deployed.environment(kms, clock)
    seal(codec)
    strict_kms.fail_next(10_000)
    for second in range(0, WINDOW_S + 1, 60):
        clock.now = NOW + second
        assert opens(codec, seal(codec)), second
    clock.now += 1
    with fails_with("ThrottlingException"):
        seal(codec)


@only(DELEGATED)
def test_no_request_fails_if_kms_recovers_before_the_certificate_expires(deployed, strict_kms, kms, clock):
    issued, failed = [], []
    codec = deployed.environment(
        kms,
        clock,
        random=lambda: 0.0,
        on_issued=lambda jti, expires_at: issued.append(expires_at),
        on_failed=lambda error: failed.append(error.reason),
    )
    seal(codec)
    clock.now = NOW + WINDOW_S * 2 / 3
    strict_kms.fail_next(1, operation="Sign")
    seal(codec)
    seal(codec)
    assert (len(issued), failed) == (1, ["ThrottlingException"]), "no second call in the pause"
    clock.now += RENEWAL_RETRY_S
    seal(codec)
    assert issued == [NOW + LIFETIME_S, int(clock.now) + LIFETIME_S]


@only([Configuration(delegated=True, encrypted=True)])
def test_during_an_outage_one_request_per_minute_calls_kms_and_at_most_twice(
    deployed, strict_kms, kms, clock
):
    codec = deployed.environment(kms, clock, random=lambda: 0.0)
    clock.now = NOW + 1550
    seal(codec)
    clock.now = NOW + 2000
    token = seal(codec)
    strict_kms.fail_next(1000, "InternalFailure")
    clock.now = NOW + 2460  # the next epoch's key, a confirmation and a new certificate are due
    for expected in (2, 0, 0):
        kms.requests.clear()
        assert opens(codec, token)
        seal(codec)
        assert kms.requests.total() == expected


@pytest.mark.parametrize("seconds", [-86_400, -100, -4, 4, 4000, 86_400])
def test_new_states_are_sealed_and_opened_at_any_setting_of_the_clock(deployed, kms, clock, seconds):
    codec = deployed.environment(kms, clock)
    before = seal(codec)
    clock.now += seconds
    elsewhere = deployed.environment(kms, clock)
    token = seal(codec)
    assert opens(codec, token)
    assert opens(elsewhere, token)
    if -5 <= seconds < ROUND_TTL_S:
        assert opens(codec, before)
        assert opens(elsewhere, before)
    else:
        with pytest.raises(StateRejected):
            codec.open(BINDING, before)
