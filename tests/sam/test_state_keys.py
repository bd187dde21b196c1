import json
import re
from itertools import product
from typing import Any

import pytest

from support.cloudformation import Refused
from support.transformed_template import (
    FOLDERS,
    FRONT_DOOR,
    TOOLS,
    arn,
    deployed,
    name_in,
    of_type,
    parameters,
    role_of,
    stack,
    statements,
    variables,
)

KEY = "arn:aws:kms:eu-west-1:123456789012:key/"
OLD, NEW, OTHER = (f"{KEY}{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "123")
ALIAS = "arn:aws:kms:eu-west-1:123456789012:alias/state"
JTI = "0123456789abcdef" * 2
PINNED = f"{OLD.rpartition('/')[2]}:{'A' * 122}=="

CONFIGURATIONS = {
    f"{signing}-{encryption}-{'pinned' if pinned else 'asked'}": {
        "StateSigning": signing,
        "StateEncryption": encryption,
        "StatePublicKeys": pinned,
    }
    for signing, encryption, pinned in product(("direct", "delegated"), ("enabled", "disabled"), ("", PINNED))
}
every_configuration = pytest.mark.parametrize("given", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())


def sign(*keys: str, **more: str) -> dict[str, Any]:
    condition = {"StringEquals": {"kms:SigningAlgorithm": "ECDSA_SHA_256"} | more}
    return {"Effect": "Allow", "Action": "kms:Sign", "Resource": list(keys), "Condition": condition}


def get_public_key(*keys: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "kms:GetPublicKey", "Resource": list(keys)}


def generate_mac(*keys: str) -> dict[str, Any]:
    condition = {"StringEquals": {"kms:MacAlgorithm": "HMAC_SHA_256"}}
    return {"Effect": "Allow", "Action": "kms:GenerateMac", "Resource": list(keys), "Condition": condition}


def on_keys(function: str, **given: str) -> list[dict[str, Any]]:
    return [s for s in statements(function, **given) if "kms:" in str(s["Action"])]


@every_configuration
def test_a_tool_has_exactly_the_key_permissions_of_its_configuration(given):
    expected = [
        sign(arn("StateKey"), **({"kms:MessageType": "RAW"} if given["StateSigning"] == "delegated" else {}))
    ]
    if not given["StatePublicKeys"]:
        expected.append(get_public_key(arn("StateKey")))
    if given["StateEncryption"] == "enabled":
        expected.append(generate_mac(arn("StateEncryptionKey")))
    assert {tool: on_keys(tool, **given) for tool in TOOLS} == dict.fromkeys(TOOLS, expected)


@every_configuration
def test_a_function_without_states_may_not_call_kms(given):
    minting = {role_of(tool) for tool in TOOLS}  # a worker has the role of its tool
    for name, role in of_type("AWS::IAM::Role", **given).items():
        attached = role.get("ManagedPolicyArns", [])
        assert ("${StatePolicy}" in attached) == (name in minting)
        assert "kms:" not in json.dumps(role)
    assert on_keys(FRONT_DOOR, **given) == []
    policies = of_type("AWS::IAM::ManagedPolicy", **given)
    assert {name for name, policy in policies.items() if "kms:" in json.dumps(policy)} == {"StatePolicy"}


ADMINISTRATION = {
    "Sid": "AdministrationThroughIam",
    "Effect": "Allow",
    "Principal": {"AWS": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"},
    "Action": [
        *("kms:DescribeKey", "kms:EnableKey", "kms:DisableKey", "kms:GetKeyPolicy", "kms:PutKeyPolicy"),
        *("kms:ListKeyPolicies", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:TagResource"),
        *("kms:UntagResource", "kms:UpdateKeyDescription", "kms:CreateAlias", "kms:UpdateAlias"),
        *("kms:DeleteAlias", "kms:ListGrants", "kms:RevokeGrant", "kms:ScheduleKeyDeletion"),
        "kms:CancelKeyDeletion",
    ],
    "Resource": "*",
}
NO_GRANTS = {
    "Sid": "NoGrants",
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": "kms:CreateGrant",
    "Resource": "*",
    "Condition": {
        "BoolIfExists": {"kms:GrantIsForAWSResource": "false", "aws:PrincipalIsAWSService": "false"}
    },
}


def use_of_key(name: str, action: str, **condition: str) -> dict[str, Any]:
    """Return the statement of a key's policy for its use."""
    used = {"Sid": name, "Effect": "Allow", "Principal": ADMINISTRATION["Principal"], "Action": action}
    limited = (
        {"Condition": {"StringEquals": {f"kms:{k}": v for k, v in condition.items()}}} if condition else {}
    )
    return {**used, "Resource": "*", **limited}


KEY_POLICIES = {
    "StateKey": [
        ADMINISTRATION,
        use_of_key("SigningThroughIam", "kms:Sign", SigningAlgorithm="ECDSA_SHA_256"),
        use_of_key("ReadingThePublicKeyThroughIam", "kms:GetPublicKey"),
        NO_GRANTS,
    ],
    "StateEncryptionKey": [
        ADMINISTRATION,
        use_of_key("DerivingThroughIam", "kms:GenerateMac", MacAlgorithm="HMAC_SHA_256"),
        NO_GRANTS,
    ],
}

CLOUDFORMATION_CALLS = {
    *("kms:CreateAlias", "kms:DeleteAlias", "kms:DescribeKey", "kms:DisableKey", "kms:EnableKey"),
    *("kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:PutKeyPolicy"),
    *("kms:ScheduleKeyDeletion", "kms:TagResource", "kms:UntagResource", "kms:UpdateAlias"),
    "kms:UpdateKeyDescription",
}
"""On a key without automatic rotation. Source: `handlers` in the registry schemas of AWS::KMS::Key and Alias.
CreateKey, ListKeys and ListAliases are not checked against a key's policy."""


@pytest.mark.parametrize("key", ["StateKey", "StateEncryptionKey"])
def test_a_keys_policy_allows_its_administration_and_its_one_use_through_iam(key):
    assert deployed()[key]["Properties"]["KeyPolicy"]["Statement"] == KEY_POLICIES[key]
    assert {*ADMINISTRATION["Action"]} >= CLOUDFORMATION_CALLS


@pytest.mark.parametrize(
    ("key", "spec", "usage"),
    [
        ("StateKey", "ECC_NIST_P256", "SIGN_VERIFY"),
        ("StateEncryptionKey", "HMAC_256", "GENERATE_VERIFY_MAC"),
    ],
)
def test_a_key_is_retained_unless_the_creation_of_the_stack_fails(key, spec, usage):
    resource = deployed()[key]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert (resource["Properties"]["KeySpec"], resource["Properties"]["KeyUsage"]) == (spec, usage)


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ({}, {"StateKey", "StateEncryptionKey"}),
        ({"StateEncryption": "disabled"}, {"StateKey"}),
        ({"StateKeyArn": OLD}, {"StateEncryptionKey"}),
        ({"StateEncryptionKeyArn": OLD}, {"StateKey"}),
        ({"StateKeyArn": OLD, "StateEncryptionKeyArn": NEW}, set()),
        ({"StateKeyArn": OLD, "StateEncryption": "disabled"}, set()),
    ],
)
def test_the_stack_creates_the_keys_that_are_not_given_each_with_an_alias(given, keys):
    aliases = of_type("AWS::KMS::Alias", **given)
    assert set(of_type("AWS::KMS::Key", **given)) == keys
    assert {name_in(alias["TargetKeyId"]) for alias in aliases.values()} == keys
    assert set(aliases) == {f"{key}Alias" for key in keys}
    assert len({alias["AliasName"] for alias in aliases.values()}) == len(keys)


@every_configuration
def test_every_function_has_the_configuration(given):
    encrypted = given["StateEncryption"] == "enabled"
    expected = {
        "MCP_STATE_SIGNING": given["StateSigning"],
        "MCP_STATE_KEY_ARN": arn("StateKey"),
        "MCP_STATE_ENCRYPTION": given["StateEncryption"],
        "MCP_STATE_ENCRYPTION_KEY_ARN": arn("StateEncryptionKey") if encrypted else None,
        "MCP_STATE_PUBLIC_KEYS": given["StatePublicKeys"],
        "MCP_REVOKED_CERTIFICATES": f"{JTI},{JTI}",
        "MCP_TRUSTED_STATE_KEY_ARNS": "",
        "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": "" if encrypted else None,
    }
    for function in FOLDERS:
        environment = variables(function, RevokedCertificates=f"{JTI}, {JTI}", **given)
        assert {name: environment.get(name) for name in expected} == expected, function


def test_the_outputs_of_the_platform_name_its_keys():
    own = {"StateKeyArn": arn("StateKey"), "StateEncryptionKeyArn": arn("StateEncryptionKey")}
    given = {"StateKeyArn": OLD, "StateEncryptionKeyArn": NEW}
    assert stack().nested["Platform"].outputs.items() >= own.items()
    assert stack(**given).nested["Platform"].outputs.items() >= given.items()
    assert stack(StateEncryption="disabled").nested["Platform"].outputs["StateEncryptionKeyArn"] == "none"


SIGNING = ("StateKey", "StateKeyArn", "TrustedStateKeyArns")
ENCRYPTION = ("StateEncryptionKey", "StateEncryptionKeyArn", "TrustedStateEncryptionKeyArns")
ROTATION = [("", NEW), (NEW, OLD), (NEW, "")]
"""The current key and the trusted keys of each step. Empty means the key of the stack, whose ARN is OLD."""

every_kind = pytest.mark.parametrize("kind", [SIGNING, ENCRYPTION], ids=["signing", "encryption"])
every_step = pytest.mark.parametrize(("used", "trusted"), ROTATION, ids=["trust", "switch", "drop"])


@every_kind
@every_step
def test_each_step_of_a_rotation_changes_two_parameters(kind, used, trusted):
    key, key_arn, trusted_arns = kind
    told = ["MCP_" + re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in (key_arn, trusted_arns)]
    given = {key_arn: used, trusted_arns: trusted}
    in_use = used or arn(key)
    accepted = [in_use, *([trusted] if trusted else [])]

    assert (key in deployed(**given)) == (not used)
    for tool in TOOLS:
        assert [variables(tool, **given)[name] for name in told] == [in_use, trusted]
        signs, reads, derives = on_keys(tool, **given)
        if kind is SIGNING:
            assert (signs, reads) == (sign(*accepted), get_public_key(*accepted))
        else:
            assert derives == generate_mac(*accepted)


def test_several_keys_can_be_trusted():
    trusted = f"{NEW}, {OTHER}"
    given = {"TrustedStateKeyArns": trusted, "TrustedStateEncryptionKeyArns": trusted}
    _, reads, derives = on_keys(TOOLS[0], **given)
    assert reads == get_public_key(arn("StateKey"), NEW, OTHER)
    assert derives == generate_mac(arn("StateEncryptionKey"), NEW, OTHER)
    assert variables(TOOLS[0], **given)["MCP_TRUSTED_STATE_KEY_ARNS"] == f"{NEW},{OTHER}"


def test_without_encryption_no_encryption_key_is_used():
    keys = {"StateEncryptionKeyArn": OLD, "TrustedStateEncryptionKeyArns": NEW}
    given = {"StateEncryption": "disabled", **keys}
    environment = variables(TOOLS[0], **given)
    assert "MCP_STATE_ENCRYPTION_KEY_ARN" not in environment
    assert "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS" not in environment
    assert not {OLD, NEW} & set(re.findall(r"arn:[^\"]+", json.dumps(on_keys(TOOLS[0], **given))))
    assert stack(**given).broken_rules == []


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *product(
            ("StateKeyArn", "StateEncryptionKeyArn", "TrustedStateKeyArns", "TrustedStateEncryptionKeyArns"),
            (ALIAS, "alias/state", OLD.rpartition("/")[2], OLD.replace("kms", "lambda"), f"{OLD} {NEW}"),
        ),
        ("StateKeyArn", f"{OLD},{NEW}"),
        ("TrustedStateKeyArns", f"{OLD},{ALIAS}"),
        ("StatePublicKeys", "A" * 122 + "=="),
        ("StatePublicKeys", f"{OLD}:{'A' * 122}=="),
        ("StatePublicKeys", f"{PINNED},{PINNED[:-4]}"),
        ("RevokedCertificates", JTI[:-1]),
        ("RevokedCertificates", "eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiJhIn0.c2ln"),
        ("StateSigning", "delegate"),
        ("StateEncryption", "true"),
        ("EndpointUri", "http://tools.example/mcp"),
        ("EndpointUri", "https://tools.example/mcp#tools"),
    ],
)
def test_an_implausible_value_is_refused(parameter, value):
    with pytest.raises(Refused):
        parameters(**{parameter: value})


@pytest.mark.parametrize(
    "key",
    [
        OLD,
        f"{KEY}mrk-{'0' * 32}",
        OLD.replace("arn:aws:kms:eu-west-1", "arn:aws-us-gov:kms:us-gov-west-1"),
        OLD.replace("arn:aws:kms:eu-west-1", "arn:aws-cn:kms:cn-north-1"),
    ],
)
def test_keys_of_every_partition_and_multi_region_keys_are_accepted(key):
    assert parameters(StateKeyArn=key, TrustedStateKeyArns=f"{key}, {NEW}")["StateKeyArn"] == key
