"""Environments with every setting, and with wrong ones."""

from __future__ import annotations

ONE, TWO = "01" * 16, "ef" * 16
WORKER = "arn:aws:lambda:eu-west-1:123456789012:function:shop_worker:7"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/shop_tasks"
MINIMAL = {"MCP_AUTH_MODE": "jwt"}
LAMBDA = {
    "MCP_AUTH_MODE": "lambda",
    "MCP_PRINCIPAL_CONTEXT_KEY": "user",
    "MCP_SCOPE_CONTEXT_KEY": "scope",
}
BEARER = {
    "MCP_AUTH_MODE": "bearer",
    "MCP_TOKEN_ISSUER": "https://id.test/",
    "MCP_AUDIENCE": "https://x.test/mcp",
}

ALL_BUT_THOSE_OF_OTHER_MODES = {
    "MCP_AUTH_MODE": "bearer",
    "MCP_TOKEN_ISSUER": "https://id.test/tenant",
    "MCP_TOKEN_JWKS_URI": "https://id.test/keys?p=policy",
    "MCP_TOKEN_ALGORITHMS": "ES256, PS512",
    "MCP_TOKEN_TYPE": "at+jwt",
    "MCP_TOKEN_AUDIENCE": "https://x.test/mcp, api://orders",
    "MCP_SCOPE_PREFIX": "{audience}/",
    "MCP_ISSUER": "urn:x",
    "MCP_AUDIENCE": "https://x.test/mcp",
    "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:1:key/a",
    "MCP_TRUSTED_STATE_KEY_ARNS": "arn:b, arn:c",
    "MCP_STATE_PUBLIC_KEYS": "mrk-1:TUZr, 2:TUY=",
    "MCP_STATE_SIGNING": "delegated",
    "MCP_REVOKED_CERTIFICATES": f"{ONE},{TWO}",
    "MCP_STATE_ENCRYPTION": "enabled",
    "MCP_STATE_ENCRYPTION_KEY_ARN": "arn:d",
    "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": "arn:e",
    "MCP_AWS_CLIENT": "boto3",
    "MCP_ALLOWED_ORIGINS": "https://a.test,https://b.test",
    "MCP_OWNERS": '{"weather": "fn"}',
    "MCP_TASK_TABLE": "tasks",
    "MCP_TASK_WORKER": WORKER,
    "MCP_TASK_QUEUE": QUEUE,
    "MCP_TASK_DELIVERY": "queue",
    "MCP_TASK_LEASE_S": "15",
    "MCP_MAX_OPEN_TASKS": "0",
    "MCP_MAX_ROUNDS": "5",
    "MCP_ROUND_TTL_S": "60",
    "MCP_FLOW_TTL_S": "120",
    "MCP_MAX_BODY_BYTES": "6291456",
    "MCP_MAX_JSON_VALUES": "100000",
    "MCP_AUDIT": "hash:shop-AuditLogs-1x/y",
    "MCP_TRACES": "on",
    "MCP_SERVER_CARD": "com.example/orders",
}
EVERY_SETTING = [
    ALL_BUT_THOSE_OF_OTHER_MODES,
    LAMBDA,
    {"MCP_AUTH_MODE": "iam", "MCP_IAM_PRINCIPAL": "session"},
]
"""Environments that together have every setting."""

WRONG: list[tuple[dict[str, str], str]] = [
    ({}, "MCP_AUTH_MODE"),
    ({"MCP_AUTH_MODE": ""}, "MCP_AUTH_MODE"),
    ({"MCP_AUTH_MODE": "open"}, "MCP_AUTH_MODE"),
    ({**BEARER, "MCP_TOKEN_ISSUER": ""}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_AUDIENCE": "", "MCP_TASK_TABLE": "tasks"}, "MCP_AUDIENCE"),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_AUDIENCE": "", "MCP_TASK_TABLE": "tasks"}, "MCP_AUDIENCE"),
    *(
        ({**BEARER, "MCP_AUDIENCE": audience}, "MCP_AUDIENCE")
        for audience in ("x.test/mcp", "http://x.test/mcp", "https://x.test/mcp#", "https://x.test/mcp?a")
    ),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_ALGORITHMS": "ES256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**LAMBDA, "MCP_TOKEN_ALGORITHMS": "ES256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**LAMBDA, "MCP_TOKEN_TYPE": "at+jwt"}, "MCP_TOKEN_TYPE"),
    ({**BEARER, "MCP_TOKEN_TYPE": "JWT"}, "MCP_TOKEN_TYPE"),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_AUDIENCE": "api"}, "MCP_TOKEN_AUDIENCE"),
    ({"MCP_AUTH_MODE": "iam", "MCP_SCOPE_PREFIX": "api/"}, "MCP_SCOPE_PREFIX"),
    *(({**BEARER, "MCP_SCOPE_PREFIX": prefix}, "MCP_SCOPE_PREFIX") for prefix in ("a b", 'a"', "é/")),
    ({**BEARER, "MCP_IAM_PRINCIPAL": "session"}, "MCP_IAM_PRINCIPAL"),
    ({"MCP_AUTH_MODE": "iam", "MCP_IAM_PRINCIPAL": "user"}, "MCP_IAM_PRINCIPAL"),
    (
        {**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_JWKS_URI": "https://id.test/keys"},
        "MCP_TOKEN_JWKS_URI",
    ),
    ({**LAMBDA, "MCP_AUTH_MODE": "iam"}, "MCP_PRINCIPAL_CONTEXT_KEY"),
    *(
        ({**MINIMAL, "MCP_ALLOWED_ORIGINS": origins}, "MCP_ALLOWED_ORIGINS")
        for origins in ("*", "https://a.test/", "a.test", "https://a.test,null", "https://*.a.test")
    ),
    ({**MINIMAL, "MCP_SCOPE_CONTEXT_KEY": "scope"}, "MCP_SCOPE_CONTEXT_KEY"),
    ({**BEARER, "MCP_AUTH_MODE": "none"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_AUTH_MODE": "iam"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "http://id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "http://localhost.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://id.test?tenant=1"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://id.test#"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://a@id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_JWKS_URI": "http://id.test/keys"}, "MCP_TOKEN_JWKS_URI"),
    ({**BEARER, "MCP_TOKEN_JWKS_URI": "file:///keys"}, "MCP_TOKEN_JWKS_URI"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "none"}, "MCP_TOKEN_ALGORITHMS"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "RS256,HS256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "rs256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**MINIMAL, "MCP_AWS_CLIENT": "botocore"}, "MCP_AWS_CLIENT"),
    *(
        ({**MINIMAL, "MCP_TASK_WORKER": worker}, "MCP_TASK_WORKER")
        for worker in ("worker", "arn:aws:sqs:eu-west-1:123456789012:shop_tasks")
    ),
    ({**MINIMAL, "MCP_TASK_QUEUE": "arn:aws:sqs:eu-west-1:123456789012:shop_tasks"}, "MCP_TASK_QUEUE"),
    ({**MINIMAL, "MCP_TASK_DELIVERY": "sqs"}, "MCP_TASK_DELIVERY"),
    ({**MINIMAL, "MCP_TASK_DELIVERY": "queue", "MCP_TASK_WORKER": WORKER}, "MCP_TASK_QUEUE"),
    ({**MINIMAL, "MCP_TASK_LEASE_S": "14"}, "MCP_TASK_LEASE_S"),
    ({**MINIMAL, "MCP_TASK_LEASE_S": "901"}, "MCP_TASK_LEASE_S"),
    ({**MINIMAL, "MCP_MAX_OPEN_TASKS": "-1"}, "MCP_MAX_OPEN_TASKS"),
    ({**MINIMAL, "MCP_AUDIT": "hash"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "everything:shop-audit"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "principal:no such name"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "hash:shop-audit"}, "MCP_ISSUER"),
    ({**MINIMAL, "MCP_MAX_OPEN_TASKS": "101"}, "MCP_MAX_OPEN_TASKS"),
    ({**MINIMAL, "MCP_MAX_ROUNDS": "0"}, "MCP_MAX_ROUNDS"),
    *(
        ({**MINIMAL, "MCP_MAX_ROUNDS": number}, "MCP_MAX_ROUNDS")
        for number in ("many", "5.0", "1e1", "+5", "5_0", "0x5", "null", "true", "1000000000")
    ),
    ({**MINIMAL, "MCP_MAX_BODY_BYTES": "6291457"}, "MCP_MAX_BODY_BYTES"),
    ({**MINIMAL, "MCP_MAX_JSON_VALUES": "0"}, "MCP_MAX_JSON_VALUES"),
    *(
        ({**MINIMAL, "MCP_SERVER_CARD": name}, "MCP_SERVER_CARD")
        for name in ("1", "orders", "com.example/a/b", "com.example/", "com.example/a b", "a/" + "b" * 199)
    ),
    ({**MINIMAL, "MCP_ROUND_TTL_S": "9" * 5_000}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_ENCRYPTION": "off"}, "MCP_STATE_ENCRYPTION"),
    (
        {
            **MINIMAL,
            "MCP_STATE_ENCRYPTION": "disabled",
            "MCP_STATE_ENCRYPTION_KEY_ARN": "arn:a",
        },
        "MCP_STATE_ENCRYPTION",
    ),
    (
        {
            **MINIMAL,
            "MCP_STATE_ENCRYPTION": "disabled",
            "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": "arn:a",
        },
        "MCP_STATE_ENCRYPTION",
    ),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:é"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_REVOKED_CERTIFICATES": ONE.upper()[:31] + "F"}, "MCP_REVOKED_CERTIFICATES"),
    ({**MINIMAL, "MCP_REVOKED_CERTIFICATES": ONE[:31]}, "MCP_REVOKED_CERTIFICATES"),
    ({**MINIMAL, "MCP_ROUND_TTL_S": "3601"}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_SIGNING": "indirect"}, "MCP_STATE_SIGNING"),
    ({**MINIMAL, "MCP_STATE_SIGNING": "direct - at `$.issuer`"}, "MCP_STATE_SIGNING"),
    ({**MINIMAL, "MCP_STATE_SIGNING": "delegated", "MCP_ROUND_TTL_S": "1201"}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "TUZr"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": ":TUZr"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:not Base64"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_OWNERS": "{"}, "MCP_OWNERS"),
    *(
        ({**MINIMAL, "MCP_OWNERS": owners}, "MCP_OWNERS")
        for owners in ("[]", '{"a": 1}', "find", "*_*", "stack_*/live", "https://x.test/*")
    ),
]
"""Environments and the setting in the error."""

UNRESOLVED = ("", "${Platform.Outputs.Settings}")
"""What sam local passes for an output of a nested stack, with !GetAtt and with !Sub (tests/sam)."""
