import pytest

from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.command import render
from support.sam_applications import Running, write_application
from support.served_application import serve

TEMPLATE = """
    Parameters:
      Stage: {Type: String, Default: dev}
    Globals: {Function: {Handler: app.handler, Timeout: 5}}
    Resources:
      Key: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      KeyAlias: {Type: AWS::KMS::Alias, Properties: {AliasName: alias/state, TargetKeyId: !Ref Key}}
      Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
      Echo:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: echo
          Layers: [!Ref Layer]
          AutoPublishAlias: live
          Environment: {Variables: {STAGE: !Ref Stage, KEY: !GetAtt Key.Arn, ODD: !GetAtt Odd.Arn}}
          Events:
            One: {Type: HttpApi, Properties: {Path: /echo, Method: ANY}}
            Rest: {Type: HttpApi, Properties: {Path: "/echo/{proxy+}", Method: GET}}
      Odd:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: odd
          Timeout: 1
          Environment: {Variables: {NAME: odd}}
          Events: {One: {Type: HttpApi, Properties: {Path: "/odd/{do}", Method: GET}}}
      Broken:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: broken
          Events: {One: {Type: HttpApi, Properties: {Path: /broken, Method: GET}}}
      Leaves:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: leaves}
      Asks:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: asks, Timeout: 20, Environment: {Variables: {KEY: !Ref Key}}}
    """

SOURCES = {
    "layer/in_layer.py": "VALUE = 'from the layer'\n",
    "echo/app.py": """
        import os
        import in_layer

        def handler(event, context):
            print("echo", event)
            return {
                "event": event,
                "pid": os.getpid(),
                "cwd": os.getcwd(),
                "layer": in_layer.VALUE,
                "environment": dict(os.environ),
                "arn": context.invoked_function_arn,
                "memory": context.memory_limit_in_mb,
                "remaining_ms": context.get_remaining_time_in_millis(),
                "custom": context.client_context.custom if context.client_context else None,
            }
        """,
    "odd/app.py": """
        import os, time

        def handler(event, context):
            do = event["pathParameters"]["do"] if "pathParameters" in event else event["do"]
            if do == "raise":
                raise ValueError("a secret of the function")
            if do == "raise_long":
                raise ValueError("x" * 300_000)
            if do == "exit":
                os._exit(3)
            if do == "sleep":
                time.sleep(60)
            if do == "huge":
                return "x" * (6 * 1024 * 1024 + 101)
            if do == "malformed":
                return {"statusCode": "many"}
            if do == "nap":
                time.sleep(0.4)
            return {"pid": os.getpid()}
        """,
    "broken/app.py": "import no_such_module\n",
    "leaves/app.py": "import os\nos._exit(7)\n",
    "asks/app.py": """
        import base64, json, os
        import boto3

        def handler(event, context):
            lambda_ = boto3.client("lambda")
            answers = {}
            given = base64.b64encode(json.dumps({"custom": {"who": "Zo\\u00eb"}}).encode()).decode()
            name = "arn:aws:lambda:us-east-1:000000000000:function:Echo:live"
            echo = lambda_.invoke(FunctionName=name, Payload=b'{"a": 1}', ClientContext=given)
            answers["echo"] = json.loads(echo["Payload"].read())
            odd = lambda_.invoke(FunctionName="Odd", Payload=b'{"do": "raise"}')
            answers["error"] = odd["FunctionError"], json.loads(odd["Payload"].read())["errorType"]
            event = lambda_.invoke(FunctionName="Echo", Qualifier="live", InvocationType="Event")
            answers["event"] = event["StatusCode"]
            for name in ("Nobody", "Echo:other"):
                try:
                    lambda_.invoke(FunctionName=name)
                except lambda_.exceptions.ResourceNotFoundException:
                    answers[name] = "not found"
            try:
                boto3.client("secretsmanager").list_secrets()
            except Exception as error:
                answers["secretsmanager"] = error.response["ResponseMetadata"]["HTTPStatusCode"]
            kms = boto3.client("kms")
            call = {"KeyId": os.environ["KEY"], "Message": b"m", "SigningAlgorithm": "ECDSA_SHA_256"}
            signature = kms.sign(**call)["Signature"]
            call["KeyId"] = "alias/state"
            answers["valid"] = kms.verify(**call, Signature=signature)["SignatureValid"]
            return answers
        """,
}


DEFAULTS = {"TEMPLATE": TEMPLATE, "SOURCES": SOURCES}


@pytest.fixture
def template(request, tmp_path):
    """Write TEMPLATE and SOURCES, or those of the test module, and return the path of the template."""
    template, sources = (getattr(request.module, name, each) for name, each in DEFAULTS.items())
    return write_application(tmp_path, template, sources)


@pytest.fixture
def project(tmp_path):
    write({tmp_path / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    return tmp_path


@pytest.fixture
def log():
    return []


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("application")
    log: list[str] = []
    template = write_application(folder, TEMPLATE, SOURCES)
    with serve(template, parameters={"Stage": "test"}, log=log.append) as app:
        yield Running(app, folder, log)
