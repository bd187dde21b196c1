import pytest

from support.sam_applications import wait_until
from support.served_application import serve

TEMPLATE = """
    Globals: {Function: {Handler: app.handler, CodeUri: f, Timeout: 20}}
    Resources:
      Text:
        Type: AWS::Serverless::Function
        Properties: {LoggingConfig: {LogGroup: !Ref Somewhere}}
      Own:
        Type: AWS::Serverless::Function
        Properties: {Environment: {Variables: {LOG_LEVEL: debug, POWERTOOLS_LOG_LEVEL: ERROR}}}
      Powertools:
        Type: AWS::Serverless::Function
        Properties: {Environment: {Variables: {POWERTOOLS_LOG_LEVEL: INFO}}}
      Json:
        Type: AWS::Serverless::Function
        Properties:
          LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: INFO}
          Environment: {Variables: {LOG_LEVEL: DEBUG}}
    """
SOURCE = """
    import logging, os
    import boto3

    def handler(event, context):
        do = event.get("do")
        if do == "log":
            for level in ("debug", "info", "warning"):
                getattr(logging, level)(f"{context.function_name} root {level}")
                getattr(logging.getLogger(__name__), level)(f"{context.function_name} own {level}")
        if do == "client":
            boto3.client("sqs")
        if do == "break":
            breakpoint()
        if do == "secrets":
            boto3.client("secretsmanager").list_secrets()
        if do == "kms":
            boto3.client("kms").get_public_key(KeyId="none")
        return {name: os.environ.get(name) for name in event.get("variables", ())}
    """
SOURCES = {"f/app.py": SOURCE}


@pytest.fixture
def app(template, log):
    with serve(template, log=log.append) as app:
        yield app


def wait_for(log, text):
    """Wait until a text is printed. Another thread reads the output."""
    wait_until(lambda: any(text in line for line in log))


@pytest.mark.parametrize(
    ("function", "first", "below"),
    [
        ("Text", "warning", "info"),
        ("Own", "debug", None),
        ("Powertools", "info", "debug"),
        ("Json", "info", "debug"),
    ],
)
def test_log_messages_of_a_function_are_shown_from_its_level_on(app, log, function, first, below):
    app.invoke(function, {"do": "log"})
    wait_for(log, f"{function} own warning")
    for logger in ("root", "own"):
        assert any(f"{function} {logger} {first}" in line for line in log)
        assert not any(f"{function} {logger} {below}" in line for line in log)
    assert any('"level": "INFO"' in line for line in log) is (function == "Json")


def test_botocore_does_not_fill_the_terminal_at_level_debug(app, log):
    app.invoke("Own", {"do": "client"})
    app.invoke("Own", {"do": "log"})
    wait_for(log, "Own own debug")
    assert not any("Found credentials" in line for line in log)


def test_a_breakpoint_without_a_terminal_says_how_to_get_one(app, log):
    with pytest.raises(Exception, match=r"BdbQuit|exit status 1"):
        app.invoke("Text", {"do": "break"})
    wait_for(log, "make run DEBUG=1")


def test_a_service_that_is_not_emulated_is_named_with_the_way_to_reach_it(app, log):
    with pytest.raises(Exception, match=r"secretsmanager .*AWS_ENDPOINT_URL_<SERVICE>"):
        app.invoke("Text", {"do": "secrets"})
    assert any(line.startswith("[secretsmanager] ") for line in log)


def test_variables_are_passed_on_and_credentials_among_them_open_the_stand_ins(template, log, monkeypatch):
    variables = {"AWS_ACCESS_KEY_ID": "AKIDMINE", "AWS_SECRET_ACCESS_KEY": "mine", "LOG_LEVEL": "INFO"}
    for name in ("NOT_NAMED", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of the user")
    with serve(template, variables=variables, log=log.append) as app:
        expected = {
            "AWS_ACCESS_KEY_ID": "AKIDMINE",
            "LOG_LEVEL": "INFO",
            **dict.fromkeys(("AWS_SESSION_TOKEN", "AWS_PROFILE", "NOT_NAMED")),
        }
        assert app.invoke("Own", {"variables": list(expected)}) == expected
        app.invoke("Text", {"do": "log"})
        wait_for(log, "Text own info")
        with pytest.raises(Exception, match="NotFoundException"):
            app.invoke("Own", {"do": "kms"})
