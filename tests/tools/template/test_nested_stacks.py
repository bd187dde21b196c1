"""Nested stacks: templates with their own parameters and resources, whose outputs the parent uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.left_out import describe_left_out
from mcp_roundtrip_tools.template.model import ACCOUNT, REGION, Application, Queue, Route, TemplateError
from mcp_roundtrip_tools.template.reader import Template, TemplateKey
from support.sam_applications import http, write_application
from support.served_application import serve

API, SQS = "http://127.0.0.1:3000", "http://127.0.0.1:3001"

ROOT = """
    Parameters:
      AuthMode: {Type: String, AllowedValues: [none, iam]}
      Origins: {Type: CommaDelimitedList, Default: ""}
    Globals:
      Function:
        Handler: app.handler
        Runtime: python3.13
        Timeout: 20
        AutoPublishAlias: live
        Layers: [!Ref Layer]
        Environment:
          Variables:
            SETTINGS: !GetAtt Platform.Outputs.Settings
            AWS_ENDPOINT_URL: !Ref AWS::NoValue
    Resources:
      Endpoint:
        Type: AWS::Serverless::Application
        Properties:
          Location: platform/endpoint.yaml
          Parameters:
            Api: !GetAtt Platform.Outputs.Api
            Function: !Ref ServerFunction.Alias
      ServerFunction:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub ${AWS::StackName}_server
          CodeUri: server
          DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt ServerTasks.Outputs.DeadLetters}
          Environment: {Variables: {QUEUE: !GetAtt ServerTasks.Outputs.Url, OWN: !GetAtt StateKey.Arn}}
          Events: {Tasks: {Type: SQS, Properties: {Queue: !GetAtt ServerTasks.Outputs.Arn}}}
      ServerTasks:
        Type: AWS::CloudFormation::Stack
        Properties:
          TemplateURL: platform/task_queue.yaml
          Parameters:
            Name: !Sub ${AWS::StackName}_server_tasks
            DeadLetters: !GetAtt Platform.Outputs.DeadLetters
      Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
      StateKey: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      Platform:
        Type: AWS::Serverless::Application
        Properties:
          Location: platform/template.yaml
          Parameters:
            Application: !Ref AWS::StackName
            AuthMode: !Ref AuthMode
            Origins: !Join [",", !Ref Origins]
            DeadLetterName: !Ref AWS::NoValue
    """

PLATFORM = """
    Parameters:
      Application: {Type: String}
      AuthMode: {Type: String, AllowedValues: [none, iam]}
      Delivery: {Type: String, Default: invoke, AllowedValues: [invoke, queue]}
      Url: {Type: String, Default: "", AllowedPattern: "^$|^https://.*", ConstraintDescription: must be a URL}
      Origins: {Type: CommaDelimitedList, Default: ""}
      DeadLetterName: {Type: String, Default: dead}
    Mappings: {Modes: {none: {log: DEBUG}, iam: {log: INFO}}}
    Rules:
      QueuesAreAuthorized:
        RuleCondition: !Equals [!Ref Delivery, queue]
        Assertions: [{Assert: !Equals [!Ref AuthMode, iam], AssertDescription: Delivery queue needs iam}]
    Conditions:
      HasOrigins: !Not [!Equals [!Join ["", !Ref Origins], ""]]
      Queues: !Equals [!Ref Delivery, queue]
    Resources:
      Api: {Type: AWS::ApiGatewayV2::Api, Properties: {Name: !Ref Application, ProtocolType: HTTP}}
      StateKey: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      Alias:
        Type: AWS::KMS::Alias
        Properties: {AliasName: !Sub "alias/${Application}-state", TargetKeyId: !Ref StateKey}
      Table:
        Type: AWS::DynamoDB::Table
        Properties: {KeySchema: [{AttributeName: pk, KeyType: HASH}]}
      DeadLetters: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref DeadLetterName}}
      Logs: {Type: AWS::Logs::LogGroup}
      OnlyQueues: {Type: AWS::SQS::Queue, Condition: Queues}
      Settings:
        Type: AWS::SSM::Parameter
        Properties:
          Type: String
          Value: !Join
            - "\\n"
            - - !Sub MODE=${AuthMode}
              - !Sub LOG=${AWS::StackName}
              - !Join ["", ["LEVEL=", !FindInMap [Modes, !Ref AuthMode, log]]]
              - !If [HasOrigins, !Join ["", ["ORIGINS=", !Join [",", !Ref Origins]]], !Ref AWS::NoValue]
              - !Sub URL=${Api.ApiEndpoint}/mcp
              - !Sub KEY=${StateKey.Arn}
              - !Sub TABLE=${Table}
              - !Sub DELIVERY=${Delivery}
      SettingsVersion:
        Type: AWS::AppConfig::HostedConfigurationVersion
        Properties: {Content: !GetAtt Settings.Value}
    Outputs:
      Api: {Value: !Ref Api}
      Settings: {Value: !GetAtt Settings.Value}
      SettingsName: {Value: !Sub "${Settings} ${Settings.Type} ${SettingsVersion}"}
      DeadLetters: {Value: !GetAtt DeadLetters.Arn}
      Queued: {Condition: Queues, Value: !GetAtt OnlyQueues.QueueName}
      Deployed: {Value: !GetAtt Logs.Colour}
    """

ENDPOINT = """
    Parameters: {Api: {Type: String}, Function: {Type: String}}
    Resources:
      Integration:
        Type: AWS::ApiGatewayV2::Integration
        Properties: {ApiId: !Ref Api, IntegrationType: AWS_PROXY, PayloadFormatVersion: "2.0",
          IntegrationUri: !Ref Function}
      Post:
        Type: AWS::ApiGatewayV2::Route
        Properties: {ApiId: !Ref Api, RouteKey: POST /mcp, Target: !Sub "integrations/${Integration}"}
    """

TASK_QUEUE = """
    Parameters: {Name: {Type: String}, DeadLetters: {Type: String}}
    Resources:
      Queue:
        Type: AWS::SQS::Queue
        Properties:
          QueueName: !Ref Name
          RedrivePolicy: {deadLetterTargetArn: !Ref DeadLetters, maxReceiveCount: 200}
    Outputs:
      Url: {Value: !Ref Queue}
      Arn: {Value: !GetAtt Queue.Arn}
      DeadLetters: {Value: !Ref DeadLetters}
    """

HANDLER = "import os\n\ndef handler(event, context):\n    return os.environ['SETTINGS']\n"

FILES = {
    "template.yaml": ROOT,
    "platform/template.yaml": PLATFORM,
    "platform/endpoint.yaml": ENDPOINT,
    "platform/task_queue.yaml": TASK_QUEUE,
    "server/app.py": HANDLER,
    "layer/lib.py": "",
}

OWN_KEY, KEY = (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{name}" for name in ("own", "platform"))
KEYS = {"StateKey": OWN_KEY, "Platform.StateKey": KEY}


def write(folder: Path, **changed: tuple[str, str]) -> Path:
    """Write the application with a replacement in some of its templates, by the names of their stacks."""
    files = dict(FILES)
    names = {
        "root": "template.yaml",
        "Platform": "platform/template.yaml",
        "Endpoint": "platform/endpoint.yaml",
    }
    for stack, (old, new) in changed.items():
        assert old in files[names[stack]]
        files[names[stack]] = files[names[stack]].replace(old, new)
    return write_application(folder, files.pop("template.yaml"), files)


def read(path: Path, parameters: Mapping[str, str] | None = None) -> Application:
    return Template(path, {"AuthMode": "none", **(parameters or {})}).application(KEYS, API, SQS)


def settings(application: Application) -> dict[str, str]:
    lines = application.functions["local_server"].environment["SETTINGS"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def output(folder: Path, expression: str) -> str | None:
    """Return the value of a variable of the function; None if the function is left out."""
    path = write(folder, root=("{QUEUE: !GetAtt ServerTasks.Outputs.Url,", f"{{OUTPUT: {expression},"))
    functions = read(path).functions
    return functions["local_server"].environment["OUTPUT"] if functions else None


def reason(folder: Path, expression: str) -> str:
    """Return why the function is left out whose variable has this value."""
    assert output(folder, expression) is None
    return read(folder / "template.yaml").left_out["local_server"]


# -- Names ----------------------------------------------------------------------------------------------


def test_the_outputs_of_a_nested_stack_are_those_of_its_resources(tmp_path: Path) -> None:
    found = read(write(tmp_path))
    assert describe_left_out(found) == []
    assert settings(found) == {
        "MODE": "none",
        "LOG": "local-Platform-LOCAL",
        "LEVEL": "DEBUG",
        "URL": f"{API}/mcp",
        "KEY": KEY,
        "TABLE": "Platform-Table",
        "DELIVERY": "invoke",
    }


def test_the_parts_of_all_stacks_are_one_application(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = read(path)
    [(name, function)] = found.functions.items()
    assert name == "local_server"
    assert function.environment.keys() == {"SETTINGS", "QUEUE", "OWN"}
    assert function.environment["QUEUE"] == f"{SQS}/{ACCOUNT}/local_server_tasks"
    assert function.dead_letter == f"arn:aws:sqs:{REGION}:{ACCOUNT}:dead"
    assert found.routes == (Route("POST", "/mcp", "local_server"),)
    assert found.queues == {
        "local_server_tasks": Queue("local_server_tasks", "local_server", 30, 200, "dead"),
        "dead": Queue("dead"),
    }
    assert found.storage.tables.keys() == {"Platform-Table"}
    templates = [
        "template.yaml",
        "platform/endpoint.yaml",
        "platform/task_queue.yaml",
        "platform/template.yaml",
    ]
    assert {*found.templates} == {tmp_path / name for name in templates}
    assert {*found.sources} == {*found.templates, tmp_path / "server", tmp_path / "layer"}


def test_equal_logical_ids_of_two_templates_are_different_resources(tmp_path: Path) -> None:
    path, own = write(tmp_path), ("ECC_NIST_P256", "SIGN_VERIFY")
    assert Template(path, {"AuthMode": "none"}).keys() == (
        TemplateKey("StateKey", *own, ()),
        TemplateKey("Platform.StateKey", *own, ("alias/local-state",)),
    )
    found = read(path)
    assert (settings(found)["KEY"], found.functions["local_server"].environment["OWN"]) == (KEY, OWN_KEY)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("!GetAtt Platform.Outputs.SettingsName", "Platform-Settings String 1"),
        ("!Sub 'x-${Platform.Outputs.SettingsName}'", "x-Platform-Settings String 1"),
        ("!GetAtt [Platform, Outputs.SettingsName]", "Platform-Settings String 1"),
        ("!Ref Platform", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/local-Platform-LOCAL/0"),
    ],
)
def test_an_output_is_read_in_each_notation(expression: str, value: str, tmp_path: Path) -> None:
    assert output(tmp_path, expression) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("!GetAtt Platform.Outputs.Setings", "Platform has no output Setings; did you mean Settings?"),
        ("!Sub '${Platform.Outputs.Zzzzzz}'", "Platform has no output Zzzzzz; it has Api, Settings"),
        ("!GetAtt Platform.Outputs.Queued", "Platform.Outputs.Queued does not exist under these conditions"),
        ("!GetAtt Platform.Outputs.Deployed", "Platform.Outputs.Deployed.Value: the attribute Logs.Colour"),
    ],
)
def test_a_function_without_an_output_that_it_needs_is_left_out(
    expression: str, problem: str, tmp_path: Path
) -> None:
    assert problem in reason(tmp_path, expression)


def test_a_function_of_a_nested_stack_has_the_globals_and_the_folder_of_its_template(tmp_path: Path) -> None:
    nested = """
        Parameters: {Layer: {Type: String}}
        Globals: {Function: {Timeout: 7}}
        Resources:
          ServerFunction:
            Type: AWS::Serverless::Function
            Properties: {Handler: a.b, Runtime: python3.13, CodeUri: code, Layers: [!Ref Layer],
              Events: {E: {Type: HttpApi, Properties: {Path: /more, Method: GET}}}}
        """
    path = write(
        tmp_path,
        root=(
            "      Layer: {",
            "      More: {Type: AWS::Serverless::Application, Properties: {Location: more/t.yaml, "
            "Parameters: {Layer: !Ref Layer}}}\n      Layer: {",
        ),
    )
    write_application(tmp_path, path.read_text(), {"more/t.yaml": nested, "more/code/a.py": ""})
    found = read(path)
    assert found.functions.keys() == {"local_server", "More-ServerFunction"}
    function = found.functions["More-ServerFunction"]
    assert (function.timeout_s, function.code) == (7, tmp_path / "more/code")
    assert function.layers == (tmp_path / "layer",)
    assert "SETTINGS" not in function.environment
    assert Route("GET", "/more", "More-ServerFunction") in found.routes


# -- Parameters -----------------------------------------------------------------------------------------


def test_a_parameter_of_a_nested_stack_replaces_its_default_and_what_the_parent_passes(
    tmp_path: Path,
) -> None:
    path = write(tmp_path)
    changed = settings(read(path, {"Platform.AuthMode": "iam", "Platform.Delivery": "queue"}))
    assert (changed["MODE"], changed["LEVEL"], changed["DELIVERY"]) == ("iam", "INFO", "queue")
    assert "Platform-OnlyQueues" in read(path, {"AuthMode": "iam", "Platform.Delivery": "queue"}).queues
    found = read(path, {"Origins": "https://a.example, https://b.example"})  # a list is passed as a text
    assert settings(found)["ORIGINS"] == "https://a.example,https://b.example"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"Delivery": "queue"}, "has no parameter Delivery; did you mean Platform.Delivery?"),
        ({"Delivry": "queue"}, "has no parameter Delivry; did you mean Platform.Delivery?"),
        ({"Platform.Delivry": "queue"}, "no parameter Platform.Delivry; did you mean Platform.Delivery?"),
        ({"Platfrm.Delivery": "queue"}, "no parameter Platfrm.Delivery; did you mean Platform.Delivery?"),
        ({"AuthMod": "none"}, "has no parameter AuthMod; did you mean AuthMode?"),
        ({"Zzz": "1"}, "has no parameter Zzz; it has AuthMode, Origins"),
        ({"Platform.Delivery": "never"}, "Platform.Delivery must be one of invoke, queue, not 'never'"),
        ({"Platform.Url": "http://a"}, "Platform.Url must be a URL, not 'http://a'"),
        ({"Platform.Delivery": "queue"}, "Delivery queue needs iam"),
    ],
)
def test_a_parameter_that_no_template_has_or_that_is_not_allowed_is_refused(
    given: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(TemplateError) as refused:
        read(write(tmp_path), given)
    assert sentence in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("passed", "sentence"),
    [
        ("Url: http://a", "Platform.Url must be a URL, not 'http://a'"),
        (
            "Ulr: https://a",
            "Platform.Parameters.Ulr: platform/template.yaml has no such parameter; did you mean Url?",
        ),
        ("Url: !Split [a, b]", "Platform.Parameters.Url: must be a string: join the list with !Join"),
        ("Delivery: 1", "Platform.Delivery must be one of invoke, queue, not '1'"),
    ],
)
def test_a_value_that_the_parent_may_not_pass_is_refused(passed: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path, root=("DeadLetterName: !Ref AWS::NoValue", passed))
    with pytest.raises(TemplateError) as refused:
        read(path)
    assert str(refused.value).startswith(sentence)


def test_a_value_that_the_parent_must_pass_is_missed(tmp_path: Path) -> None:
    path = write(tmp_path, root=("            Api: !GetAtt Platform.Outputs.Api\n", ""))
    with pytest.raises(
        TemplateError, match=r"Endpoint.Parameters: platform/endpoint.yaml needs a value of Api"
    ):
        read(path)


# -- Files ----------------------------------------------------------------------------------------------


def test_a_template_that_is_missing_or_contains_itself_is_refused(tmp_path: Path) -> None:
    missing = write(tmp_path, root=("platform/endpoint.yaml", "platform/nowhere.yaml"))
    with pytest.raises(TemplateError, match=r"Endpoint.Location: there is no file .*/platform/nowhere.yaml"):
        read(missing)
    itself = write(tmp_path, root=("platform/endpoint.yaml", "./template.yaml"))
    with pytest.raises(
        TemplateError, match=r"Endpoint.Location: ./template.yaml is a nested stack of itself"
    ):
        read(itself)


def test_a_template_of_another_place_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, root=("Location: platform/endpoint.yaml", "Location: https://s3.example/e.yaml"))
    found = read(path)
    assert describe_left_out(found) == ["Endpoint: a nested stack is run if its template is a file"]
    assert found.functions.keys() == {"local_server"}


def test_a_nested_stack_is_served_and_a_change_of_its_template_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path)
    log: list[str] = []
    given = {"AuthMode": "none", "Platform.Origins": "https://a.example"}
    with serve(path, parameters=given, watch_interval_s=0, log=log.append) as app:
        first = http(app.url("/mcp"), method="POST", body=b"{}").body.decode()
        platform = tmp_path / "platform/template.yaml"
        correct = platform.read_text()
        platform.write_text(correct.replace("Default: invoke", "Default: never"))
        assert http(app.url("/mcp"), method="POST", body=b"{}").body.decode() == first
        platform.write_text(correct.replace("MODE=", "AUTH="))
        second = http(app.url("/mcp"), method="POST", body=b"{}").body.decode()
    assert first.splitlines()[0] == "MODE=none"
    assert second.splitlines()[0] == "AUTH=none"
    assert "ORIGINS=https://a.example" in first.splitlines()
    assert any("Platform.Delivery must be one of invoke, queue, not 'never'" in line for line in log)
