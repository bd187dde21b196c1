"""Environments with every setting, and with wrong ones."""

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

JWT = {**BEARER, "MCP_AUTH_MODE": "jwt"}
IAM = {"MCP_AUTH_MODE": "iam"}
WITH_TABLE = {"MCP_TASK_TABLE": "tasks"}
QUEUE_ARN = "arn:aws:sqs:eu-west-1:123456789012:shop_tasks"

_WRONG_VALUES: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    ({}, "MCP_AUTH_MODE", ("", "open")),
    (BEARER, "MCP_TOKEN_ISSUER", ("", "id.test", "http://id.test", "http://localhost.test")),
    (BEARER, "MCP_TOKEN_ISSUER", ("https://id.test?tenant=1", "https://id.test#", "https://a@id.test")),
    (
        BEARER,
        "MCP_AUDIENCE",
        ("x.test/mcp", "http://x.test/mcp", "https://x.test/mcp#", "https://x.test/mcp?a"),
    ),
    (BEARER | WITH_TABLE, "MCP_AUDIENCE", ("",)),
    (JWT | WITH_TABLE, "MCP_AUDIENCE", ("",)),
    (BEARER, "MCP_TOKEN_ALGORITHMS", ("none", "RS256,HS256", "rs256")),
    (JWT, "MCP_TOKEN_ALGORITHMS", ("ES256",)),
    (LAMBDA, "MCP_TOKEN_ALGORITHMS", ("ES256",)),
    (BEARER, "MCP_TOKEN_TYPE", ("JWT",)),
    (LAMBDA, "MCP_TOKEN_TYPE", ("at+jwt",)),
    (JWT, "MCP_TOKEN_AUDIENCE", ("api",)),
    (BEARER, "MCP_TOKEN_JWKS_URI", ("http://id.test/keys", "file:///keys")),
    (JWT, "MCP_TOKEN_JWKS_URI", ("https://id.test/keys",)),
    (BEARER, "MCP_SCOPE_PREFIX", ("a b", 'a"', "é/")),
    (IAM, "MCP_SCOPE_PREFIX", ("api/",)),
    (BEARER, "MCP_IAM_PRINCIPAL", ("session",)),
    (IAM, "MCP_IAM_PRINCIPAL", ("user",)),
    (MINIMAL, "MCP_SCOPE_CONTEXT_KEY", ("scope",)),
    (
        MINIMAL,
        "MCP_ALLOWED_ORIGINS",
        ("*", "https://a.test/", "a.test", "https://a.test,null", "https://*.a.test"),
    ),
    (MINIMAL, "MCP_AWS_CLIENT", ("botocore",)),
    (MINIMAL, "MCP_TASK_WORKER", ("worker", QUEUE_ARN)),
    (MINIMAL, "MCP_TASK_QUEUE", (QUEUE_ARN,)),
    (MINIMAL, "MCP_TASK_DELIVERY", ("sqs",)),
    (MINIMAL, "MCP_TASK_LEASE_S", ("14", "901")),
    (MINIMAL, "MCP_MAX_OPEN_TASKS", ("-1", "101")),
    (MINIMAL, "MCP_AUDIT", ("hash", "everything:shop-audit", "principal:no such name")),
    (
        MINIMAL,
        "MCP_MAX_ROUNDS",
        ("0", "many", "5.0", "1e1", "+5", "5_0", "0x5", "null", "true", "1000000000"),
    ),
    (MINIMAL, "MCP_MAX_BODY_BYTES", ("6291457",)),
    (MINIMAL, "MCP_MAX_JSON_VALUES", ("0",)),
    (MINIMAL, "MCP_SERVER_CARD", ("1", "orders", "com.example/a/b", "com.example/", "com.example/a b")),
    (MINIMAL, "MCP_SERVER_CARD", ("a/" + "b" * 199,)),
    (MINIMAL, "MCP_ROUND_TTL_S", ("9" * 5_000, "3601")),
    ({**MINIMAL, "MCP_STATE_SIGNING": "delegated"}, "MCP_ROUND_TTL_S", ("1201",)),
    (MINIMAL, "MCP_STATE_SIGNING", ("indirect", "direct - at `$.issuer`")),
    (MINIMAL, "MCP_STATE_ENCRYPTION", ("off",)),
    (MINIMAL, "MCP_STATE_PUBLIC_KEYS", ("mrk-1:é", "TUZr", ":TUZr", "mrk-1:", "mrk-1:not Base64")),
    (MINIMAL, "MCP_REVOKED_CERTIFICATES", (ONE.upper()[:31] + "F", ONE[:31])),
    (MINIMAL, "MCP_OWNERS", ("{", "[]", '{"a": 1}', "find", "*_*", "stack_*/live", "https://x.test/*")),
]
"""The other settings, a setting, and its wrong values."""

WRONG: list[tuple[dict[str, str], str]] = [
    *(({**others, name: value}, name) for others, name, values in _WRONG_VALUES for value in values),
    ({}, "MCP_AUTH_MODE"),
    ({**LAMBDA, **IAM}, "MCP_PRINCIPAL_CONTEXT_KEY"),
    ({**BEARER, "MCP_AUTH_MODE": "none"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, **IAM}, "MCP_TOKEN_ISSUER"),
    ({**MINIMAL, "MCP_TASK_DELIVERY": "queue", "MCP_TASK_WORKER": WORKER}, "MCP_TASK_QUEUE"),
    ({**MINIMAL, "MCP_AUDIT": "hash:shop-audit"}, "MCP_ISSUER"),
    *(
        ({**MINIMAL, "MCP_STATE_ENCRYPTION": "disabled", name: "arn:a"}, "MCP_STATE_ENCRYPTION")
        for name in ("MCP_STATE_ENCRYPTION_KEY_ARN", "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS")
    ),
]
"""Environments and the setting in the error."""

UNRESOLVED = ("", "${Platform.Outputs.Settings}")
"""What sam local passes for an output of a nested stack, with !GetAtt and with !Sub."""
