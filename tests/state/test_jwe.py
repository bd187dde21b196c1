"""Compare encrypted tokens with joserfc in both directions. test_attacks covers invalid ones."""

import json
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe as joserfc_jwe
from joserfc.jwk import OctKey
from joserfc.registry import HeaderParameter

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import jwe
from mcp_roundtrip.state.jwe import ContentKey
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


def encrypted(content=TOKEN, key=KEY):
    return jwe.encrypt(content, key, secrets.token_bytes(jwe.IV_BYTES))


def decrypted(token, typ="t+jwt"):
    return jwe.decrypt(token.encode(), typ, {"gen.1": KEY}.__getitem__).decode()


@given(CONTENTS)
def test_joserfc_decrypts_our_tokens(content):
    read = joserfc_jwe.decrypt_compact(encrypted(content), OctKey.import_key(SECRET), registry=REGISTRY)
    assert read.plaintext is not None
    assert read.plaintext.decode() == content
    assert read.protected == HEADER


@given(CONTENTS, st.permutations(sorted(HEADER)))
def test_tokens_of_joserfc_with_the_expected_header_are_decrypted(content, order):
    header = {name: HEADER[name] for name in order}
    token = joserfc_jwe.encrypt_compact(header, content, OctKey.import_key(SECRET), registry=REGISTRY)
    assert decrypted(token) == content


@given(CONTENTS)
def test_content_round_trips_and_the_length_of_the_token_is_known_beforehand(content):
    token = encrypted(content)
    assert decrypted(token) == content
    assert KEY.encrypted_length(len(content)) == len(token)


def test_a_token_hides_its_content_and_no_two_tokens_are_equal():
    one, other = encrypted(), encrypted()
    assert one.split(".")[3] != other.split(".")[3]
    assert TOKEN.encode() not in unb64(one.split(".")[3])


def test_the_header_has_exactly_the_expected_members():
    assert json.loads(unb64(encrypted().split(".", maxsplit=1)[0])) == HEADER


def test_a_token_of_another_type_is_refused():
    with pytest.raises(StateRejected) as refused:
        decrypted(encrypted(), "other+jwt")
    assert refused.value.reason == "header"


def test_a_token_encrypted_with_another_key_of_the_same_id_is_refused():
    token = encrypted(key=ContentKey("gen.1", secrets.token_bytes(32), "t+jwt"))
    with pytest.raises(StateRejected) as refused:
        decrypted(token)
    assert refused.value.reason == "decryption"


def test_importing_the_state_package_loads_neither_pyjwt_nor_boto3():
    code = (
        "import sys, mcp_roundtrip.state.codec, mcp_roundtrip.state.elicitation_links\n"
        "heavy = {'jwt', 'boto3'}\n"
        "print(*heavy & set(sys.modules))"
    )
    run = run_program(code)
    assert run.stdout.split() == []
