"""Print the AWS cost of calls, rounds and tasks as the Markdown tables of docs/explanation/cost.md.

A cost is a measured number of AWS calls times a price in prices.toml. `--into FILE` writes the tables
between the two `make cost` comments of a file instead of printing them.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_usage
from aws_usage import FRONT_DOOR, TOOL, WORKER, Usage, UsageReport
from markdown_tables import (
    assumption,
    markdown_table,
    parse_command,
    read_dated,
    write_tables,
)

PRICES = Path(__file__).with_name("prices.toml")

COMMENTS = "<!-- make cost -->\n", "<!-- end of make cost -->\n"

MILLION = 1_000_000
HOURS_PER_MONTH = 730

Bill = Counter[str]
"""Quantities by the name of their price in prices.toml."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Hold the quantities that cannot be measured here, each with its meaning."""

    tool_ms: int = assumption(20, "a tool's own time in a round, in milliseconds: enter your measured time")
    front_door_ms: int = assumption(15, "the front door's own time in milliseconds, without waiting")
    worker_ms: int = assumption(100, "duration of a worker invocation, in milliseconds")
    cold_share: float = assumption(0.01, "share of invocations with a cold start")
    init_ms: int = assumption(300, "duration of a cold start, in milliseconds")
    log_bytes: int = assumption(1_200, "bytes logged by an invocation: its line and three lines of Lambda")
    access_log_bytes: int = assumption(400, "bytes logged by API Gateway for a request")
    polls: int = assumption(10, "polls of a task")
    retention_hours: int = assumption(48, "hours from the end of a task until DynamoDB has deleted its items")
    sqs_requests: int = assumption(4, "requests for an SQS message: send, receive, hide, delete")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of `per` units in US dollars."""

    usd: float
    per: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of one Region, and the date on which they were read."""

    region: str
    read_on: str
    by_name: Mapping[str, Price]

    @classmethod
    def read(cls, path: Path) -> "Prices":
        return cls(*read_dated(path, Price))

    def usd(self, bill: Mapping[str, float], *names: str) -> float:
        """Add up the bill, or only its named items, in US dollars."""
        prices = ((self.by_name[name], bill[name]) for name in names or bill)
        return sum(amount * price.usd / price.per for price, amount in prices)


# -- bills ----------------------------------------------------------------------------------------------


def make_bill(used: Usage, memory_mb: Mapping[str, int], assumptions: Assumptions) -> Bill:
    """Convert usage into priced quantities, without the KMS calls that an environment makes per hour."""
    invocations = used[FRONT_DOOR] + used[TOOL] + used[WORKER]
    # The front door waits for the tool, so the tool's time is billed twice.
    duration_ms = {
        FRONT_DOOR: used[FRONT_DOOR] * assumptions.front_door_ms + used[TOOL] * assumptions.tool_ms,
        TOOL: used[TOOL] * assumptions.tool_ms,
        WORKER: used[WORKER] * assumptions.worker_ms + used["work_ms"],
    }
    cold_start_ms = assumptions.cold_share * assumptions.init_ms
    logged = invocations * assumptions.log_bytes + used["request"] * assumptions.access_log_bytes
    stored_gb_months = used["stored"] / 1024**3 * assumptions.retention_hours / HOURS_PER_MONTH
    return Counter(
        http_api_request=used["request"],
        lambda_request=invocations,
        lambda_gb_s=sum(
            (ms + used[kind] * cold_start_ms) / 1000 * memory_mb[kind] / 1024
            for kind, ms in duration_ms.items()
        ),
        log_gb=logged / 1024**3,
        read_unit=used["read"],
        write_unit=used["write"],
        table_gb_month=stored_gb_months,
        backup_gb_month=stored_gb_months,
        kms_ecc=used["Sign"],
    )


# -- tables ---------------------------------------------------------------------------------------------


def report(usage: UsageReport, prices: Prices, assumptions: Assumptions) -> str:
    """Return all tables as Markdown."""
    polled = Counter({name: count * assumptions.polls for name, count in usage.poll.items()})
    used = {
        "a call without questions (`weather`)": usage.plain,
        "an additional round with a question": usage.question,
        "a call with one question (`weather`)": usage.plain + usage.question,
        "a call with one question on the question page (`weather`)": usage.parked,
        "a task with three questions (`provision`), without polls": usage.task,
        "a poll of a task": usage.poll,
        f"the same task with {assumptions.polls} polls": usage.task + polled,
        "each minute of work in a task": usage.work_minute,
    }
    bills = {title: make_bill(each, usage.memory_mb, assumptions) for title, each in used.items()}
    return "\n".join(
        [
            "### AWS usage\n",
            _usage_table(used),
            f"### US dollars per million ({prices.region}, {prices.read_on})\n",
            _dollars_table(bills, prices),
            "### Other costs\n",
            _others_table(usage, prices, assumptions),
        ]
    )


def _usage_table(used: Mapping[str, Usage]) -> str:
    columns = {
        "HTTP requests": "request",
        "front door invocations": FRONT_DOOR,
        "tool invocations": TOOL,
        "worker invocations": WORKER,
        "`kms:Sign`": "Sign",
        "write units": "write",
        "read units": "read",
    }
    rows = ([title, *(str(each[name]) for name in columns.values())] for title, each in used.items())
    return markdown_table(["", *columns], rows)


def _dollars_table(bills: Mapping[str, Bill], prices: Prices) -> str:
    columns = {
        "HTTP API": ("http_api_request",),
        "Lambda": ("lambda_request", "lambda_gb_s"),
        "logs": ("log_gb",),
        "DynamoDB": ("read_unit", "write_unit", "table_gb_month", "backup_gb_month"),
        "KMS": ("kms_ecc",),
    }
    rows = []
    for title, bill in bills.items():
        parts = [prices.usd(bill, *names) * MILLION for names in columns.values()]
        rows.append([title, *map(dollars, [*parts, sum(parts)])])
    return markdown_table(["", *columns, "**total**"], rows)


def _others_table(usage: UsageReport, prices: Prices, assumptions: Assumptions) -> str:
    messages = Counter(sqs_request=usage.task[WORKER] * assumptions.sqs_requests)
    renewals = Counter(sqs_request=usage.work_minute["renewal"])
    wake_up = Counter(
        sqs_request=assumptions.sqs_requests,
        lambda_request=1,
        lambda_gb_s=assumptions.tool_ms / 1000 * usage.memory_mb[WORKER] / 1024,
        log_gb=assumptions.log_bytes / 1024**3,
        read_unit=1,
        write_unit=1,
    )
    large, metric, month = Counter(s3_put=1, s3_get=1), Counter(metric_month=1), usage.month
    queue_alarm = Counter(alarm_month=1)
    keys, alarms, dashboards = "kms_key_month", "alarm_month", "dashboard_month"
    costs = {
        "SQS for a million tasks with `TaskDelivery` `queue`": prices.usd(messages) * MILLION,
        "SQS for a million minutes of work with `TaskDelivery` `queue`": prices.usd(renewals) * MILLION,
        "a million wake-ups of sleeping tasks: a message, and an invocation": prices.usd(wake_up) * MILLION,
        "S3 for a million large results, each downloaded once": prices.usd(large) * MILLION,
        f"the stack's {month[keys]} KMS keys, per month": prices.usd(month, keys),
        f"the stack's alarms on {month[alarms]} metrics, per month": prices.usd(month, alarms),
        "each tool with tasks: the alarm on its queue, per month": prices.usd(queue_alarm),
        "the stack's dashboard, per month": prices.usd(month, dashboards),
        "each custom metric with a value, per month": prices.usd(metric),
    }
    rows = ([title, dollars(usd)] for title, usd in costs.items())
    return markdown_table(["", "dollars"], rows)


def dollars(amount: float) -> str:
    return f"{amount:,.2f}"


# -- the command line -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="cost.py", description=__doc__)
    parser.add_argument("--prices", type=Path, default=PRICES, help="a TOML file like benchmarks/prices.toml")
    assumptions, options = parse_command(parser, Assumptions, arguments)
    tables = report(aws_usage.measure_usage(), Prices.read(options["prices"]), assumptions)
    write_tables(tables, options["into"], COMMENTS)


if __name__ == "__main__":
    main()
