"""A value of each parameter and option that is not its default."""

KEY = "arn:aws:kms:eu-west-1:123456789012:key/"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"
ORIGINS = "https://app.example,https://other.example"

ANOTHER = {
    "PythonRuntime": "python3.12",
    "Architecture": "x86_64",
    "AuthMode": "iam",
    "TokenIssuer": "https://other.example",
    "TokenJwksUri": "https://other.example/keys",
    "TokenAlgorithms": "ES256,EdDSA",
    "TokenType": "at+jwt",
    "TokenAudience": "one,other",
    "ScopePrefix": "api://app/",
    "IamPrincipal": "session",
    "LambdaAuthorizerArn": "arn:aws:lambda:eu-west-1:123456789012:function:other",
    "PrincipalContextKey": "user",
    "ScopeContextKey": "scopes",
    "AllowedOrigins": ORIGINS,
    "EndpointUri": "https://other.example/mcp",
    "DomainName": "tools.example",
    "CertificateArn": "arn:aws:acm:eu-west-1:123456789012:certificate/1d2c3b4a",
    "HostedZoneId": "Z0123456789",
    "ServerCard": "com.example/tools",
    "ThrottlingRate": "7",
    "ThrottlingBurst": "9",
    "StateSigning": "delegated",
    "StateEncryption": "disabled",
    "StateKeyArn": f"{KEY}1",
    "TrustedStateKeyArns": f"{KEY}2,{KEY}3",
    "StateEncryptionKeyArn": f"{KEY}4",
    "TrustedStateEncryptionKeyArns": f"{KEY}5",
    "StatePublicKeys": f"1:{'A' * 122}==,2:{'A' * 122}==",
    "RevokedCertificates": "0123456789abcdef" * 2,
    "TaskDelivery": "queue",
    "MaxOpenTasks": "20",
    "AlarmTopicArn": TOPIC,
    "LogRetentionDays": "365",
    "AuditLog": "hash",
    "AuditRetentionDays": "731",
    "XRay": "enabled",
    "DeletionProtection": "enabled",
    "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
    "RolePath": "/tools/",
    "Vpc": "enabled",
    "DataKeyArn": f"{KEY}6",
}

EDGE_HOST = {"ApiHost": "api.example"}
EDGE_DOMAIN = {
    "DomainName": "tools.example",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1d2c3b4a",
}
EDGE_WEB_ACL = {"WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/mine/1d2c3b4a"}
"""The options of platform/edge/template.yaml, whose Region is always us-east-1."""
