"""`requestState` under attack: each row says what is done to a token or its request, and what follows."""

import hmac
import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import KeyServiceError, StateRejected, StateTooLarge
from mcp_roundtrip.state.claims import Limits, OpenState
from mcp_roundtrip.state.keys import P256_ORDER, LocalKey, PinnedKeys
from mcp_roundtrip.state.links import sign_link
from support.tokens import (
    ALICE,
    BINDING,
    KEY,
    NOW,
    PRIVATE,
    b64,
    claims_of,
    codec,
    header_of,
    sealed,
    signed,
    token_id,
    unb64,
    with_claims,
    with_header,
    with_signature,
    without_claim,
)

TOKEN = sealed({"answers": {"size": {"vcpus": 2}}})
SIGNATURE = unb64(TOKEN.rpartition(".")[2])
R, S = int.from_bytes(SIGNATURE[:32], "big"), int.from_bytes(SIGNATURE[32:], "big")
OTHER = ec.generate_private_key(ec.SECP256R1())
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def refusal(token, *, binding=BINDING, now=NOW, limits=None, keys=KEY):
    with pytest.raises(StateRejected) as refused:
        codec(now, limits=limits, keys=keys).open(binding, token)
    return refused.value.reason


def raw(r, s):
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def hmac_token(alg, secret):
    header = b64(json.dumps({"alg": alg, "kid": KEY.kid, "typ": "mcp-rs+jwt"}).encode())
    signing_input = f"{header}.{TOKEN.split('.')[1]}"
    mac = hmac.digest(secret, signing_input.encode(), alg.replace("HS", "sha"))
    return f"{signing_input}.{b64(mac.ljust(64, bytes(1)))}"


def payload_bytes(claims):
    return signed(header_of(TOKEN), claims)


PUBLIC = PRIVATE.public_key()
PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
DER = PUBLIC.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
SECRETS = {"the PEM": PEM, "the DER": DER, "the kid": KEY.kid.encode(), "nothing": b""}
LINK = sign_link(
    KEY,
    issuer=BINDING.issuer,
    audience=BINDING.audience,
    principal=ALICE,
    key="size",
    flow_id="f1",
    expires_at=NOW + 600,
    clock=lambda: NOW,
    token_id=token_id,
)
DEEP = b'{"st":' + b"[" * 3000 + b"]" * 3000 + b"}"
CLAIMS = json.dumps(claims_of(TOKEN)).encode()

FORGERIES = {
    # what is not a token at all
    **{
        f"{value!r:.20} instead of a string": (value, "not_a_string")
        for value in (None, 5, True, b"bytes", [], {})
    },
    "empty": ("", "malformed"),
    "other script": ("é" * 300, "malformed"),
    "full-width letters": ("".join(chr(ord(c) + 0xFEE0) for c in TOKEN), "malformed"),
    "lone surrogate": (TOKEN + "\ud800", "malformed"),
    "one character over the limit": ("A" * 262_145, "too_long"),
    "five megabytes": ("A" * 5_000_000, "too_long"),
    "five parts, as an encrypted token": (f"{TOKEN}.AAAA.AAAA", "malformed"),
    "another format": ("v1." + b64(bytes(200)), "malformed"),
    "no payload": (f"{TOKEN.split('.')[0]}..{TOKEN.split('.')[2]}", "malformed"),
    "detached and unencoded payload": (TOKEN.replace(".", "..", 1), "malformed"),
    **{
        f"{suffix!r} appended": (TOKEN + suffix, "malformed")
        for suffix in ("=", "==", ".", "A", "\n", "\r\n", " ", "\0", "\u200b", "-TAMPERED")
    },
    **{f"{prefix!r} put before": (prefix + TOKEN, "malformed") for prefix in ("\n", " ", ".", "\ufeff")},
    # algorithms
    "alg none, unsigned": (b64(b'{"alg":"none"}') + f".{TOKEN.split('.')[1]}.", "malformed"),
    **{
        f"alg {alg!r}": (with_header(TOKEN, alg=alg), "header")
        for alg in (
            *("none", "None", "nOnE", "", "es256", "ES256 ", "ES384", "ES256K", "EdDSA", "RS256", "HS256"),
            *(5, True, ["ES256"], {"alg": "ES256"}),
        )
    },
    "no alg": (with_header(TOKEN, alg=None), "header"),
    **{
        f"{alg} keyed with {name}": (hmac_token(alg, secret), "header")
        for alg in ("HS256", "HS384", "HS512")
        for name, secret in SECRETS.items()
    },
    # header
    **{
        f"typ {typ!r}": (with_header(TOKEN, typ=typ), "header")
        for typ in ("JWT", "at+jwt", "mcp-link+jwt", "mcp-rs-crt+jwt", "MCP-RS+JWT", "", 5)
    },
    "no typ": (with_header(TOKEN, typ=None), "header"),
    **{
        f"header member {name}": (with_header(TOKEN, **{name: value}), "header")
        for name, value in {
            "jwk": {"kty": "EC"},
            "jku": "https://evil.example/jwks",
            "x5u": "https://evil.example/cert",
            "x5c": ["AAAA"],
            "crit": ["exp"],
            "b64": False,
            "zip": "DEF",
            "cty": "JWT",
        }.items()
    },
    "duplicate header member": (
        signed(f'{{"alg":"none","alg":"ES256","kid":"{KEY.kid}","typ":"mcp-rs+jwt"}}'.encode(), CLAIMS),
        "header",
    ),
    **{
        f"header {name}": (signed(header, CLAIMS), "header")
        for name, header in {"an array": b"[]", "not JSON": b"{", "not UTF-8": b'{"alg":"\xff"}'}.items()
    },
    "header of 30,000 levels": (signed(b"[" * 30_000, CLAIMS), "malformed"),
    # keys
    **{
        f"kid {kid!r}": (with_header(TOKEN, kid=kid), reason)
        for kid, reason in {
            "arn:aws:kms:us-east-1:666666666666:key/attacker": "unknown_key",
            "../../etc/passwd": "unknown_key",
            "alias/aws/ssm": "unknown_key",
            "": "unknown_key",
            5: "header",
            ("a", "list"): "header",
        }.items()
    },
    "no kid": (with_header(TOKEN, kid=None), "header"),
    "the attacker's own key": (
        signed({**header_of(TOKEN), "kid": LocalKey(OTHER).kid}, CLAIMS, OTHER),
        "unknown_key",
    ),
    "the attacker's own key under our kid": (signed(header_of(TOKEN), CLAIMS, OTHER), "signature"),
    # signatures
    **{
        f"signature {name}": (with_signature(TOKEN, signature), reason)
        for name, signature, reason in (
            ("(0, 0)", raw(0, 0), "signature"),
            ("(n, n)", raw(P256_ORDER, P256_ORDER), "signature"),
            ("(r, 0)", raw(R, 0), "signature"),
            ("(0, s)", raw(0, S), "signature"),
            ("(n, s)", raw(P256_ORDER, S), "signature"),
            ("with the high s", raw(R, P256_ORDER - S), "signature"),
            ("swapped", raw(S, R) if R <= P256_ORDER // 2 else raw(S, P256_ORDER - R), "signature"),
            ("in DER", utils.encode_dss_signature(R, S), "malformed"),
            ("of 63 bytes", SIGNATURE[:63], "malformed"),
            ("of 65 bytes", SIGNATURE + b"\0", "malformed"),
        )
    },
    "signature of another token": (with_signature(TOKEN, unb64(sealed(1).split(".")[2])), "signature"),
    # payloads, validly signed
    "duplicate claim": (payload_bytes(CLAIMS[:-1] + b',"exp":9999999999}'), "payload"),
    "NaN": (payload_bytes(CLAIMS.replace(str(NOW).encode(), b"NaN", 1)), "payload"),
    "a number out of range": (payload_bytes(CLAIMS.replace(str(NOW + 600).encode(), b"1e400", 1)), "payload"),
    "claims of 3,000 levels": (payload_bytes(DEEP), "payload"),
    "claims not UTF-8": (payload_bytes(b'{"st":"\xff"}'), "payload"),
    "claims an array": (payload_bytes(b"[]"), "payload"),
    "claims null": (payload_bytes(b"null"), "payload"),
    "claims not JSON": (payload_bytes(b"compressed"), "payload"),
    # claims, validly signed
    **{
        f"without {name}": (without_claim(TOKEN, name), "claims")
        for name in claims_of(TOKEN)
        if name != "sub"
    },
    "without sub": (without_claim(TOKEN, "sub"), "wrong_principal"),
    "an unknown claim": (with_claims(TOKEN, admin=True), "claims"),
    **{
        f"{name} {value!r}": (with_claims(TOKEN, **{name: value}), "claims")
        for name in ("iat", "nbf", "exp", "rnd", "oiat")
        for value in (str(NOW), True, None, NOW + 0.5, [NOW])
    },
    **{
        f"{name} {value!r}": (with_claims(TOKEN, **{name: value}), "claims")
        for name in ("iss", "aud", "sub", "jti", "rq")
        for value in (5, None, [claims_of(TOKEN)[name]])
    },
    "another issuer": (with_claims(TOKEN, iss="other"), "wrong_issuer"),
    "another audience": (with_claims(TOKEN, aud="https://mcp.example/mcp/"), "wrong_audience"),
    "sub of another token": (with_claims(TOKEN, sub=claims_of(sealed())["sub"]), "wrong_principal"),
    "exp now": (with_claims(TOKEN, exp=NOW), "expired"),
    "exp past": (with_claims(TOKEN, exp=NOW - 1), "expired"),
    "iat in the future": (with_claims(TOKEN, iat=NOW + 6), "not_yet_valid"),
    "nbf in the future": (with_claims(TOKEN, nbf=NOW + 6), "not_yet_valid"),
    "a lifetime over the limit": (with_claims(TOKEN, exp=NOW + 601), "lifetime"),
    "a lifetime without end": (with_claims(TOKEN, exp=10**300), "lifetime"),
    "a flow over the limit": (with_claims(TOKEN, oiat=NOW - 3600), "flow_expired"),
    "a flow that begins in the future": (with_claims(TOKEN, oiat=NOW + 6), "lifetime"),
    "a link": (LINK, "header"),
}


@pytest.mark.parametrize(("token", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_is_refused(token, reason):
    assert refusal(token) == reason


MOVES = {
    "another principal": ({"principal": ALICE.replace("alice", "mallory")}, "wrong_principal"),
    "no principal": ({"principal": None}, "wrong_principal"),
    "an empty principal": ({"principal": ""}, "wrong_principal"),
    "another issuer": ({"issuer": "other"}, "wrong_issuer"),
    "another audience": ({"audience": "https://other.example/mcp"}, "wrong_audience"),
    "another method": ({"method": "prompts/get"}, "wrong_request"),
    "another tool": ({"name": "destroy"}, "wrong_request"),
    "a changed argument": ({"arguments": {"name": "db", "vcpus": 3}}, "wrong_request"),
    "an argument as a string": ({"arguments": {"name": "db", "vcpus": "2"}}, "wrong_request"),
    "a further argument": ({"arguments": {"name": "db", "vcpus": 2, "x": None}}, "wrong_request"),
    "a dropped argument": ({"arguments": {"name": "db"}}, "wrong_request"),
    "no arguments": ({"arguments": None}, "wrong_request"),
}


@pytest.mark.parametrize(("changes", "reason"), MOVES.values(), ids=MOVES)
def test_a_token_moved_to_another_request_is_refused(changes, reason):
    assert refusal(TOKEN, binding=replace(BINDING, **changes)) == reason


def test_a_token_of_an_anonymous_caller_is_refused_once_there_is_a_principal():
    assert refusal(sealed(binding=replace(BINDING, principal=None))) == "wrong_principal"


SAME = {
    "unchanged": {"name": "db", "vcpus": 2},
    "members in another order": {"vcpus": 2, "name": "db"},
    "an integer written as a float": {"name": "db", "vcpus": 2.0},
}


@pytest.mark.parametrize("arguments", SAME.values(), ids=SAME)
def test_the_same_request_in_another_spelling_is_accepted(arguments):
    assert codec().open(replace(BINDING, arguments=arguments), TOKEN).round == 1


def test_missing_arguments_and_none_are_the_same_request():
    token = sealed(binding=replace(BINDING, arguments=None))
    assert codec().open(replace(BINDING, arguments={}), token).round == 1


def test_a_token_of_an_anonymous_caller_has_no_sub_and_is_accepted_without_a_principal():
    anonymous = replace(BINDING, principal=None)
    token = sealed(7, binding=anonymous)
    assert "sub" not in claims_of(token)
    assert codec().open(anonymous, token).payload == 7


def test_a_token_may_be_replayed_until_it_expires():
    one = codec()
    assert one.open(BINDING, TOKEN) == one.open(BINDING, TOKEN)


CLOCKS = {
    "a second before the end": (599, None),
    "at the end": (600, "expired"),
    "behind by less than the skew": (-4, None),
    "behind by the skew": (-5, None),
    "behind by more than the skew": (-7, "not_yet_valid"),
}


@pytest.mark.parametrize(("offset", "reason"), CLOCKS.values(), ids=CLOCKS)
def test_the_clock_decides(offset, reason):
    if reason:
        assert refusal(TOKEN, now=NOW + offset) == reason
    else:
        assert codec(NOW + offset).open(BINDING, TOKEN)


def test_a_token_gives_back_what_was_sealed():
    token = codec(NOW + 100).seal(BINDING, {"a": [1]}, round=3, first_issued_at=NOW)
    assert codec(NOW + 101).open(BINDING, token) == OpenState({"a": [1]}, 3, NOW)


def test_the_first_round_starts_the_flow():
    assert codec(NOW + 0.9).open(BINDING, sealed(now=NOW + 0.9)).first_issued_at == NOW


def test_a_flow_cannot_be_renewed_past_its_end():
    last = codec(NOW + 3599).seal(BINDING, None, round=9, first_issued_at=NOW)
    assert claims_of(last)["exp"] == NOW + 3600
    with pytest.raises(StateRejected) as refused:
        codec(NOW + 3600).seal(BINDING, None, round=10, first_issued_at=NOW)
    assert refused.value.reason == "flow_expired"


def test_a_shorter_flow_limit_counts_for_tokens_minted_before_it():
    token = codec(NOW + 100).seal(BINDING, None, round=2, first_issued_at=NOW)
    assert refusal(token, now=NOW + 100, limits=Limits(flow_ttl_s=100)) == "flow_expired"


def test_a_clock_behind_the_flows_first_continues_the_flow():
    opened = codec(NOW - 4).open(BINDING, sealed())
    token = codec(NOW - 4).seal(BINDING, None, round=2, first_issued_at=opened.first_issued_at)
    assert codec(NOW - 4).open(BINDING, token).first_issued_at == NOW


def test_a_token_of_another_trusted_key_is_accepted_and_its_kid_cannot_be_swapped():
    keys = PinnedKeys([PUBLIC, OTHER.public_key()])
    token = codec(signer=LocalKey(OTHER)).seal(BINDING, 1, round=1, first_issued_at=None)
    assert codec(keys=keys).open(BINDING, token).payload == 1
    assert refusal(with_kid(token, KEY.kid), keys=keys) == "signature"


def with_kid(token, kid):
    _, payload, signature = token.split(".")
    return ".".join((b64(json.dumps({**header_of(token), "kid": kid}).encode()), payload, signature))


def test_every_character_matters():
    for position, original in enumerate(TOKEN):
        index = ALPHABET.find(original)
        for step in (1, 2, 16, 32):
            changed = TOKEN[:position] + ALPHABET[(index + step) % 64] + TOKEN[position + 1 :]
            refusal(changed)


def test_every_bit_of_the_last_characters_matters():
    for position in range(len(TOKEN) - 3, len(TOKEN)):
        for bit in range(6):
            changed = ALPHABET[ALPHABET.index(TOKEN[position]) ^ 1 << bit]
            refusal(TOKEN[:position] + changed + TOKEN[position + 1 :])


def test_a_truncated_token_is_refused_at_every_length():
    for length in range(len(TOKEN)):
        refusal(TOKEN[:length])


@given(st.integers(0, len(TOKEN) - 1), st.characters())
def test_any_changed_character_is_refused(position, character):
    changed = TOKEN[:position] + character + TOKEN[position + 1 :]
    if changed != TOKEN:
        refusal(changed)


@given(st.text() | st.binary() | st.none() | st.from_regex(r"[\w-]+\.[\w-]+\.[\w-]{86}", fullmatch=True))
def test_anything_that_was_not_minted_is_refused(token):
    refusal(token)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(JSON, st.integers(0, 50))
def test_whatever_is_sealed_is_opened_the_same(payload, number):
    token = codec().seal(BINDING, payload, round=number, first_issued_at=None)
    assert codec().open(BINDING, token) == OpenState(payload, number, NOW)


@given(st.builds(dict, arguments=st.dictionaries(st.text(), JSON, max_size=3), name=st.text()))
def test_no_other_request_opens_a_token(changes):
    moved = replace(BINDING, **changes)
    if moved != BINDING:
        assert refusal(TOKEN, binding=moved) == "wrong_request"


@given(st.text(), st.text())
def test_no_other_principal_opens_a_token(one, other):
    token = sealed(binding=replace(BINDING, principal=one))
    if one != other:
        assert refusal(token, binding=replace(BINDING, principal=other)) == "wrong_principal"


def test_arguments_that_no_json_holds_open_nothing():
    assert refusal(TOKEN, binding=replace(BINDING, arguments={"x": float("nan")})) == "unexpected_ValueError"


class Unused:
    """A signer that must not be asked."""

    kid = KEY.kid

    def sign(self, signing_input):
        raise AssertionError("signed")


@given(st.integers(0, 5000))
def test_a_token_may_be_as_long_as_the_limit_and_a_longer_one_is_never_signed(size):
    one = replace(codec(), token_id=lambda: "id")
    token = one.seal(BINDING, "x" * size, round=1, first_issued_at=None)
    exact, short = (Limits(max_minted=limit) for limit in (len(token), len(token) - 1))
    assert replace(one, limits=exact).seal(BINDING, "x" * size, round=1, first_issued_at=None)
    with pytest.raises(StateTooLarge) as refused:
        replace(one, limits=short, signer=Unused()).seal(BINDING, "x" * size, round=1, first_issued_at=None)
    assert (refused.value.size, refused.value.limit) == (len(token), len(token) - 1)


def test_a_token_names_neither_the_principal_nor_the_arguments():
    claims = json.dumps(claims_of(sealed()))
    assert "alice" not in claims
    assert "id.example" not in claims
    assert "vcpus" not in claims


def test_two_tokens_of_one_principal_do_not_show_it():
    assert claims_of(sealed())["sub"] != claims_of(sealed())["sub"]


class Broken:
    """Keys that raise `error`, as a key service that fails would."""

    def __init__(self, error):
        self.error = error

    def find(self, kid):
        raise self.error


def test_without_any_key_the_key_service_is_to_blame_and_not_the_token():
    with pytest.raises(KeyServiceError):
        codec(keys=Broken(KeyServiceError("timeout"))).open(BINDING, TOKEN)


@pytest.mark.parametrize("error", [KeyError("secret"), RecursionError(), MemoryError(), AttributeError()])
def test_any_unforeseen_error_refuses_the_token(error):
    assert refusal(TOKEN, keys=Broken(error)) == f"unexpected_{type(error).__name__}"


def test_a_malformed_token_is_refused_before_any_key_is_looked_up():
    keys = Broken(AssertionError("looked up"))
    for token in ("", "a.b.c", TOKEN + "=", with_header(TOKEN, typ="JWT"), with_header(TOKEN, alg="none")):
        assert refusal(token, keys=keys) in {"malformed", "header"}
