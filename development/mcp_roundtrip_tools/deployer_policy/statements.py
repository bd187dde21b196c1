"""IAM statements, and the ARNs of what an application has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

STACK: Final = "${ApplicationStack}"


def _arn(
    service: str, resource: str, *, region: str = "${AWS::Region}", account: str = "${AWS::AccountId}"
) -> str:
    return f"arn:${{AWS::Partition}}:{service}:{region}:{account}:{resource}"


FUNCTION: Final = _arn("lambda", f"function:{STACK}_*")
LAYER: Final = (_arn("lambda", f"layer:{STACK}"), _arn("lambda", f"layer:{STACK}:*"))
MAPPING: Final = _arn("lambda", "event-source-mapping:*")
ROLE: Final = _arn("iam", f"role${{RolePath}}{STACK}-*", region="")
POLICY: Final = _arn("iam", f"policy${{RolePath}}{STACK}-*", region="")
LOG_GROUPS: Final = (
    _arn("logs", f"log-group:{STACK}-*"),
    _arn("logs", f"log-group:/aws/vendedlogs/mcp-roundtrip/{STACK}"),
    _arn("logs", f"log-group:/aws/vendedlogs/mcp-roundtrip/{STACK}:*"),
)
ALARM: Final = _arn("cloudwatch", f"alarm:{STACK}-*")
DASHBOARD: Final = _arn("cloudwatch", f"dashboard/{STACK}*", region="")
NESTED_STACKS: Final = _arn("cloudformation", f"stack/{STACK}-*/*")
SAM_TRANSFORM: Final = _arn("cloudformation", "transform/Serverless-2016-10-31", account="aws")
TABLE: Final = _arn("dynamodb", f"table/{STACK}-*")
QUEUES: Final = (_arn("sqs", f"{STACK}-*"), _arn("sqs", f"{STACK}_*"))
KEYS: Final = _arn("kms", "key/*")
ALIASES: Final = _arn("kms", f"alias/{STACK}-*")
APIS: Final = tuple(_arn("apigateway", each, account="") for each in ("/apis", "/apis/*", "/tags/*"))
DOMAINS: Final = tuple(_arn("apigateway", each, account="") for each in ("/domainnames", "/domainnames/*"))
SETTINGS: Final = _arn("ssm", f"parameter/mcp-roundtrip/{STACK}/settings")
SETTINGS_VERSIONS: Final = _arn("appconfig", "application/*")
DEPLOYMENTS: Final = (
    _arn("codedeploy", f"application:{STACK}-*"),
    _arn("codedeploy", f"deploymentgroup:{STACK}-*/{STACK}-*"),
)
DEPLOYMENT_CONFIGURATIONS: Final = _arn("codedeploy", "deploymentconfig:*")
ZONE: Final = _arn("route53", "hostedzone/${HostedZoneId}", region="", account="")
CHANGES: Final = _arn("route53", "change/*", region="", account="")
API_GATEWAY_ROLE: Final = _arn("iam", "role/aws-service-role/ops.apigateway.amazonaws.com/*", region="")


@dataclass(frozen=True, slots=True)
class Needed:
    """Actions on resources. Resources and conditions are texts for Fn::Sub in the pipeline's template.yaml.

    `only_if` is a condition of that template. `conditions` are members of the statement's Condition.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None
    only_if: str = ""


def allow(
    service: str,
    actions: str,
    resources: tuple[str, ...],
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None,
    only_if: str = "",
) -> Needed:
    """Return the permission for the actions of a service, whose names are separated by spaces."""
    return Needed(tuple(f"{service}:{action}" for action in actions.split()), resources, conditions, only_if)


OF_KEYS: Final = {"StringEquals": {"kms:KeySpec": ("ECC_NIST_P256", "HMAC_256")}}
OF_MAPPINGS: Final = {"ArnLike": {"lambda:FunctionArn": (FUNCTION,)}}
OF_OWN_POLICIES: Final = {"ArnLike": {"iam:PolicyARN": (POLICY,)}}
OF_BOUNDED: Final = {"StringEquals": {"iam:PermissionsBoundary": ("${PermissionsBoundaryArn}",)}}
THROUGH_DYNAMODB: Final = {"StringEquals": {"kms:ViaService": ("dynamodb.${AWS::Region}.amazonaws.com",)}}
