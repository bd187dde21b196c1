"""Refusing forged states costs no signature and, with one exception, no key derivation."""

import itertools
import secrets
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from mcp_roundtrip.errors import StateRejected
from support.attacks_certificate import CERTIFICATES, certificate_for
from support.attacks_encryption import ENCRYPTIONS, UNCALLABLE
from support.attacks_signature import MALLORY, SIGNED_TOKENS
from support.attacks_spelling import SPELLINGS
from support.forgery import FORGES, Forge
from support.tokens import (
    BINDING,
    CONFIGURATIONS,
    DELEGATION,
    ENCRYPTED,
    EPOCH,
    KEY,
    MAC,
    NOW,
    encrypted,
    signed,
)

everywhere = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
where_encrypted = pytest.mark.parametrize("configuration", ENCRYPTED, ids=str)


def warm(configuration, now=NOW):
    """Return a codec that has sealed and opened a state, and the mock of its signer and keys."""
    own, used = DELEGATION.signer() if configuration.delegated else KEY, Mock()
    used.attach_mock(Mock(wraps=own, key_members=own.key_members), "signer")
    used.attach_mock(Mock(wraps=MAC, short_key_id=MAC.short_key_id), "macs")
    used.attach_mock(Mock(wraps=KEY), "keys")
    one = replace(configuration.codec(now, keys=used.keys, macs=[used.macs]), signer=lambda: used.signer)
    one.open(BINDING, one.seal(BINDING, None, round=1, first_issued_at=None))
    assert used.signer.sign.call_count == 1
    assert used.macs.mac.call_count == configuration.encrypted
    used.reset_mock()
    return one, used


def refused(one, tokens):
    for token in tokens:
        with pytest.raises(StateRejected):
            one.open(BINDING, token)


def attack_tokens(forge: Forge) -> Iterator[object]:
    """Yield the tokens of the attack tables, made with all keys, so that every check runs."""
    anywhere: tuple[object, ...] = ({}, UNCALLABLE)
    for attack in itertools.chain.from_iterable(
        table.values() for table in (SPELLINGS, SIGNED_TOKENS, CERTIFICATES, ENCRYPTIONS)
    ):
        if attack.request or attack.later_s or attack.verifier not in anywhere:
            continue
        if forge.configuration in attack.on and attack.reason is not None:
            yield attack.forge(forge)


def outsider_tokens(forge: Forge) -> Iterator[str]:
    """Yield endless tokens of an attacker who has one state and an own key."""
    for number in itertools.count():
        content = forge.claims | {"rnd": number}
        own = {"alg": "ES256", "kid": MALLORY.kid, "typ": "mcp-rs+jwt"}
        certificate = signed({**own, "typ": "mcp-rs-crt+jwt"}, certificate_for(MALLORY), MALLORY)
        inner = [
            signed(own, content, MALLORY),
            signed({**own, "kid": KEY.kid}, content, MALLORY),
            signed({**own, "kid": secrets.token_urlsafe(12)}, content, MALLORY),
            signed({"alg": "ES256", "crt": certificate, "typ": "mcp-rs+jwt"}, content, MALLORY),
            signed(forge.header, content, MALLORY),
        ]
        yield from inner
        if forge.configuration.encrypted:
            for epoch, token in zip(
                (EPOCH, EPOCH + number + 1, EPOCH - number - 2, number), inner, strict=False
            ):
                kid = f"{MAC.short_key_id}.{epoch}"
                yield encrypted(forge.outer | {"kid": kid}, token, secrets.token_bytes(32))
        yield forge.token[: number + 1]
        yield forge.token + "A" * (number + 1)
        yield secrets.token_urlsafe(number + 1)


def distinct(tokens: Iterator[object], count: int) -> list[object]:
    found: dict[object, object] = {}
    for token in tokens:
        found[repr(token)] = token
        if len(found) == count:
            break
    return list(found.values())


@everywhere
def test_1000_forgeries_cause_no_signature_and_no_key_derivation(configuration):
    forge = FORGES[configuration]
    known = distinct(attack_tokens(forge), 500)
    tokens = distinct(itertools.chain(known, outsider_tokens(forge)), 1000)
    one, used = warm(configuration)
    refused(one, tokens)
    assert len(tokens) == 1000
    assert used.signer.sign.mock_calls == used.macs.mac.mock_calls == []


@where_encrypted
def test_a_forgery_without_the_epoch_key_is_refused_before_a_signing_key_is_looked_up(configuration):
    one, used = warm(configuration)
    refused(one, distinct(outsider_tokens(FORGES[configuration]), 500))
    assert used.mock_calls == []


@where_encrypted
def test_all_forgeries_that_name_the_previous_epoch_cost_one_derivation(configuration):
    one, used = warm(configuration, NOW + 100)
    outer = FORGES[configuration].outer | {"kid": f"{MAC.short_key_id}.{EPOCH - 1}"}
    refused(one, [encrypted(outer, "forged", secrets.token_bytes(32)) for _ in range(200)])
    assert [name for name, _, _ in used.mock_calls] == ["macs.mac"]
