from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.model import Application, Queue, TemplateError
from mcp_roundtrip_tools.template.reader import Template
from support.sam_applications import write_application

TEMPLATE = """
    Parameters:
      Stage: {Type: String, AllowedValues: [dev, prod]}
      Size: {Type: Number, Default: 256}
      Origins: {Type: CommaDelimitedList, Default: "a, b"}
      Secret: {Type: "AWS::SSM::Parameter::Value<String>", Default: /path}
    Mappings: {Levels: {dev: {log: DEBUG}, prod: {log: INFO}}}
    Conditions:
      IsProd: !Equals [!Ref Stage, prod]
      IsDev: !Not [!Condition IsProd]
      IsLarge: !Or [!Equals [!Ref Size, 1024], !And [!Condition IsDev, !Equals [!Ref Size, 4096]]]
    Globals:
      Function:
        Handler: app.handler
        Layers: [!Ref Base]
        Environment: {Variables: {LEVEL: !FindInMap [Levels, !Ref Stage, log], WHO: globals}}
    Resources:
      Key: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      KeyAlias: {Type: AWS::KMS::Alias, Properties: {AliasName: !Sub "alias/${Stage}", TargetKeyId: !Ref Key}}
      Api: {Type: AWS::Serverless::HttpApi}
      Table: {Type: AWS::DynamoDB::Table}
      Base: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layers/base}}
      Built: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layers/built}}
      Front:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: front/
          Timeout: 29
          MemorySize: !Ref Size
          Layers: [!Ref Built]
          Environment:
            Variables:
              WHO: front
              WHEN: 2026-07-28
              FLAG: true
              KEY: !GetAtt Key.Arn
              ALIAS: !Ref KeyAlias
              API: !GetAtt Api.ApiEndpoint
              AUDIENCE: !Sub https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/mcp
              TABLE: !Ref Table
              ORIGINS: !Join [",", !Ref Origins]
              OWNERS: !Sub '{"tool": "${Tool.Arn}:live", "same": "${Tool.Alias}"}'
              NOTHING: !If [IsProd, x, !Ref AWS::NoValue]
              LARGE: !If [IsLarge, !ImportValue other, small]
              PART: !Select ["1", !Split ["/", x/y]]
              NAMED: !Sub ["${x} ${!Stage}", {x: !Ref Size}]
          Events:
            Mcp: {Type: HttpApi, Properties: {ApiId: !Ref Api, Path: /mcp, Method: post}}
            Rest: {Type: HttpApi}
            Timer: {Type: Schedule, Properties: {Schedule: rate(1 hour)}}
      Tool:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: tool/, AutoPublishAlias: live, FunctionName: !Sub "tool-${Stage}"}
    """
SOURCES = {"front/app.py": "", "tool/app.py": "", "layers/base/b.py": "", "layers/built/python/c.py": ""}
KEY_ARN = "arn:aws:kms:us-east-1:000000000000:key/Key-k"


def application(folder: Path, template: str = TEMPLATE, **parameters: str) -> Application:
    path = write_application(folder, template, SOURCES)
    return Template(path, {"Stage": "dev", **parameters}).application(
        api_url="http://127.0.0.1:1", key_set="k"
    )


def test_a_functions_environment_is_resolved(tmp_path):
    arn = "arn:aws:lambda:us-east-1:000000000000:function:tool-dev:live"
    assert application(tmp_path).functions["Front"].environment == {
        "LEVEL": "DEBUG",
        "WHO": "front",
        "WHEN": "2026-07-28",
        "FLAG": "true",
        "KEY": KEY_ARN,
        "ALIAS": "alias/dev",
        "API": "http://127.0.0.1:1",
        "AUDIENCE": "https://Api.execute-api.us-east-1.amazonaws.com/mcp",
        "TABLE": "Table",
        "ORIGINS": "a,b",
        "OWNERS": f'{{"tool": "{arn}", "same": "{arn}"}}',
        "LARGE": "small",
        "PART": "y",
        "NAMED": "256 ${Stage}",
    }


@pytest.mark.parametrize(
    ("variables", "audience"),
    [
        ("MCP_AUTH_MODE: none", "http://127.0.0.1:1"),
        ("MCP_AUTH_MODE: none, MCP_AUDIENCE: https://x.test", "https://x.test"),
        ("MCP_AUTH_MODE: none, MCP_TASK_TABLE: tasks", None),
        ("WHO: front", None),
    ],
)
def test_an_audience_that_aws_would_tell_is_the_local_address(variables, audience, tmp_path):
    text = TEMPLATE.replace("WHO: globals", variables).replace("WHO: front", "OTHER: now")
    found = application(tmp_path, text).functions["tool-dev"].environment
    assert found.get("MCP_AUDIENCE") == audience


def test_globals_are_merged_into_every_function(tmp_path):
    functions = application(tmp_path, Size="512").functions
    front, tool = functions["Front"], functions["tool-dev"]
    assert (front.handler, front.timeout_s, front.memory_mb) == ("app.handler", 29, 512)
    assert (tool.handler, tool.timeout_s, tool.memory_mb, tool.alias) == ("app.handler", 3, 128, "live")
    assert front.layers == (tmp_path / "layers/base", tmp_path / "layers/built/python")
    assert tool.layers == (tmp_path / "layers/base",)
    assert front.code == tmp_path / "front"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1",
        "Resources: {A: {}}",
        "Resources: [",
        "Resources: {A: {Type: AWS::Serverless::Function, Properties: [a]}}",
        "Resources: {}\nGlobals: [a]",
        "Resources: {}\nParameters:\n  Stage:\n  Type: String",
        "Resources: {}\nRules: {A: a}",
    ],
)
def test_an_invalid_or_missing_template_is_refused(tmp_path, text):
    for path in (write_application(tmp_path, text, {}), tmp_path / "nowhere.yaml"):
        with pytest.raises(TemplateError):
            Template(path, {}).application()


LISTS_TEMPLATE = """
    Parameters:
      Subnets: {{Type: "{kind}", Default: /network/subnets}}
    Resources:
      F:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: tool/
          Handler: app.handler
          Environment: {{Variables: {{SUBNETS: !Join [" ", !Ref Subnets]}}}}
    """


@pytest.mark.parametrize("kind", ["List<AWS::EC2::Subnet::Id>", "CommaDelimitedList"])
def test_a_list_that_a_deployment_reads_from_the_parameter_store_can_be_given(kind, tmp_path):
    text = LISTS_TEMPLATE.format(kind=f"AWS::SSM::Parameter::Value<{kind}>")
    path = write_application(tmp_path, text, SOURCES)
    assert "--parameter Subnets=" in Template(path, {}).application().left_out["F"]
    function = Template(path, {"Subnets": "subnet-1, subnet-2"}).application().functions["F"]
    assert function.environment == {"SUBNETS": "subnet-1 subnet-2"}


TABLES_TEMPLATE = """
    Resources:
      Plain: {Type: AWS::Serverless::SimpleTable}
      Keyed:
        Type: AWS::Serverless::SimpleTable
        Properties: {TableName: keyed, PrimaryKey: {Name: number, Type: Number}}
      Global:
        Type: AWS::DynamoDB::GlobalTable
        Properties: {KeySchema: [{AttributeName: a, KeyType: HASH}], Replicas: [{Region: eu-west-1}]}
      Reports: {Type: AWS::S3::Bucket}
      Named: {Type: AWS::S3::Bucket, Properties: {BucketName: its-own-name}}
      Jobs: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub "${AWS::StackName}_jobs"}}
      F:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: tool/
          Handler: app.handler
          Environment:
            Variables:
              KEYED: !Ref Keyed
              GLOBAL: !GetAtt Global.Arn
              NAMED: !GetAtt Named.Arn
              JOBS: !GetAtt Jobs.QueueName
    """


def test_tables_of_other_types_than_a_plain_one_exist_too_and_so_do_buckets(tmp_path):
    read = Template(write_application(tmp_path, TABLES_TEMPLATE, SOURCES), {}).application()
    tables = read.storage.tables
    assert tables["Plain"] == {
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    }
    assert tables["keyed"]["AttributeDefinitions"] == [{"AttributeName": "number", "AttributeType": "N"}]
    assert tables["Global"] == {"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Global"
    assert sorted(read.storage.buckets) == ["its-own-name", "local-reports"]
    assert read.queues == {"local_jobs": Queue("local_jobs")}, "test_nested_stacks.py has one that is read"
    expected = {"KEYED": "keyed", "GLOBAL": arn, "NAMED": "arn:aws:s3:::its-own-name", "JOBS": "local_jobs"}
    assert read.functions["F"].environment == expected
