from dataclasses import replace
from pathlib import Path

import pytest

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.observation.records import Cause, caused_by, current_cause
from mcp_roundtrip_tools.template.model import Function
from mcp_roundtrip_tools.template.reader import Template
from support.client_requests import TASKS
from support.manual_timers import START_S, ManualTimers
from support.sam_applications import SERVER_WITH_TASKS, rpc, wait_until, write_application
from support.served_application import serve

QUEUE_ARN = "arn:aws:sqs:us-east-1:000000000000:Failures"
FUNCTION = Function("F", "app.handler", Path("/"), (), {}, 3, 128)
ERROR = InvocationResult(b'{"errorType": "Sandbox.Timedout"}', failed=True)
SUCCESS = InvocationResult(b"null")


class Lambda:
    def __init__(self, failures, scale=1, **options):
        self.timers = ManualTimers()
        self.failures = failures
        self.attempts: list[tuple[float, str | None]] = []
        self.causes: list[Cause] = []
        self.sent: list[tuple[str, str]] = []
        self.log: list[str] = []
        function = replace(FUNCTION, **options)
        self.invocations = AsyncInvocations(
            lambda: {"F": function}, self._run, self._send, self.timers, self.log.append, scale
        )

    def _run(self, invocation):
        self.attempts.append((self.timers.now_s() - START_S, invocation.request_id))
        self.causes.append(current_cause())
        return ERROR if len(self.attempts) <= self.failures else SUCCESS

    def _send(self, arn, body):
        self.sent.append((arn, body))
        return arn == QUEUE_ARN

    def invoke(self):
        """Invoke the function, and wait for a day."""
        invocation = InvokeRequest("F", b'{"n": 1}')
        with caused_by("http", "caller"):  # this invocation requests it
            self.invocations.accept(invocation)
        self.timers.advance(86_400)
        return invocation.request_id


@pytest.mark.parametrize(
    ("failures", "scale", "times"),
    [(0, 1, [0]), (1, 1, [0, 60]), (3, 1, [0, 60, 180]), (3, 0.05, [0, 3, 9])],
)
def test_a_failed_invocation_is_repeated_with_its_id_after_one_and_two_minutes(failures, scale, times):
    functions = Lambda(failures, scale)
    request_id = functions.invoke()
    assert functions.attempts == [(time, request_id) for time in times]
    causes = [Cause("async", "caller"), Cause("retry", "caller"), Cause("retry", "caller")]
    assert functions.causes == causes[: len(times)]
    assert functions.invoke() != request_id


@pytest.mark.parametrize(("max_retries", "times"), [(0, [0]), (1, [0, 60])])
def test_a_function_may_limit_its_retries(max_retries, times):
    functions = Lambda(3, max_retries=max_retries, dead_letter=QUEUE_ARN)
    functions.invoke()
    assert [time for time, _ in functions.attempts] == times
    assert len(functions.sent) == 1


@pytest.mark.parametrize("arn", [QUEUE_ARN, "arn:aws:sns:us-east-1:0:topic"])
def test_a_dead_letter_queue_receives_the_event_and_another_destination_is_named(arn):
    functions = Lambda(3, dead_letter=arn)
    functions.invoke()
    assert functions.sent == [(arn, '{"n": 1}')]
    assert any(f"{arn} " in line for line in functions.log) is (arn != QUEUE_ARN)


TEMPLATE = """
    Resources:
      Failures: {Type: AWS::SQS::Queue}
      Sender: {Type: AWS::Serverless::Function, Properties: {CodeUri: ., Handler: app.sender}}
      Worker:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: ., Handler: app.worker, AutoPublishAlias: live, Timeout: 1, MemorySize: 512}
      Other:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: .
          Handler: app.worker
          DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Failures.Arn}
          EventInvokeConfig: {MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60}
    """
APP = """
    import json, os, resource, signal, time, boto3

    def sender(event, context):
        client = boto3.client("lambda")
        call = {"FunctionName": "Worker", "InvocationType": "Event"}
        reply = client.invoke(**call, Payload=json.dumps(event).encode())
        return reply["ResponseMetadata"]["RequestId"]

    def worker(event, context):
        print("attempt", event["do"], context.aws_request_id, flush=True)
        if os.path.exists(event["mark"]):
            return
        open(event["mark"], "w").close()
        if event["do"] == "raise":
            raise ValueError
        if event["do"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if event["do"] == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            bytearray(1 << 31)
        time.sleep(60)
    """


def test_the_dead_letter_queue_and_the_retries_of_a_function_are_read(tmp_path):
    path = write_application(tmp_path, TEMPLATE, {"app.py": APP})
    functions = Template(path, {}).application().functions
    assert (functions["Worker"].dead_letter, functions["Worker"].max_retries) == (None, 2)
    assert (functions["Other"].dead_letter, functions["Other"].max_retries) == (QUEUE_ARN, 0)


def test_a_process_that_is_killed_runs_out_of_memory_or_time_or_raises_is_repeated(tmp_path):
    lines: list[str] = []

    def attempts(request_id: str) -> int:
        return sum("attempt" in line and request_id in line for line in lines)

    template = write_application(tmp_path, TEMPLATE, {"app.py": APP})
    with serve(template, log=lines.append, retry_delay_scale=0.001) as app:
        sent = {
            do: app.invoke("Sender", {"do": do, "mark": str(tmp_path / do)})
            for do in ("raise", "kill", "memory", "sleep")
        }
        wait_until(lambda: all(attempts(each) == 2 for each in sent.values()))


QUEUE = """
      Queue: {Type: AWS::SQS::Queue}
      QueueToWorker:
        Type: AWS::Lambda::EventSourceMapping
        Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Worker}
    """
SLEEPING = (
    SERVER_WITH_TASKS.replace(
        "{Handler: app.worker_handler",
        "{Environment: {Variables: {MCP_TASK_QUEUE: !Ref Queue}}, Handler: app.worker_handler",
    )
    + QUEUE
)
SLEEPER = """
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
    with serve(write_application(tmp_path, SLEEPING, {"server/app.py": SLEEPER}), log=lines.append) as app:
        created = rpc(app.url(), "tools/call", meta=meta, name="nap", arguments={}).json()
        assert created["result"]["resultType"] == "task", (created, lines)
        wait_until(lambda: any("awake" in line for line in lines))
