"""Under `make run`, a queue wakes a task whose worker is invoked asynchronously."""

import threading

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from support.client_requests import TASKS
from support.sam_applications import rpc, write_application
from support.served_application import serve

WITHIN_S = 30

TEMPLATE = """
    Globals:
      Function:
        CodeUri: .
        Timeout: 20
        Environment:
          Variables:
            MCP_AUTH_MODE: none
            MCP_ISSUER: naps
            MCP_AUDIENCE: urn:naps
            MCP_TASK_TABLE: !Ref Tasks
    Resources:
      Tool:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          Environment: {Variables: {MCP_TASK_WORKER: !GetAtt Worker.Arn}}
          Events: {Mcp: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
      Worker:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.worker
          Environment: {Variables: {MCP_TASK_QUEUE: !Ref Queue}}
      Queue: {Type: AWS::SQS::Queue}
      QueueToWorker:
        Type: AWS::Lambda::EventSourceMapping
        Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Worker}
      Tasks:
        Type: AWS::DynamoDB::Table
        Properties:
          AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: sk, AttributeType: S}]
          KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: sk, KeyType: RANGE}]
          BillingMode: PAY_PER_REQUEST
    """

APP = """
    from mcp_roundtrip import Context, Server

    server = Server("naps")

    @server.tool(task="required")
    def nap(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.sleep("nap", 100)
        print("awake", flush=True)

    handler = server.lambda_handler
    worker = server.worker_handler
    """


def test_a_task_that_sleeps_in_invoke_mode_wakes_without_a_poll(tmp_path):
    lines: list[str] = []
    ended = threading.Event()

    def log(line: str) -> None:
        lines.append(line)
        if "awake" in line:
            ended.set()

    meta = {META_CLIENT_CAPABILITIES: TASKS}
    with serve(write_application(tmp_path, TEMPLATE, {"app.py": APP}), log=log) as app:
        created = rpc(app.url(), "tools/call", meta=meta, name="nap", arguments={}).json()
        assert created["result"]["resultType"] == "task", (created, lines)
        assert ended.wait(WITHIN_S), lines
