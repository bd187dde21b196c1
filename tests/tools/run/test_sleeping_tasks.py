"""Under `make run`, a queue wakes a task whose worker is invoked asynchronously."""

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from support.client_requests import TASKS
from support.sam_applications import SERVER_WITH_TASKS, rpc, wait_until, write_application
from support.served_application import serve

QUEUE = """
      Queue: {Type: AWS::SQS::Queue}
      QueueToWorker:
        Type: AWS::Lambda::EventSourceMapping
        Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Worker}
    """
TEMPLATE = (
    SERVER_WITH_TASKS.replace(
        "{Handler: app.worker_handler",
        "{Environment: {Variables: {MCP_TASK_QUEUE: !Ref Queue}}, Handler: app.worker_handler",
    )
    + QUEUE
)

APP = """
    from mcp_roundtrip import Context, Server

    server = Server("naps")

    @server.tool(task="required")
    def nap(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.sleep("nap", 100)
        print("awake", flush=True)

    handler, worker_handler = server.lambda_handler, server.worker_handler
    """


def test_a_task_that_sleeps_in_invoke_mode_wakes_without_a_poll(tmp_path):
    lines: list[str] = []
    meta = {META_CLIENT_CAPABILITIES: TASKS}
    with serve(write_application(tmp_path, TEMPLATE, {"server/app.py": APP}), log=lines.append) as app:
        created = rpc(app.url(), "tools/call", meta=meta, name="nap", arguments={}).json()
        assert created["result"]["resultType"] == "task", (created, lines)
        wait_until(lambda: any("awake" in line for line in lines))
