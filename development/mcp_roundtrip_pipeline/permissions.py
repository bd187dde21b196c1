"""The permissions that CloudFormation needs for each type of resource in template.yaml.

From the `handlers` of each type in CloudFormation's registry (`aws cloudformation describe-type`), without
those of properties that the template does not use, such as replicas and code signing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_pipeline.resources import (
    ALARM,
    ALIASES,
    API_GATEWAY_ROLE,
    APIS,
    CHANGES,
    DASHBOARD,
    DEPLOYMENT_CONFIGURATIONS,
    DEPLOYMENTS,
    DOMAINS,
    FUNCTION,
    KEYS,
    LAYER,
    LOG_GROUPS,
    MAPPING,
    NESTED_STACKS,
    POLICY,
    QUEUES,
    ROLE,
    SAM_TRANSFORM,
    SETTINGS,
    TABLE,
    ZONE,
)


@dataclass(frozen=True, slots=True)
class Needed:
    """Actions on resources. Resources and conditions are texts for Fn::Sub in pipeline/template.yaml.

    `only_if` is a condition of that template. `conditions` are members of the statement's Condition.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, str | tuple[str, ...]]] | None = None
    only_if: str = ""


def _actions(service: str, names: str) -> tuple[str, ...]:
    return tuple(f"{service}:{name}" for name in names.split())


OF_KEYS: Final = {"StringEquals": {"kms:KeySpec": ("ECC_NIST_P256", "HMAC_256")}}
OF_MAPPINGS: Final = {"ArnLike": {"lambda:FunctionArn": FUNCTION}}
OF_OWN_POLICIES: Final = {"ArnLike": {"iam:PolicyARN": POLICY}}
OF_BOUNDED: Final = {"StringEquals": {"iam:PermissionsBoundary": "${PermissionsBoundaryArn}"}}
THROUGH_DYNAMODB: Final = {"StringEquals": {"kms:ViaService": "dynamodb.${AWS::Region}.amazonaws.com"}}

_ROLE_PERMISSIONS = (
    Needed(
        _actions(
            "iam",
            "DeleteRole DeleteRolePolicy DetachRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies "
            "ListRolePolicies ListRoleTags TagRole UntagRole UpdateAssumeRolePolicy "
            "UpdateRole UpdateRoleDescription",
        ),
        (ROLE,),
    ),
    # With a boundary, a role that this role creates or changes can do no more than the boundary.
    Needed(
        _actions("iam", "CreateRole PutRolePermissionsBoundary PutRolePolicy"),
        (ROLE,),
        OF_BOUNDED,
        only_if="HasPermissionsBoundary",
    ),
    Needed(
        _actions("iam", "CreateRole DeleteRolePermissionsBoundary PutRolePolicy"),
        (ROLE,),
        only_if="HasNoPermissionsBoundary",
    ),
    Needed(
        _actions("iam", "AttachRolePolicy"),
        (ROLE,),
        {**OF_OWN_POLICIES, **OF_BOUNDED},
        only_if="HasPermissionsBoundary",
    ),
    Needed(_actions("iam", "AttachRolePolicy"), (ROLE,), OF_OWN_POLICIES, only_if="HasNoPermissionsBoundary"),
)

_PASS_ROLE = Needed(
    _actions("iam", "PassRole"),
    (ROLE,),
    {"StringEquals": {"iam:PassedToService": ("lambda.amazonaws.com", "codedeploy.amazonaws.com")}},
)

_VERBS = "DELETE GET PATCH POST PUT"

_API = (Needed(_actions("apigateway", f"{_VERBS} TagResource UntagResource"), APIS),)

_ALARM = (
    Needed(
        _actions("cloudwatch", "DeleteAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource"),
        (ALARM,),
    ),
    Needed(_actions("cloudwatch", "DescribeAlarms"), ("*",)),
)

PERMISSIONS: Final[Mapping[str, tuple[Needed, ...]]] = {
    "AWS::Lambda::Function": (
        Needed(
            _actions(
                "lambda",
                "CreateFunction DeleteFunction DeleteFunctionConcurrency GetFunction "
                "GetFunctionCodeSigningConfig GetFunctionConfiguration GetFunctionRecursionConfig "
                "GetFunctionScalingConfig GetRuntimeManagementConfig ListTags PutFunctionConcurrency "
                "PutFunctionRecursionConfig TagResource UntagResource UpdateFunctionCode "
                "UpdateFunctionConfiguration",
            ),
            (FUNCTION,),
        ),
        Needed(_actions("lambda", "GetLayerVersion"), LAYER[1:]),
        Needed(_actions("s3", "GetObject GetObjectVersion"), ("${ArtefactBucket.Arn}/*",)),
        Needed(
            _actions("ec2", "DescribeNetworkInterfaces DescribeSecurityGroups DescribeSubnets DescribeVpcs"),
            ("*",),
        ),
        _PASS_ROLE,
    ),
    "AWS::Lambda::Version": (
        Needed(
            _actions(
                "lambda",
                "DeleteFunction GetFunctionConfiguration GetFunctionScalingConfig "
                "GetProvisionedConcurrencyConfig GetRuntimeManagementConfig ListVersionsByFunction "
                "PublishVersion",
            ),
            (FUNCTION,),
        ),
    ),
    "AWS::Lambda::Alias": (
        Needed(
            _actions(
                "lambda",
                "CreateAlias DeleteAlias DeleteProvisionedConcurrencyConfig GetAlias "
                "GetProvisionedConcurrencyConfig PutProvisionedConcurrencyConfig UpdateAlias",
            ),
            (FUNCTION,),
        ),
        Needed(
            _actions("codedeploy", "CreateDeployment GetDeployment GetDeploymentGroup StopDeployment"),
            DEPLOYMENTS,
        ),
        Needed(_actions("codedeploy", "GetDeploymentConfig"), (DEPLOYMENT_CONFIGURATIONS,)),
    ),
    "AWS::Lambda::Permission": (
        Needed(_actions("lambda", "AddPermission GetPolicy RemovePermission"), (FUNCTION,)),
        Needed(
            _actions("lambda", "AddPermission GetPolicy RemovePermission"),
            ("${LambdaAuthorizerArn}",),
            only_if="HasLambdaAuthorizer",
        ),
    ),
    "AWS::Lambda::EventSourceMapping": (
        Needed(
            _actions(
                "lambda",
                "CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping "
                "UpdateEventSourceMapping",
            ),
            ("*",),
            OF_MAPPINGS,
        ),
        Needed(_actions("lambda", "ListTags TagResource UntagResource"), (MAPPING,)),
    ),
    "AWS::Lambda::LayerVersion": (
        Needed(_actions("lambda", "DeleteLayerVersion GetLayerVersion PublishLayerVersion"), LAYER),
        Needed(_actions("s3", "GetObject GetObjectVersion"), ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::IAM::Role": _ROLE_PERMISSIONS,
    "AWS::IAM::ManagedPolicy": (
        Needed(
            _actions(
                "iam",
                "CreatePolicy CreatePolicyVersion DeletePolicy DeletePolicyVersion GetPolicy "
                "GetPolicyVersion ListEntitiesForPolicy ListPolicyVersions",
            ),
            (POLICY,),
        ),
    ),
    "AWS::Logs::LogGroup": (
        Needed(
            _actions(
                "logs",
                "AssociateKmsKey CreateLogGroup DeleteLogGroup DeleteRetentionPolicy "
                "DescribeIndexPolicies DisassociateKmsKey GetDataProtectionPolicy ListTagsForResource "
                "PutRetentionPolicy TagResource UntagResource",
            ),
            LOG_GROUPS,
        ),
        Needed(_actions("logs", "DescribeLogGroups DescribeResourcePolicies"), ("*",)),
    ),
    "AWS::Logs::MetricFilter": (
        Needed(_actions("logs", "DeleteMetricFilter DescribeMetricFilters PutMetricFilter"), LOG_GROUPS),
    ),
    # Only with nested stacks (docs/guides/adding-a-tool.md). Their templates are transformed, too.
    "AWS::CloudFormation::Stack": (
        Needed(
            _actions(
                "cloudformation",
                "CreateStack DeleteStack DescribeStacks GetStackPolicy GetTemplate ListStackResources "
                "SetStackPolicy TagResource UntagResource UpdateStack UpdateTerminationProtection",
            ),
            (NESTED_STACKS,),
        ),
        Needed(_actions("cloudformation", "CreateChangeSet"), (SAM_TRANSFORM,)),
        Needed(_actions("s3", "GetObject GetObjectVersion"), ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::CloudWatch::Alarm": _ALARM,
    "AWS::CloudWatch::Dashboard": (
        Needed(
            _actions(
                "cloudwatch",
                "DeleteDashboards GetDashboard ListTagsForResource PutDashboard TagResource UntagResource",
            ),
            (DASHBOARD,),
        ),
    ),
    "AWS::DynamoDB::Table": (
        Needed(
            _actions(
                "dynamodb",
                "CreateTable DeleteTable DescribeContinuousBackups DescribeContributorInsights "
                "DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive GetResourcePolicy "
                "ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable "
                "UpdateTimeToLive",
            ),
            (TABLE,),
        ),
        # Without the condition, the role could read what the key encrypts, and give others a grant.
        Needed(
            _actions("kms", "CreateGrant Decrypt Encrypt GenerateDataKey RevokeGrant"),
            ("${DataKeyArn}",),
            THROUGH_DYNAMODB,
            only_if="HasDataKey",
        ),
        Needed(_actions("kms", "DescribeKey"), ("${DataKeyArn}",), only_if="HasDataKey"),
    ),
    "AWS::SQS::Queue": (
        Needed(
            _actions(
                "sqs",
                "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags SetQueueAttributes "
                "TagQueue UntagQueue",
            ),
            QUEUES,
        ),
    ),
    "AWS::KMS::Key": (
        Needed(_actions("kms", "CreateKey"), ("*",), OF_KEYS),
        Needed(
            _actions(
                "kms",
                "DescribeKey DisableKey EnableKey GetKeyPolicy GetKeyRotationStatus ListResourceTags "
                "PutKeyPolicy ScheduleKeyDeletion TagResource UntagResource UpdateKeyDescription",
            ),
            (KEYS,),
            OF_KEYS,
        ),
    ),
    "AWS::KMS::Alias": (
        Needed(_actions("kms", "CreateAlias DeleteAlias UpdateAlias"), (ALIASES,)),
        Needed(_actions("kms", "CreateAlias DeleteAlias UpdateAlias"), (KEYS,), OF_KEYS),
        Needed(_actions("kms", "ListAliases"), ("*",)),
    ),
    "AWS::ApiGatewayV2::Api": _API,
    "AWS::ApiGatewayV2::Authorizer": _API,
    "AWS::ApiGatewayV2::Integration": _API,
    "AWS::ApiGatewayV2::Route": _API,
    "AWS::ApiGatewayV2::Stage": (
        *_API,
        # Access logs: API Gateway developer guide, "Configure logging for HTTP APIs".
        Needed(
            _actions(
                "logs",
                "CreateLogDelivery DeleteLogDelivery DescribeLogGroups DescribeResourcePolicies "
                "GetLogDelivery ListLogDeliveries PutResourcePolicy UpdateLogDelivery",
            ),
            ("*",),
        ),
    ),
    "AWS::ApiGatewayV2::DomainName": (
        Needed(_actions("apigateway", _VERBS), (*DOMAINS, APIS[2])),
        Needed(
            _actions("iam", "CreateServiceLinkedRole"),
            (API_GATEWAY_ROLE,),
            {"StringEquals": {"iam:AWSServiceName": "ops.apigateway.amazonaws.com"}},
        ),
    ),
    "AWS::ApiGatewayV2::ApiMapping": (Needed(_actions("apigateway", _VERBS), DOMAINS),),
    "AWS::Route53::RecordSet": (
        Needed(
            _actions("route53", "ChangeResourceRecordSets GetHostedZone ListResourceRecordSets"),
            (ZONE,),
            only_if="HasHostedZone",
        ),
        Needed(_actions("route53", "GetChange"), (CHANGES,), only_if="HasHostedZone"),
    ),
    "AWS::AppConfig::Application": (
        Needed(_actions("appconfig", "CreateApplication"), ("*",)),
        Needed(
            _actions(
                "appconfig",
                "DeleteApplication GetApplication ListTagsForResource TagResource UntagResource "
                "UpdateApplication",
            ),
            (SETTINGS,),
        ),
    ),
    "AWS::AppConfig::ConfigurationProfile": (
        Needed(
            _actions(
                "appconfig",
                "CreateConfigurationProfile DeleteConfigurationProfile GetConfigurationProfile "
                "ListTagsForResource TagResource UntagResource UpdateConfigurationProfile",
            ),
            (SETTINGS,),
        ),
    ),
    "AWS::AppConfig::HostedConfigurationVersion": (
        Needed(
            _actions(
                "appconfig",
                "CreateHostedConfigurationVersion DeleteHostedConfigurationVersion "
                "GetHostedConfigurationVersion",
            ),
            (SETTINGS,),
        ),
    ),
    "AWS::CodeDeploy::Application": (
        Needed(
            _actions(
                "codedeploy",
                "CreateApplication DeleteApplication GetApplication ListTagsForResource TagResource "
                "UntagResource",
            ),
            DEPLOYMENTS,
        ),
    ),
    "AWS::CodeDeploy::DeploymentGroup": (
        Needed(
            _actions(
                "codedeploy",
                "CreateDeploymentGroup DeleteDeploymentGroup GetDeploymentGroup ListDeployments "
                "ListTagsForResource TagResource UntagResource UpdateDeploymentGroup",
            ),
            DEPLOYMENTS,
        ),
        _PASS_ROLE,
    ),
}
"""The permissions by type."""
