"""The permissions that CloudFormation needs for each type of resource in template.yaml.

From the `handlers` of each type in CloudFormation's registry (`aws cloudformation describe-type`), without
those of properties that the template does not use, such as replicas and code signing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_roundtrip_tools.deployer_policy.statements import (
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
    OF_BOUNDED,
    OF_KEYS,
    OF_MAPPINGS,
    OF_OWN_POLICIES,
    POLICY,
    QUEUES,
    ROLE,
    SAM_TRANSFORM,
    SETTINGS,
    SETTINGS_VERSIONS,
    TABLE,
    THROUGH_DYNAMODB,
    ZONE,
    Needed,
    allow,
)

_ROLE_PERMISSIONS = (
    allow(
        "iam",
        "DeleteRole DeleteRolePolicy DetachRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies "
        "ListRolePolicies ListRoleTags TagRole UntagRole UpdateAssumeRolePolicy "
        "UpdateRole UpdateRoleDescription",
        (ROLE,),
    ),
    # With a boundary, a role that this role creates or changes can do no more than the boundary.
    allow(
        "iam",
        "CreateRole PutRolePermissionsBoundary PutRolePolicy",
        (ROLE,),
        OF_BOUNDED,
        only_if="HasPermissionsBoundary",
    ),
    allow(
        "iam",
        "CreateRole DeleteRolePermissionsBoundary PutRolePolicy",
        (ROLE,),
        only_if="HasNoPermissionsBoundary",
    ),
    allow(
        "iam",
        "AttachRolePolicy",
        (ROLE,),
        {**OF_OWN_POLICIES, **OF_BOUNDED},
        only_if="HasPermissionsBoundary",
    ),
    allow("iam", "AttachRolePolicy", (ROLE,), OF_OWN_POLICIES, only_if="HasNoPermissionsBoundary"),
)

_PASS_ROLE = allow(
    "iam",
    "PassRole",
    (ROLE,),
    {"StringEquals": {"iam:PassedToService": ("lambda.amazonaws.com", "codedeploy.amazonaws.com")}},
)

_VERBS = "DELETE GET PATCH POST PUT"

_API = (allow("apigateway", f"{_VERBS} TagResource UntagResource", APIS),)

_ALARM = (
    allow(
        "cloudwatch", "DeleteAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource", (ALARM,)
    ),
    allow("cloudwatch", "DescribeAlarms", ("*",)),
)

PERMISSIONS: Final[Mapping[str, tuple[Needed, ...]]] = {
    "AWS::Lambda::Function": (
        allow(
            "lambda",
            "CreateFunction DeleteFunction DeleteFunctionConcurrency GetFunction "
            "GetFunctionCodeSigningConfig GetFunctionConfiguration GetFunctionRecursionConfig "
            "GetFunctionScalingConfig GetRuntimeManagementConfig ListTags PutFunctionConcurrency "
            "PutFunctionRecursionConfig TagResource UntagResource UpdateFunctionCode "
            "UpdateFunctionConfiguration",
            (FUNCTION,),
        ),
        allow("lambda", "GetLayerVersion", LAYER[1:]),
        allow("s3", "GetObject GetObjectVersion", ("${ArtefactBucket.Arn}/*",)),
        allow("ec2", "DescribeNetworkInterfaces DescribeSecurityGroups DescribeSubnets DescribeVpcs", ("*",)),
        _PASS_ROLE,
    ),
    "AWS::Lambda::Version": (
        allow(
            "lambda",
            "DeleteFunction GetFunctionConfiguration GetFunctionScalingConfig "
            "GetProvisionedConcurrencyConfig GetRuntimeManagementConfig ListVersionsByFunction "
            "PublishVersion",
            (FUNCTION,),
        ),
    ),
    "AWS::Lambda::Alias": (
        allow(
            "lambda",
            "CreateAlias DeleteAlias DeleteProvisionedConcurrencyConfig GetAlias "
            "GetProvisionedConcurrencyConfig PutProvisionedConcurrencyConfig UpdateAlias",
            (FUNCTION,),
        ),
        allow("codedeploy", "CreateDeployment GetDeployment GetDeploymentGroup StopDeployment", DEPLOYMENTS),
        allow("codedeploy", "GetDeploymentConfig", (DEPLOYMENT_CONFIGURATIONS,)),
    ),
    "AWS::Lambda::Permission": (
        allow("lambda", "AddPermission GetPolicy RemovePermission", (FUNCTION,)),
        allow(
            "lambda",
            "AddPermission GetPolicy RemovePermission",
            ("${LambdaAuthorizerArn}",),
            only_if="HasLambdaAuthorizer",
        ),
    ),
    "AWS::Lambda::EventSourceMapping": (
        allow(
            "lambda",
            "CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping "
            "UpdateEventSourceMapping",
            ("*",),
            OF_MAPPINGS,
        ),
        allow("lambda", "ListTags TagResource UntagResource", (MAPPING,)),
    ),
    "AWS::Lambda::LayerVersion": (
        allow("lambda", "DeleteLayerVersion GetLayerVersion PublishLayerVersion", LAYER),
        allow("s3", "GetObject GetObjectVersion", ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::IAM::Role": _ROLE_PERMISSIONS,
    "AWS::IAM::ManagedPolicy": (
        allow(
            "iam",
            "CreatePolicy CreatePolicyVersion DeletePolicy DeletePolicyVersion GetPolicy "
            "GetPolicyVersion ListEntitiesForPolicy ListPolicyVersions",
            (POLICY,),
        ),
    ),
    "AWS::Logs::LogGroup": (
        allow(
            "logs",
            "AssociateKmsKey CreateLogGroup DeleteLogGroup DeleteRetentionPolicy "
            "DescribeIndexPolicies DisassociateKmsKey GetDataProtectionPolicy ListTagsForResource "
            "PutRetentionPolicy TagResource UntagResource",
            LOG_GROUPS,
        ),
        allow("logs", "DescribeLogGroups DescribeResourcePolicies", ("*",)),
    ),
    "AWS::Logs::MetricFilter": (
        allow("logs", "DeleteMetricFilter DescribeMetricFilters PutMetricFilter", LOG_GROUPS),
    ),
    # The templates of nested stacks are transformed, too.
    "AWS::CloudFormation::Stack": (
        allow(
            "cloudformation",
            "CreateStack DeleteStack DescribeStacks GetStackPolicy GetTemplate ListStackResources "
            "SetStackPolicy TagResource UntagResource UpdateStack UpdateTerminationProtection",
            (NESTED_STACKS,),
        ),
        allow("cloudformation", "CreateChangeSet", (SAM_TRANSFORM,)),
        allow("s3", "GetObject GetObjectVersion", ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::CloudWatch::Alarm": _ALARM,
    "AWS::CloudWatch::Dashboard": (
        allow(
            "cloudwatch",
            "DeleteDashboards GetDashboard ListTagsForResource PutDashboard TagResource UntagResource",
            (DASHBOARD,),
        ),
    ),
    "AWS::DynamoDB::Table": (
        allow(
            "dynamodb",
            "CreateTable DeleteTable DescribeContinuousBackups DescribeContributorInsights "
            "DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive GetResourcePolicy "
            "ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable "
            "UpdateTimeToLive",
            (TABLE,),
        ),
        # Without the condition, the role could read what the key encrypts, and give others a grant.
        allow(
            "kms",
            "CreateGrant Decrypt Encrypt GenerateDataKey RevokeGrant",
            ("${DataKeyArn}",),
            THROUGH_DYNAMODB,
            only_if="HasDataKey",
        ),
        allow("kms", "DescribeKey", ("${DataKeyArn}",), only_if="HasDataKey"),
    ),
    "AWS::SQS::Queue": (
        allow(
            "sqs",
            "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags SetQueueAttributes "
            "TagQueue UntagQueue",
            QUEUES,
        ),
    ),
    "AWS::SSM::Parameter": (
        allow(
            "ssm",
            "AddTagsToResource DeleteParameter GetParameters ListTagsForResource PutParameter "
            "RemoveTagsFromResource",
            (SETTINGS,),
        ),
    ),
    "AWS::KMS::Key": (
        allow("kms", "CreateKey", ("*",), OF_KEYS),
        allow(
            "kms",
            "DescribeKey DisableKey EnableKey GetKeyPolicy GetKeyRotationStatus ListResourceTags "
            "PutKeyPolicy ScheduleKeyDeletion TagResource UntagResource UpdateKeyDescription",
            (KEYS,),
            OF_KEYS,
        ),
    ),
    "AWS::KMS::Alias": (
        allow("kms", "CreateAlias DeleteAlias UpdateAlias", (ALIASES,)),
        allow("kms", "CreateAlias DeleteAlias UpdateAlias", (KEYS,), OF_KEYS),
        allow("kms", "ListAliases", ("*",)),
    ),
    "AWS::ApiGatewayV2::Api": _API,
    "AWS::ApiGatewayV2::Authorizer": _API,
    "AWS::ApiGatewayV2::Integration": _API,
    "AWS::ApiGatewayV2::Route": _API,
    "AWS::ApiGatewayV2::Stage": (
        *_API,
        # Access logs: API Gateway developer guide, "Configure logging for HTTP APIs".
        allow(
            "logs",
            "CreateLogDelivery DeleteLogDelivery DescribeLogGroups DescribeResourcePolicies "
            "GetLogDelivery ListLogDeliveries PutResourcePolicy UpdateLogDelivery",
            ("*",),
        ),
    ),
    "AWS::ApiGatewayV2::DomainName": (
        allow("apigateway", _VERBS, (*DOMAINS, APIS[2])),
        allow(
            "iam",
            "CreateServiceLinkedRole",
            (API_GATEWAY_ROLE,),
            {"StringEquals": {"iam:AWSServiceName": "ops.apigateway.amazonaws.com"}},
        ),
    ),
    "AWS::ApiGatewayV2::ApiMapping": (allow("apigateway", _VERBS, DOMAINS),),
    "AWS::Route53::RecordSet": (
        allow(
            "route53",
            "ChangeResourceRecordSets GetHostedZone ListResourceRecordSets",
            (ZONE,),
            only_if="HasHostedZone",
        ),
        allow("route53", "GetChange", (CHANGES,), only_if="HasHostedZone"),
    ),
    "AWS::AppConfig::Application": (
        allow("appconfig", "CreateApplication", ("*",)),
        allow(
            "appconfig",
            "DeleteApplication GetApplication ListTagsForResource TagResource UntagResource "
            "UpdateApplication",
            (SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::AppConfig::ConfigurationProfile": (
        allow(
            "appconfig",
            "CreateConfigurationProfile DeleteConfigurationProfile GetConfigurationProfile "
            "ListTagsForResource TagResource UntagResource UpdateConfigurationProfile",
            (SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::AppConfig::HostedConfigurationVersion": (
        allow(
            "appconfig",
            "CreateHostedConfigurationVersion DeleteHostedConfigurationVersion GetHostedConfigurationVersion",
            (SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::CodeDeploy::Application": (
        allow(
            "codedeploy",
            "CreateApplication DeleteApplication GetApplication ListTagsForResource TagResource "
            "UntagResource",
            DEPLOYMENTS,
        ),
    ),
    "AWS::CodeDeploy::DeploymentGroup": (
        allow(
            "codedeploy",
            "CreateDeploymentGroup DeleteDeploymentGroup GetDeploymentGroup ListDeployments "
            "ListTagsForResource TagResource UntagResource UpdateDeploymentGroup",
            DEPLOYMENTS,
        ),
        _PASS_ROLE,
    ),
}
"""The permissions by type."""
