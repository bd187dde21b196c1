"""Compare complete states with joserfc, layer by layer, in both directions and every configuration.

`test_jws` compares signed tokens with PyJWT, too.
"""

import json

import jwt
import pytest
from joserfc import jwe as joserfc_jwe
from joserfc import jws as joserfc_jws
from joserfc.jwk import ECKey, OctKey
from joserfc.registry import HeaderParameter

from mcp_roundtrip.state import certificates
from mcp_roundtrip.state.certificates import TrustedKeys
from mcp_roundtrip.state.jws import LocalKey
from support.forgery import FORGES, PAYLOAD, SECRET
from support.tokens import BINDING, CONFIGURATIONS, DELEGATED, KEY, NOW, claims_of, header_of, lower_s

everywhere = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)


JWE = joserfc_jwe.JWERegistry(
    algorithms=["dir", "A256GCM"],
    header_registry={"cty": HeaderParameter("content type", "str"), "typ": HeaderParameter("type", "str")},
)


class JWS(joserfc_jws.JWSRegistry):
    """Accept headers with a certificate, which exceed joserfc's default limit."""

    max_header_length = 4096


REGISTRY = JWS(header_registry={"crt": HeaderParameter("certificate", "str")}, algorithms=["ES256"])


def decoded(token, key):
    """Return the claims of a token, read by joserfc."""
    read = joserfc_jws.deserialize_compact(token, ECKey.import_key(key), registry=REGISTRY)
    return json.loads(read.payload)


def minted(header, claims, key):
    """Return a token that joserfc signed."""
    private = ECKey.import_key(key._private_key)
    return lower_s(joserfc_jws.serialize_compact(header, json.dumps(claims), private, registry=REGISTRY))


def signed_part(forge):
    """Return the signed token, decrypted by joserfc."""
    if not forge.outer:
        return forge.token
    read = joserfc_jwe.decrypt_compact(forge.token, OctKey.import_key(SECRET), registry=JWE)
    assert read.protected == forge.outer
    assert read.plaintext is not None
    return read.plaintext.decode()


@everywhere
def test_joserfc_reads_every_layer_of_a_state(configuration):
    forge = FORGES[configuration]
    inner, key = signed_part(forge), KEY.public_key
    if configuration.delegated:
        certificate = decoded(header_of(inner)["crt"], key)
        key = jwt.PyJWK.from_dict(certificate["cnf"]["jwk"], "ES256").key
    claims = decoded(inner, key)
    assert claims == forge.claims
    assert claims["st"] == PAYLOAD


@everywhere
def test_a_state_that_joserfc_mints_is_opened(configuration):
    forge = FORGES[configuration]
    token = minted(forge.header, forge.claims, forge.key)
    if configuration.encrypted:
        token = joserfc_jwe.encrypt_compact(forge.outer, token, OctKey.import_key(SECRET), registry=JWE)
    assert token != forge.token
    assert configuration.codec().open(BINDING, token).payload == PAYLOAD


@pytest.mark.parametrize("configuration", DELEGATED, ids=str)
def test_a_certificate_that_joserfc_mints_is_trusted(configuration):
    forge = FORGES[configuration]
    certificate = minted(header_of(forge.certificate), claims_of(forge.certificate), KEY)
    place = {"issuer": BINDING.issuer, "audience": BINDING.audience}
    key = TrustedKeys(KEY).find({"crt": certificate}, **place, now=NOW, skew_s=5)
    assert key.public_key == forge.key.public_key


def test_a_jwk_in_a_certificate_equals_the_jwk_of_the_libraries():
    for _ in range(20):
        leaf = LocalKey.generate()
        token = certificates.issue(
            KEY, leaf.public_key, issuer="i", audience="a", issued_at=NOW, jti="0" * 32
        )
        ours = claims_of(token)["cnf"]["jwk"]
        assert ours == jwt.algorithms.ECAlgorithm.to_jwk(leaf.public_key, as_dict=True)
