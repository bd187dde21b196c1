"""SAM applications that a test writes into its own folder."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip_tools.run.app import LocalApp
from support.messages import META, headers, message

FRONT_DOOR = """
    from pathlib import Path
    from mcp_roundtrip import FrontDoor

    handler = FrontDoor("all", Path(__file__).with_name("catalog.json")).lambda_handler
    """
"""The source of `functions/front_door/app.py`. Its catalog is written by `mcp_roundtrip_tools.catalog`."""


ONE_FUNCTION = """
    Resources:
      F:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          CodeUri: f
          Events: {E: {Type: HttpApi, Properties: {Path: $default, Method: ANY}}}
    """
"""The template of the function `f/app.py`, which has all routes."""

ONE_SERVER = f"""
    Globals:
      Function: {{Timeout: 20, Environment: {{Variables: {{MCP_AUTH_MODE: none}}}}}}{ONE_FUNCTION}"""
"""The template of the MCP server in `f/app.py`."""

SERVER_WITH_TASKS = """
    Parameters: {AuthMode: {Type: String, Default: none}, TokenIssuer: {Type: String, Default: ""}}
    Globals:
      Function:
        Handler: app.handler
        CodeUri: server
        Timeout: 20
        Environment:
          Variables:
            MCP_AUTH_MODE: !Ref AuthMode
            MCP_TOKEN_ISSUER: !Ref TokenIssuer
            MCP_ISSUER: local
            MCP_AUDIENCE: http://127.0.0.1/mcp
            MCP_STATE_KEY_ARN: !GetAtt StateKey.Arn
            MCP_STATE_ENCRYPTION_KEY_ARN: !GetAtt EncryptionKey.Arn
            MCP_TASK_TABLE: !Ref Table
    Resources:
      StateKey: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      EncryptionKey: {Type: AWS::KMS::Key, Properties: {KeySpec: HMAC_256, KeyUsage: GENERATE_VERIFY_MAC}}
      Table:
        Type: AWS::DynamoDB::Table
        Properties:
          AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: sk, AttributeType: S}]
          KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: sk, KeyType: RANGE}]
      Server:
        Type: AWS::Serverless::Function
        Properties:
          Environment: {Variables: {MCP_TASK_WORKER: !GetAtt Worker.Arn}}
          Events: {E: {Type: HttpApi, Properties: {Path: $default, Method: ANY}}}
      Worker: {Type: AWS::Serverless::Function, Properties: {Handler: app.worker_handler}}
    """
"""The template of the MCP server in `server/app.py`, with `handler` and `worker_handler`."""


def front_door_template(**owners: str) -> str:
    """Return the template of a front door and functions, each in the folder of its name.

    `owners` maps the name of each function to the expression in MCP_OWNERS, such as `Greet.Arn`.
    """
    functions = "".join(
        f"""
      {name.title()}: {{Type: AWS::Serverless::Function, Properties: {{CodeUri: functions/{name}}}}}"""
        for name in owners
    )
    expressions = ", ".join(f'"{name}": "${{{expression}}}"' for name, expression in owners.items())
    return f"""
    Globals:
      Function: {{Handler: app.handler, Timeout: 20, Environment: {{Variables: {{MCP_AUTH_MODE: none}}}}}}
    Resources:
      Door:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: functions/front_door
          Environment: {{Variables: {{MCP_OWNERS: !Sub '{{{expressions}}}'}}}}
          Events: {{E: {{Type: HttpApi, Properties: {{Path: /mcp, Method: ANY}}}}}}{functions}
    """


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A running application that tests share, its folder, and its log lines."""

    app: LocalApp
    folder: Path
    log: list[str]


def write_application(folder: Path, template: str, sources: Mapping[str, str]) -> Path:
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    (folder / "template.yaml").write_text(dedent(template))
    return folder / "template.yaml"


WITHIN_S = 30


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what happens in another thread or process."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def rpc(url: str, method: str, /, *, meta: Any = None, sent: Any = None, **params: Any) -> Response:
    """Send a request of a client that cannot be asked. `meta` and the headers `sent` replace members."""
    body = message(method, meta={**META, META_CLIENT_CAPABILITIES: {}, **(meta or {})}, **params)
    given = {**headers(body), **(sent or {})}
    return http(url, method="POST", body=json.dumps(body).encode(), headers=given)


def http(
    url: str, *, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Send an HTTP request and return the response. A status of 400 or more raises nothing."""
    request = Request(url, data=body, method=method, headers=dict(headers or {}))
    try:
        answer: Any = urlopen(request, timeout=2 * WITHIN_S)
    except HTTPError as error:
        answer = error
    with answer:
        return Response(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
