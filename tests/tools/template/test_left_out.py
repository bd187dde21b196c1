import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.terminal.terminal import banner
from mcp_roundtrip_tools.template.model import Application, FunctionFailed, TemplateError, describe_left_out
from mcp_roundtrip_tools.template.reader import Template
from support.project import edit
from support.sam_applications import http, write_application
from support.served_application import serve

TEMPLATE = """
    Parameters:
      NoDefault: {{Type: String}}
      Secret: {{Type: "AWS::SSM::Parameter::Value<String>", Default: /secret}}
      Stored: {{Type: String, Default: "{{{{resolve:ssm:/stored}}}}"}}
    Conditions: {{Unknown: !Equals [!Ref NoDefault, x]}}
    Globals: {{Function: {{Runtime: python3.13, Handler: app.handler, CodeUri: good, Timeout: 20}}}}
    Resources:
      Good:
        Type: AWS::Serverless::Function
        Properties: {{Events: {{E: {{Type: HttpApi, Properties: {{Path: /good, Method: GET}}}}}}}}
      Bad:
        Type: AWS::Serverless::Function
        {bad}
      {rest}
    """
ROUTE = "Events: {E: {Type: HttpApi, Properties: {Path: /bad, Method: ANY}}}"
GOOD = "def handler(event, context):\n    return 'good'\n"


def write(folder: Path, properties: str = "", rest: str = "", attributes: str = "") -> Path:
    bad = f"{attributes}Properties: {{{', '.join(filter(None, (properties, ROUTE)))}}}"
    return write_application(folder, TEMPLATE.format(bad=bad, rest=rest), {"good/app.py": GOOD})


def read(path: Path, variables: dict[str, str] | None = None, **parameters: str) -> Application:
    return Template(path, parameters).application(variables or {})


def variable(value: str) -> str:
    return f"Environment: {{Variables: {{A: {value}}}}}"


CANNOT_RUN = {
    "an image": ("PackageType: Image", "Bad.PackageType"),
    "Node.js": ("Runtime: nodejs22.x", "Bad.Runtime: nodejs22.x"),
    "a binary": ("Runtime: provided.al2023, Handler: bootstrap", "Bad.Runtime"),
    "inline code": ("InlineCode: 'def handler(event, context): pass'", "Bad.InlineCode"),
    "code in a bucket": ("CodeUri: {Bucket: b, Key: k}", "Bad.CodeUri"),
    "a missing folder": ("CodeUri: nowhere", "Bad.CodeUri"),
    "a handler without text": ("Handler: !Ref AWS::NoValue", "Bad.Handler"),
    "a time limit": ("Timeout: soon", "Bad.Timeout"),
    "a name from another stack": ("FunctionName: !ImportValue name", "Bad.FunctionName"),
    "a missing parameter": (variable("!Ref NoDefault"), "--parameter NoDefault"),
    "a parameter of the Parameter Store": (variable("!Ref Secret"), "--parameter Secret"),
    "a dynamic reference": (variable("'{{resolve:ssm:/a}}'"), "{{resolve:"),
    "a dynamic reference in a text": (variable("!Sub '{{resolve:ssm:/${AWS::Region}}}'"), "{{resolve:"),
    "a dynamic reference in a default": (variable("!Ref Stored"), "{{resolve:"),
    "an export": (variable("!ImportValue x"), "Fn::ImportValue"),
    "an attribute": (variable("!GetAtt Nowhere.Colour"), "Nowhere.Colour"),
    "an output": (variable("!GetAtt Nested.Outputs.Url"), "Nested.Outputs.Url"),
    "a text": (variable("!Sub 'x${NoDefault}'"), "NoDefault"),
    "a key of a kind that is not emulated": (variable("!GetAtt Key.Arn"), "the key Key"),
    "an unknown function": (variable("!ToJsonString {a: 1}"), "Fn::ToJsonString"),
    "a list": (variable("[1]"), "Bad.Environment.A"),
    "a list of variables": ("Environment: {Variables: [1]}", "Bad.Variables"),
}


@pytest.mark.parametrize(("properties", "reason"), CANNOT_RUN.values(), ids=CANNOT_RUN)
def test_a_function_that_cannot_run_is_left_out_with_its_reason(properties, reason, tmp_path):
    rest = """
      Nested: {Type: AWS::Serverless::Application, Properties: {Location: {ApplicationId: a}}}
      Key: {Type: AWS::KMS::Key}
      """.strip()
    found = read(write(tmp_path, properties, rest))
    assert set(found.functions) == {"Good"}
    assert reason in found.left_out["Bad"]
    [line] = [line for line in describe_left_out(found) if "ANY /bad" in line]
    assert reason in line


def test_a_function_whose_condition_cannot_be_evaluated_is_left_out(tmp_path):
    path = write(tmp_path, attributes="Condition: Unknown\n        ")
    assert "--parameter NoDefault" in read(path).left_out["Bad"]
    assert set(read(path, NoDefault="x").functions) == {"Good", "Bad"}
    assert set(read(path, NoDefault="y").functions) == {"Good"}
    assert not read(path, NoDefault="y").left_out


@pytest.mark.parametrize(
    "properties",
    [
        "Role: !ImportValue role, Policies: [!Ref NoDefault], VpcConfig: {SubnetIds: !Ref NoDefault}",
        "DeadLetterQueue: {Type: SNS, TargetArn: !ImportValue topic}",
        "LoggingConfig: {LogGroup: !ImportValue group}",
        "Tags: {a: '{{resolve:ssm:/a}}'}, Connectors: {C: {Properties: {Destination: {Id: X}}}}",
        variable("!GetAtt Machine.Arn"),
        variable("!GetAtt BadRole.Arn"),
        variable("!Sub '${ServerlessHttpApi.ApiEndpoint}/${ServerlessHttpApi}/${ServerlessRestApi}'"),
    ],
)
def test_a_function_runs_without_values_that_only_a_deployment_needs(properties, tmp_path):
    rest = """
      Machine: {Type: AWS::StepFunctions::StateMachine, Properties: {Role: !ImportValue role}}
      Access: {Type: AWS::Serverless::Connector, Properties: {Source: {Id: Bad}, Permissions: [Read]}}
      """.strip()
    found = read(write(tmp_path, properties, rest))
    assert set(found.functions) == {"Good", "Bad"}
    assert not found.left_out


@pytest.mark.parametrize(
    "layer",
    [
        "arn:aws:lambda:eu-west-1:017000801446:layer:AWSLambdaPowertoolsPythonV3-python313-x86_64:5",
        "!Ref NoDefault",
        "!ImportValue layer",
        "'{{resolve:ssm:/layer}}'",
        "!GetAtt Nested.Outputs.Layer",
        "!Ref Missing",
    ],
)
def test_a_function_with_a_layer_of_elsewhere_runs_and_a_line_says_so(layer, tmp_path):
    """Its packages may be installed in the environment of `make run`."""
    rest = """
      Own: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: good}}
      Missing: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: nowhere}}
      """.strip()
    found = read(write(tmp_path, f"Layers: [{layer}, !Ref Own, !Ref AWS::NoValue]", rest))
    assert found.functions["Bad"].layers == (tmp_path / "good",)
    assert not found.left_out
    [line] = [note for note in found.notes if "can import" in note]
    assert "layer" in line.lower()
    assert len(re.findall("not here|cannot be|only known", line)) == 1


def test_a_variable_of_all_functions_replaces_one_that_cannot_be_resolved(tmp_path):
    written = "Environment: {Variables: {A: '{{resolve:ssm:/a}}', B: !ImportValue b, C: kept}}"
    path = write(tmp_path, written)
    reason = read(path).left_out["Bad"]
    assert "--env A=… --env B=…" in reason
    assert 'VARIABLES="A=… B=…"' in reason
    assert "--env B=…" in read(path, {"A": "1"}).left_out["Bad"]
    assert read(path, {"A": "1", "B": "2"}).functions["Bad"].environment == {"A": "1", "B": "2", "C": "kept"}


def test_a_variable_that_is_nearly_a_setting_is_noted_once(tmp_path):
    variables = "{Variables: {MCP_AUTH_MODE: none, MCP_ROUND_TTL: 5, MCP_API_KEY: x, POWERTOOLS_LOGLEVEL: x}}"
    other = f"Other: {{Type: AWS::Serverless::Function, Properties: {{Environment: {variables}}}}}"
    path = write(tmp_path, f"Environment: {variables}", other)
    [note] = read(path).notes
    assert note.startswith("MCP_ROUND_TTL ")
    assert "MCP_ROUND_TTL_S" in note
    given = read(path, {"MCP_MAX_ROUND": "3"}).notes
    assert [each.split()[0] for each in given] == ["MCP_MAX_ROUND", "MCP_ROUND_TTL"]


PARTS = {
    "Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !ImportValue q}}": "Q.QueueName",
    "Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: soon}}": "Q.VisibilityTimeout",
    "T: {Type: AWS::DynamoDB::Table, Properties: {KeySchema: !ImportValue k}}": "T.KeySchema",
    "B: {Type: AWS::S3::Bucket, Properties: {BucketName: !ImportValue b}}": "B.BucketName",
    "H: {Type: AWS::Serverless::HttpApi, Properties: {CorsConfiguration: !ImportValue c}}": "H.CorsConf",
    "W: {Type: AWS::ApiGatewayV2::Api, Properties: {ProtocolType: WEBSOCKET}}": "W: WebSocket",
    "M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: a}}": "M.EventSourceArn",
    "R: {Type: AWS::ApiGatewayV2::Route, Properties: {RouteKey: GET /, Target: integrations/x}}": "R.Target",
    "X: {Type: AWS::SNS::Topic, Condition: Unknown}": "X.Condition",
    "Fn::ForEach::X: [A, [b], {'${A}': {Type: AWS::SNS::Topic}}]": "Fn::ForEach::X",
    "Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://a/b}}": "Fn::Transform: transforms",
    "A: {Type: AWS::Serverless::Api, Properties: {StageName: a, DefinitionUri: a.yaml}}": "A: REST APIs",
    "A: {Type: AWS::ApiGateway::RestApi}": "A: REST APIs",
    "N: {Type: AWS::Serverless::Application, Properties: {Location: {ApplicationId: a}}}": "N: a nested",
    "N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: https://n.example/n}}": "N: a nested",
    "L: {Type: AWS::Lambda::Function, Properties: {Handler: a.b}}": "L: only AWS::Serverless::Function",
}


@pytest.mark.parametrize(("rest", "reason"), PARTS.items(), ids=PARTS.values())
def test_another_part_that_cannot_be_read_is_left_out_alone(rest, reason, tmp_path):
    found = read(write(tmp_path, rest=rest))
    assert set(found.functions) == {"Good", "Bad"}
    assert {route.path for route in found.routes} == {"/good", "/bad"}
    [line] = describe_left_out(found)
    assert line.startswith(reason)


NOT_SENT = "Bad.Events: .*HttpApi and SQS .* not"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("{Type: HttpApi, Properties: {Path: !ImportValue p, Method: GET}}", "Bad.Events.E.Path"),
        ("{Type: SQS, Properties: {Queue: !ImportValue q}}", "Bad.Events.E.Queue"),
        ("{Type: SQS, Properties: {Queue: arn}}", "Bad.Events.E.Queue"),
        ("{Type: HttpApi, Properties: {ApiId: !ImportValue a}}", "Bad.Events.E.ApiId"),
        ("{Type: HttpApi, Properties: {ApiId: !Ref NoDefault}}", "Bad.Events.E.ApiId"),
        ("{Type: Schedule, Properties: {Schedule: rate(1 day)}}", rf"{NOT_SENT} E \(Schedule\)"),
        ("{Type: HttpAPI}", rf"{NOT_SENT} E \(HttpAPI\)"),
        ("{Type: Api, Properties: {Path: /bad, Method: any}}", rf"{NOT_SENT} E \(Api\)"),
        ("!If [Unknown, {Type: HttpApi}, !Ref AWS::NoValue]", rf"{NOT_SENT} E \(no Type\)"),
    ],
)
def test_an_event_that_cannot_be_read_leaves_its_function(event, reason, tmp_path):
    path = write(tmp_path)
    edit(path, ROUTE, f"Events: {{E: {event}}}")
    found = read(path)
    assert set(found.functions) == {"Good", "Bad"}
    assert [note for note in found.notes if re.match(reason, note)] == list(found.notes) != []


def test_a_route_to_a_function_that_cannot_run_answers_with_the_reason(tmp_path):
    rest = """
      Proxy:
        Type: AWS::ApiGatewayV2::Integration
        Properties: {IntegrationType: HTTP_PROXY, IntegrationUri: https://a.example}
      Away:
        Type: AWS::ApiGatewayV2::Route
        Properties: {RouteKey: ANY /away, Target: !Sub 'integrations/${Proxy}'}
      Last:
        Type: AWS::Serverless::Function
        Properties:
          Events:
            Old: {Type: HttpApi, Properties: {Path: /old, Method: ANY, PayloadFormatVersion: "1.0"}}
      """.strip()
    log: list[str] = []
    with serve(write(tmp_path, "Runtime: nodejs22.x", rest), log=log.append) as app:
        text = banner(app)
        for path, place in (
            ("/bad", "Bad.Runtime"),
            ("/away", "Proxy.IntegrationType"),
            ("/old", "Last.Events.Old.PayloadFormatVersion"),
        ):
            answer = http(app.url(path), method="POST", body=b'{"jsonrpc": "2.0"}')
            assert answer.status == 501
            route, _, reason = answer.json()["message"].partition(": ")
            assert route.startswith(f"ANY {path} ")
            assert reason.startswith(f"{place}: ")
            assert f"{reason} (ANY {path}" in text
        assert http(app.url("/good")).body == b"good"
        assert http(app.url("/nowhere")).status == 404
    assert sum("501" in line for line in log) == 3


CALLER = """
    import json, boto3
    from botocore.exceptions import ClientError

    def handler(event, context):
        client = boto3.client("lambda")
        try:
            client.invoke(FunctionName="Bad", InvocationType=event["type"], Payload=b"{}")
        except ClientError as error:
            return error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    """


def test_an_invocation_of_a_function_that_cannot_run_gets_the_reason(tmp_path):
    caller = "Caller: {Type: AWS::Serverless::Function, Properties: {CodeUri: caller}}"
    path = write(tmp_path, "PackageType: Image", caller)
    write_application(tmp_path, path.read_text(), {"caller/app.py": CALLER})
    log: list[str] = []
    with serve(path, log=log.append) as app:
        for kind in ("RequestResponse", "Event"):
            error, status = app.invoke("Caller", {"type": kind})
            assert status == 501
            assert "Bad.PackageType" in error["Message"]
        with pytest.raises(FunctionFailed, match=r"Bad\.PackageType"):
            app.invoke("Bad", {})
    assert sum("[Bad]" in line and "Bad.PackageType" in line for line in log) == 3


def test_a_template_without_a_function_that_can_run_is_refused_with_all_reasons(tmp_path):
    text = write(tmp_path, "PackageType: Image").read_text().replace("python3.13", "nodejs22.x")
    path = write_application(tmp_path, text, {})
    with pytest.raises(TemplateError, match=r"(?s)Good\.Runtime.*Bad\.PackageType"), serve(path):
        pass
    command = [sys.executable, "-m", "mcp_roundtrip_tools", "run", f"--template={path}", "--port=0"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_the_endpoint_is_that_of_an_mcp_server_beside_other_functions(tmp_path):
    server = """
      Server:
        Type: AWS::Serverless::Function
        Properties:
          Environment: {Variables: {MCP_AUTH_MODE: none}}
          Events:
            Card: {Type: HttpApi, Properties: {Path: /x, Method: GET}}
            Mcp: {Type: HttpApi, Properties: {Path: /tools/mcp, Method: ANY}}
      """.strip()
    with serve(write(tmp_path, rest=server), log=None) as app:
        assert app.endpoint_path() == "/tools/mcp"
    with serve(write(tmp_path), log=None) as app:
        assert app.endpoint_path() == "/bad"
