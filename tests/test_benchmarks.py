"""The benchmarks that need no peer still run: they use what they measure as it is today."""

import sys
from pathlib import Path

import boto3
import pytest

from support.stores import new_table

pytest_plugins = ["support.ministack"]

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    "command", [("replay.py", "1"), ("task_calls.py",), ("task_resume.py", "1", "2")], ids=lambda c: c[0]
)
def test_a_benchmark_runs(command, ministack, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import measure

    account = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench"}
    region = measure.ENVIRONMENT["AWS_REGION"]
    dynamodb = boto3.client("dynamodb", region_name=region, endpoint_url=ministack, **account)
    variables = {
        **{name.upper(): value for name, value in account.items()},
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL_DYNAMODB": ministack,
        "MCP_TASK_TABLE": new_table(dynamodb),
    }
    dynamodb.close()
    assert measure.process(*command, variables=variables)
    for name in ("measure", "payloads", "probe"):
        sys.modules.pop(name, None)
