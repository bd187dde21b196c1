"""The permissions that CloudFormation needs for each type of resource in template.yaml.

From its registry (`aws cloudformation describe-type`), without those of properties that are not used.
"""

from collections.abc import Mapping
from typing import Final

from mcp_roundtrip_tools.deployer_policy import statements as iam
from mcp_roundtrip_tools.deployer_policy.statements import Needed, allow

_ROLE_PERMISSIONS = (
    allow(
        "iam",
        "DeleteRole DeleteRolePolicy DetachRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies "
        "ListRolePolicies ListRoleTags TagRole UntagRole UpdateAssumeRolePolicy "
        "UpdateRole UpdateRoleDescription",
        (iam.ROLE,),
    ),
    # With a boundary, a role that this role creates or changes can do no more than the boundary.
    allow(
        "iam",
        "CreateRole PutRolePermissionsBoundary PutRolePolicy",
        (iam.ROLE,),
        iam.OF_BOUNDED,
        only_if="HasPermissionsBoundary",
    ),
    allow(
        "iam",
        "CreateRole DeleteRolePermissionsBoundary PutRolePolicy",
        (iam.ROLE,),
        only_if="HasNoPermissionsBoundary",
    ),
    allow(
        "iam",
        "AttachRolePolicy",
        (iam.ROLE,),
        {**iam.OF_OWN_POLICIES, **iam.OF_BOUNDED},
        only_if="HasPermissionsBoundary",
    ),
    allow("iam", "AttachRolePolicy", (iam.ROLE,), iam.OF_OWN_POLICIES, only_if="HasNoPermissionsBoundary"),
)

_PASS_ROLE = allow(
    "iam",
    "PassRole",
    (iam.ROLE,),
    {"StringEquals": {"iam:PassedToService": ("lambda.amazonaws.com", "codedeploy.amazonaws.com")}},
)

_VERBS = "DELETE GET PATCH POST PUT"

_API = (allow("apigateway", f"{_VERBS} TagResource UntagResource", iam.APIS),)

_ALARM = (
    allow(
        "cloudwatch",
        "DeleteAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource",
        (iam.ALARM,),
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
            (iam.FUNCTION,),
        ),
        allow("lambda", "GetLayerVersion", iam.LAYER[1:]),
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
            (iam.FUNCTION,),
        ),
    ),
    "AWS::Lambda::Alias": (
        allow(
            "lambda",
            "CreateAlias DeleteAlias DeleteProvisionedConcurrencyConfig GetAlias "
            "GetProvisionedConcurrencyConfig PutProvisionedConcurrencyConfig UpdateAlias",
            (iam.FUNCTION,),
        ),
        allow(
            "codedeploy", "CreateDeployment GetDeployment GetDeploymentGroup StopDeployment", iam.DEPLOYMENTS
        ),
        allow("codedeploy", "GetDeploymentConfig", (iam.DEPLOYMENT_CONFIGURATIONS,)),
    ),
    "AWS::Lambda::Permission": (
        allow("lambda", "AddPermission GetPolicy RemovePermission", (iam.FUNCTION,)),
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
            iam.OF_MAPPINGS,
        ),
        allow("lambda", "ListTags TagResource UntagResource", (iam.MAPPING,)),
    ),
    "AWS::Lambda::LayerVersion": (
        allow("lambda", "DeleteLayerVersion GetLayerVersion PublishLayerVersion", iam.LAYER),
        allow("s3", "GetObject GetObjectVersion", ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::IAM::Role": _ROLE_PERMISSIONS,
    "AWS::IAM::ManagedPolicy": (
        allow(
            "iam",
            "CreatePolicy CreatePolicyVersion DeletePolicy DeletePolicyVersion GetPolicy "
            "GetPolicyVersion ListEntitiesForPolicy ListPolicyVersions",
            (iam.POLICY,),
        ),
    ),
    "AWS::Logs::LogGroup": (
        allow(
            "logs",
            "AssociateKmsKey CreateLogGroup DeleteLogGroup DeleteRetentionPolicy "
            "DescribeIndexPolicies DisassociateKmsKey GetDataProtectionPolicy ListTagsForResource "
            "PutRetentionPolicy TagResource UntagResource",
            iam.LOG_GROUPS,
        ),
        allow("logs", "DescribeLogGroups DescribeResourcePolicies", ("*",)),
    ),
    "AWS::Logs::MetricFilter": (
        allow("logs", "DeleteMetricFilter DescribeMetricFilters PutMetricFilter", iam.LOG_GROUPS),
    ),
    # The templates of nested stacks are transformed, too.
    "AWS::CloudFormation::Stack": (
        allow(
            "cloudformation",
            "CreateStack DeleteStack DescribeStacks GetStackPolicy GetTemplate ListStackResources "
            "SetStackPolicy TagResource UntagResource UpdateStack UpdateTerminationProtection",
            (iam.NESTED_STACKS,),
        ),
        allow("cloudformation", "CreateChangeSet", (iam.SAM_TRANSFORM,)),
        allow("s3", "GetObject GetObjectVersion", ("${ArtefactBucket.Arn}/*",)),
    ),
    "AWS::CloudWatch::Alarm": _ALARM,
    "AWS::CloudWatch::Dashboard": (
        allow(
            "cloudwatch",
            "DeleteDashboards GetDashboard ListTagsForResource PutDashboard TagResource UntagResource",
            (iam.DASHBOARD,),
        ),
    ),
    "AWS::DynamoDB::Table": (
        allow(
            "dynamodb",
            "CreateTable DeleteTable DescribeContinuousBackups DescribeContributorInsights "
            "DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive GetResourcePolicy "
            "ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable "
            "UpdateTimeToLive",
            (iam.TABLE,),
        ),
        # Without the condition, the role could read what the key encrypts, and give others a grant.
        allow(
            "kms",
            "CreateGrant Decrypt Encrypt GenerateDataKey RevokeGrant",
            ("${DataKeyArn}",),
            iam.THROUGH_DYNAMODB,
            only_if="HasDataKey",
        ),
        allow("kms", "DescribeKey", ("${DataKeyArn}",), only_if="HasDataKey"),
    ),
    "AWS::SQS::Queue": (
        allow(
            "sqs",
            "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags SetQueueAttributes "
            "TagQueue UntagQueue",
            iam.QUEUES,
        ),
    ),
    "AWS::SSM::Parameter": (
        allow(
            "ssm",
            "AddTagsToResource DeleteParameter GetParameters ListTagsForResource PutParameter "
            "RemoveTagsFromResource",
            (iam.SETTINGS,),
        ),
    ),
    "AWS::KMS::Key": (
        allow("kms", "CreateKey", ("*",), iam.OF_KEYS),
        allow(
            "kms",
            "DescribeKey DisableKey EnableKey GetKeyPolicy GetKeyRotationStatus ListResourceTags "
            "PutKeyPolicy ScheduleKeyDeletion TagResource UntagResource UpdateKeyDescription",
            (iam.KEYS,),
            iam.OF_KEYS,
        ),
    ),
    "AWS::KMS::Alias": (
        allow("kms", "CreateAlias DeleteAlias UpdateAlias", (iam.ALIASES,)),
        allow("kms", "CreateAlias DeleteAlias UpdateAlias", (iam.KEYS,), iam.OF_KEYS),
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
        allow("apigateway", _VERBS, (*iam.DOMAINS, iam.APIS[2])),
        allow(
            "iam",
            "CreateServiceLinkedRole",
            (iam.API_GATEWAY_ROLE,),
            {"StringEquals": {"iam:AWSServiceName": ("ops.apigateway.amazonaws.com",)}},
        ),
    ),
    "AWS::ApiGatewayV2::ApiMapping": (allow("apigateway", _VERBS, iam.DOMAINS),),
    "AWS::Route53::RecordSet": (
        allow(
            "route53",
            "ChangeResourceRecordSets GetHostedZone ListResourceRecordSets",
            (iam.ZONE,),
            only_if="HasHostedZone",
        ),
        allow("route53", "GetChange", (iam.CHANGES,), only_if="HasHostedZone"),
    ),
    "AWS::AppConfig::Application": (
        allow("appconfig", "CreateApplication", ("*",)),
        allow(
            "appconfig",
            "DeleteApplication GetApplication ListTagsForResource TagResource UntagResource "
            "UpdateApplication",
            (iam.SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::AppConfig::ConfigurationProfile": (
        allow(
            "appconfig",
            "CreateConfigurationProfile DeleteConfigurationProfile GetConfigurationProfile "
            "ListTagsForResource TagResource UntagResource UpdateConfigurationProfile",
            (iam.SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::AppConfig::HostedConfigurationVersion": (
        allow(
            "appconfig",
            "CreateHostedConfigurationVersion DeleteHostedConfigurationVersion GetHostedConfigurationVersion",
            (iam.SETTINGS_VERSIONS,),
        ),
    ),
    "AWS::CodeDeploy::Application": (
        allow(
            "codedeploy",
            "CreateApplication DeleteApplication GetApplication ListTagsForResource TagResource "
            "UntagResource",
            iam.DEPLOYMENTS,
        ),
    ),
    "AWS::CodeDeploy::DeploymentGroup": (
        allow(
            "codedeploy",
            "CreateDeploymentGroup DeleteDeploymentGroup GetDeploymentGroup ListDeployments "
            "ListTagsForResource TagResource UntagResource UpdateDeploymentGroup",
            iam.DEPLOYMENTS,
        ),
        _PASS_ROLE,
    ),
}
"""The permissions by type."""
