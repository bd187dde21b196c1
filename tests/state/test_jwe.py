"""Compare encrypted tokens with joserfc in both directions. test_attacks covers invalid ones."""

import hmac
import json
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe as joserfc_jwe
from joserfc.jwk import OctKey
from joserfc.registry import HeaderParameter

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state import jwe
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jwe import EPOCH_S, ContentKey, EpochKeys, short_key_id
from mcp_roundtrip.state.jws import FIRST_RETRY_S, RENEWAL_RETRY_S, Backoff, renewal_time
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import LocalMacKey
from support.interpreters import run_program
from support.tokens import sealed, unb64

SECRET = secrets.token_bytes(32)
KEY = ContentKey("gen.1", SECRET, "t+jwt")
HEADER = {"alg": "dir", "cty": "JWT", "enc": "A256GCM", "kid": "gen.1", "typ": "t+jwt"}
TOKEN = sealed({"a": 1})

joserfc_jwe.JWERegistry.max_ciphertext_length = 1_000_000
REGISTRY = joserfc_jwe.JWERegistry(
    algorithms=["dir", "A256GCM"],
    header_registry={"cty": HeaderParameter("content type", "str"), "typ": HeaderParameter("type", "str")},
)

CONTENTS = st.text("ABCabc019-_.")


def encrypted(content=TOKEN):
    return jwe.encrypt(content, KEY, secrets.token_bytes(jwe.IV_BYTES))


def decrypted(token):
    return jwe.decrypt(token.encode(), "t+jwt", {"gen.1": KEY}.__getitem__).decode()


@given(CONTENTS)
def test_joserfc_decrypts_our_tokens_whose_length_is_known_beforehand(content):
    token = encrypted(content)
    read = joserfc_jwe.decrypt_compact(token, OctKey.import_key(SECRET), registry=REGISTRY)
    assert read.plaintext is not None
    assert read.plaintext.decode() == decrypted(token) == content
    assert read.protected == HEADER
    assert KEY.encrypted_length(len(content)) == len(token)


@given(CONTENTS, st.permutations(sorted(HEADER)))
def test_tokens_of_joserfc_with_the_expected_header_are_decrypted(content, order):
    header = {name: HEADER[name] for name in order}
    token = joserfc_jwe.encrypt_compact(header, content, OctKey.import_key(SECRET), registry=REGISTRY)
    assert decrypted(token) == content


def test_a_token_hides_its_content():
    one, other = encrypted(), encrypted()
    assert one.split(".")[3] != other.split(".")[3]
    assert TOKEN.encode() not in unb64(one.split(".")[3])
    assert json.loads(unb64(one.split(".", maxsplit=1)[0])) == HEADER


def test_importing_the_state_package_loads_neither_pyjwt_nor_boto3():
    run = run_program("import sys, mcp_roundtrip.state.codec\nprint(*{'jwt', 'boto3'} & set(sys.modules))")
    assert run.stdout.split() == []


EPOCH = 500_000
START = EPOCH * EPOCH_S
EARLIEST_PREFETCH = START + EPOCH_S * 2 // 3
LIMITS = Limits()


class CountingMacKey(LocalMacKey):
    """A MAC key that records its calls and can be made to fail."""

    failure: str | None = None

    def __init__(self, key_id="one", secret=SECRET):
        super().__init__(key_id, secret)
        self.derivations = []

    def mac(self, message):
        self.derivations.append(message)
        if self.failure:
            raise KeyServiceError(self.failure)
        return super().mac(message)


@pytest.fixture
def mac_key():
    return CountingMacKey()


class Epochs(EpochKeys):
    """Epoch keys at a settable time."""

    def current(self, now):
        self.clock.now = now  # type: ignore[attr-defined]  # a FakeClock
        return super().current(now)

    def find(self, kid, now):
        self.clock.now = now  # type: ignore[attr-defined]  # a FakeClock
        return super().find(kid, now)


def epochs(*mac_keys, limits=LIMITS, random=lambda: 0.0, issuer="stack"):
    clock = FakeClock(START)
    options = {"clock": clock, "random": random, "renewals": Backoff(clock)}
    return Epochs(mac_keys, "t+jwt", limits, issuer=issuer, **options)


def unavailable(keys, *moments, kid=None):
    """Check that a key is unavailable at these moments."""
    for now in moments:
        with pytest.raises(KeyServiceError) as failed:
            keys.find(kid, now) if kid else keys.current(now)
        assert failed.value.reason in ("timeout", "AccessDeniedException")


def refusal(keys, kid, now=START):
    with pytest.raises(StateRejected) as refused:
        keys.find(kid, now)
    return refused.value.reason


def kid(epoch, key_id="one"):
    return f"{short_key_id(key_id)}.{epoch}"


def test_an_epoch_key_is_a_mac_of_epoch_number_and_issuer_derived_once(mac_key):
    keys = epochs(mac_key, mac_key)  # it is both current and trusted
    key = keys.current(START)
    assert key.kid == kid(EPOCH)
    assert key.secret == hmac.digest(SECRET, b"mcp-rs/v2/epoch:%d:stack" % EPOCH, "sha256")
    assert key == keys.current(START + 1) == keys.find(kid(EPOCH), START + 2)
    assert len(mac_key.derivations) == 1
    assert "1234abcd" not in short_key_id("1234abcd-12ab-34cd-56ef-1234567890ab")
    assert len(short_key_id("one")) == 8


def test_every_epoch_mac_key_and_issuer_has_its_own_epoch_key():
    one, two = LocalMacKey("one", SECRET), LocalMacKey("two", b"t" * 32)
    keys, elsewhere = epochs(one, two), epochs(one, issuer="prod")
    assert elsewhere.current(START).kid == keys.current(START).kid
    found = [
        keys.current(START),
        keys.current(START + EPOCH_S),
        keys.find(kid(EPOCH, "two"), START),
        elsewhere.current(START),
    ]
    assert len({key.secret for key in found}) == 4


WINDOW = {
    "this epoch": (EPOCH, START, True),
    "the previous epoch, while its tokens are valid": (EPOCH - 1, START + 599, True),
    "the previous epoch, after its tokens expired": (EPOCH - 1, START + 600, False),
    "the next epoch, within the clock skew": (EPOCH + 1, START + EPOCH_S - 5, True),
    "the next epoch, before the clock skew": (EPOCH + 1, START + EPOCH_S - 6, False),
    "the epoch before the previous one": (EPOCH - 2, START, False),
    "epoch 0": (1, START, False),
    "the last epoch": (9_999_999_999, START, False),
}


@pytest.mark.parametrize(("epoch", "now", "accepted"), WINDOW.values(), ids=WINDOW)
def test_a_key_is_found_if_a_valid_token_can_be_encrypted_with_it(mac_key, epoch, now, accepted):
    keys = epochs(mac_key)
    if accepted:
        assert [keys.find(kid(epoch), now).kid for _ in range(9)] == [kid(epoch)] * 9
        assert len(mac_key.derivations) == 1, "forgeries with one epoch cost one call"
    else:
        assert refusal(keys, kid(epoch), now) == "epoch"
        assert mac_key.derivations == []


def test_a_longer_round_limit_accepts_older_epochs(mac_key):
    limits = Limits(round_ttl_s=3 * EPOCH_S, flow_ttl_s=9 * EPOCH_S)
    keys = epochs(mac_key, limits=limits)
    assert keys.find(kid(EPOCH - 3), START)
    assert refusal(keys, kid(EPOCH - 4)) == "epoch"


@given(st.text())
def test_no_text_as_epoch_name_causes_a_kms_call(text):
    mac_key = CountingMacKey()
    assert refusal(epochs(mac_key), text) in {"header", "unknown_key", "epoch"}
    assert mac_key.derivations == []


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999])
def test_the_next_epoch_key_is_derived_once_at_a_random_time_late_in_the_current_epoch(mac_key, random):
    keys, prefetch_at = epochs(mac_key, random=lambda: random), renewal_time(START, START + EPOCH_S, random)
    for now in range(START, START + 2 * EPOCH_S, 10):
        keys.current(now)
        if now < prefetch_at:
            assert len(mac_key.derivations) == 1
        elif now < prefetch_at + EPOCH_S:
            assert len(mac_key.derivations) == 2


def test_the_epoch_key_of_a_trusted_mac_key_is_derived_when_a_token_needs_it():
    one, two = CountingMacKey("one"), CountingMacKey("two")
    keys = epochs(one, two)
    keys.find(kid(EPOCH), EARLIEST_PREFETCH)  # an environment that only opens states prefetches, too
    assert (len(one.derivations), len(two.derivations)) == (2, 0)
    keys.find(kid(EPOCH, "two"), EARLIEST_PREFETCH)
    assert (len(one.derivations), len(two.derivations)) == (2, 1)


def test_a_failed_prefetch_has_no_effect_and_is_retried_after_a_minute(mac_key):
    keys = epochs(mac_key)
    keys.current(START)
    mac_key.failure = "ThrottlingException"
    for second in range(RENEWAL_RETRY_S):
        keys.current(EARLIEST_PREFETCH + second)
    assert len(mac_key.derivations) == 2
    mac_key.failure = None
    keys.current(EARLIEST_PREFETCH + RENEWAL_RETRY_S)
    assert len(mac_key.derivations) == 3
    keys.current(START + EPOCH_S)
    assert len(mac_key.derivations) == 3


def test_tokens_of_two_epochs_share_the_backoff(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    for epoch in (EPOCH, EPOCH - 1) * 5:
        unavailable(keys, START, kid=kid(epoch))
    assert len(mac_key.derivations) == 1
    mac_key.failure = None
    assert keys.current(START + FIRST_RETRY_S)


def test_a_failing_mac_key_does_not_delay_another():
    one, two = CountingMacKey("one"), CountingMacKey("two")
    keys = epochs(one, two)
    two.failure = "AccessDeniedException"
    unavailable(keys, START, kid=kid(EPOCH, "two"))
    assert keys.find(kid(EPOCH, "one"), START)


def test_failed_prefetches_do_not_extend_the_backoff_of_a_needed_key(mac_key):
    keys = epochs(mac_key)
    keys.current(START)
    mac_key.failure = "timeout"
    for second in range(EARLIEST_PREFETCH, START + EPOCH_S, RENEWAL_RETRY_S):
        keys.current(second)
    derivations = len(mac_key.derivations)
    unavailable(keys, START + EPOCH_S, START + EPOCH_S + FIRST_RETRY_S)
    assert len(mac_key.derivations) == derivations + 2


def test_expired_epoch_keys_are_removed_from_memory_also_by_failing_attempts(mac_key):
    keys = epochs(mac_key)
    for now in range(START, START + 5 * EPOCH_S, 60):
        keys.current(now)
        in_memory = {epoch for _, epoch in keys._keys}
        assert in_memory <= {(now - LIMITS.round_ttl_s) // EPOCH_S, now // EPOCH_S, now // EPOCH_S + 1}
    mac_key.failure = "timeout"
    keys.current(START + 5 * EPOCH_S + LIMITS.round_ttl_s)
    assert {epoch for _, epoch in keys._keys} == {EPOCH + 5}
    with pytest.raises(KeyServiceError):
        keys.current(START + 7 * EPOCH_S)
    assert keys._keys == {}
    mac_key.failure = None
    keys.current(START + 8 * EPOCH_S)
    with pytest.raises(StateRejected):
        keys.find("x", START + 10 * EPOCH_S)
    assert keys._keys == {}
