"""What calls, rounds and tasks cost on AWS: counted calls times stated prices, the Markdown of docs/cost.md.

`--into FILE` puts it between the two comments of a file instead of printing it.
"""

import argparse
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import cost_calls
import cost_hours
from cost_calls import FRONT_DOOR, TOOL, WORKER, Counted, Usage
from cost_hours import Hour

PRICES = Path(__file__).with_name("prices.toml")

BEGIN, END = "<!-- make cost -->\n", "<!-- end of make cost -->\n"

MILLION = 1_000_000
HOURS_OF_A_MONTH = 730
DEFAULT = "direct, encrypted"
HOURLY = ("Sign", "GetPublicKey", "GenerateMac")

Bill = Counter[str]
"""How much of each thing that has a price, by the price's name."""


def assumed(value: float, meaning: str) -> Any:
    return field(default=value, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What nobody can count here."""

    tool_ms: int = assumed(20, "how long a tool works on a round, in milliseconds: put your own time here")
    front_door_ms: int = assumed(15, "the front door's own time, besides waiting for the tool")
    worker_ms: int = assumed(100, "how long a worker works on a task, each time")
    cold_share: float = assumed(0.01, "share of invocations that start an environment")
    init_ms: int = assumed(600, "how long that takes")
    log_bytes: int = assumed(1_200, "logged by an invocation: its own line, and Lambda's three")
    access_log_bytes: int = assumed(400, "logged by API Gateway for a request")
    calls_an_hour: int = assumed(1_000, "calls with a question that one environment answers in an hour")
    polls: int = assumed(10, "polls of a task")
    kept_hours: int = assumed(48, "from a task's end until DynamoDB has removed what expired")
    sqs_requests: int = assumed(3, "for a message: sent, received, deleted (TaskDelivery queue)")


@dataclass(frozen=True, slots=True)
class Price:
    """`usd` for `per` of something."""

    usd: float
    per: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Prices:
    region: str
    seen: str
    by_name: Mapping[str, Price]

    @classmethod
    def read(cls, path: Path) -> "Prices":
        content = tomllib.loads(path.read_text("utf-8"))
        region, seen = content.pop("region"), content.pop("seen").isoformat()
        return cls(region, seen, {name: Price(**price) for name, price in content.items()})

    def usd(self, bill: Mapping[str, float], *names: str) -> float:
        """Of everything on the bill, or of these."""
        prices = ((self.by_name[name], bill[name]) for name in names or bill)
        return sum(amount * price.usd / price.per for price, amount in prices)


# -- bills ----------------------------------------------------------------------------------------------


def bill_of(used: Usage, memory_mb: Mapping[str, int], assumptions: Assumptions) -> Bill:
    """What something used, in things that have a price. Of KMS only what each state takes."""
    invocations = used[FRONT_DOOR] + used[TOOL] + used[WORKER]
    # The front door waits for a tool: that is the time of both.
    working_ms = {
        FRONT_DOOR: used[FRONT_DOOR] * assumptions.front_door_ms + used[TOOL] * assumptions.tool_ms,
        TOOL: used[TOOL] * assumptions.tool_ms,
        WORKER: used[WORKER] * assumptions.worker_ms,
    }
    starting_ms = assumptions.cold_share * assumptions.init_ms
    logged = invocations * assumptions.log_bytes + used["request"] * assumptions.access_log_bytes
    stored_gb_months = used["stored"] / 1024**3 * assumptions.kept_hours / HOURS_OF_A_MONTH
    return Counter(
        http_api_request=used["request"],
        lambda_request=invocations,
        lambda_gb_s=sum(
            (ms + used[kind] * starting_ms) / 1000 * memory_mb[kind] / 1024
            for kind, ms in working_ms.items()
            if used[kind]
        ),
        log_gb=logged / 1024**3,
        read_unit=used["read"],
        write_unit=used["write"],
        table_gb_month=stored_gb_months,
        backup_gb_month=stored_gb_months,
        kms_ecc=used["Sign"],
    )


def kms_bill(operations: Mapping[str, float]) -> Bill:
    """Of KMS requests by operation."""
    return Counter(
        kms_ecc=operations.get("Sign", 0) + operations.get("GetPublicKey", 0),
        kms_hmac=operations.get("GenerateMac", 0),
    )


# -- tables ---------------------------------------------------------------------------------------------


def report(counted: Counted, hours: Mapping[str, Hour], prices: Prices, assumptions: Assumptions) -> str:
    """All of it."""
    polled = Counter({name: count * assumptions.polls for name, count in counted.poll.items()})
    used = {
        "a call without questions (`weather`)": counted.plain,
        "a further round, with its question": counted.question,
        "a call with one question (`weather`)": counted.plain + counted.question,
        "a task with three questions (`provision`), not polled": counted.task,
        "a poll of a task": counted.poll,
        f"that task with {assumptions.polls} polls": counted.task + polled,
    }
    bills = {what: bill_of(usage, counted.memory_mb, assumptions) for what, usage in used.items()}
    return "\n".join(
        [
            "### Counted\n",
            _usage_table(used),
            f"### Dollars per million ({prices.region}, {DEFAULT} states)\n",
            _dollars_table(bills, prices),
            "### Signing and encryption\n",
            _variants_table(bills["a call with one question (`weather`)"], hours, prices, assumptions),
            "### What else there is\n",
            _others_table(counted, prices, assumptions),
            "### Assumed\n",
            _assumptions_table(assumptions, counted.memory_mb),
            f"### Prices (list prices of {prices.region}, seen {prices.seen})\n",
            _prices_table(prices),
        ]
    )


def _usage_table(used: Mapping[str, Usage]) -> str:
    columns = {
        "HTTP requests": "request",
        "front door": FRONT_DOOR,
        "tool": TOOL,
        "worker": WORKER,
        "`kms:Sign`": "Sign",
        "write units": "write",
        "read units": "read",
    }
    rows = ([what, *(str(usage[name]) for name in columns.values())] for what, usage in used.items())
    return table(["", *columns], rows)


def _dollars_table(bills: Mapping[str, Bill], prices: Prices) -> str:
    columns = {
        "HTTP API": ("http_api_request",),
        "Lambda": ("lambda_request", "lambda_gb_s"),
        "logs": ("log_gb",),
        "DynamoDB": ("read_unit", "write_unit", "table_gb_month", "backup_gb_month"),
        "KMS": ("kms_ecc",),
    }
    rows = []
    for what, bill in bills.items():
        parts = [prices.usd(bill, *names) * MILLION for names in columns.values()]
        total = sum(parts)
        rows.append([what, *map(dollars, parts), dollars(total), dollars(total - parts[-1])])
    return table(["", *columns, "**total**", "total, delegated"], rows)


def _variants_table(call: Bill, hours: Mapping[str, Hour], prices: Prices, assumptions: Assumptions) -> str:
    rest = prices.usd(call) - prices.usd(call, "kms_ecc")
    rows = []
    for title, hour in hours.items():
        each, besides = prices.usd(kms_bill(hour.each)), prices.usd(kms_bill(hour.besides))
        kms = each + besides / assumptions.calls_an_hour
        requests = [f"{hour.besides.get(name, 0):g}" for name in HOURLY]
        totals = [dollars(kms * MILLION), dollars((rest + kms) * MILLION)]
        rows.append([title, str(hour.each["Sign"]), *requests, *totals])
    hourly = [f"`{name}` an hour" for name in HOURLY]
    header = ["", "`Sign` a state", *hourly, "KMS, a million calls", "**all, a million calls**"]
    return table(header, rows)


def _others_table(counted: Counted, prices: Prices, assumptions: Assumptions) -> str:
    messages = Counter(sqs_request=counted.task[WORKER] * assumptions.sqs_requests)
    large, metric, month = Counter(s3_put=1, s3_get=1), Counter(metric_month=1), counted.month
    keys, alarms, dashboards = "kms_key_month", "alarm_month", "dashboard_month"
    bought = {
        "a million tasks by `TaskDelivery` `queue`, besides": prices.usd(messages) * MILLION,
        "a million large results by link, fetched once": prices.usd(large) * MILLION,
        f"a month of the stack's {month[keys]} KMS keys": prices.usd(month, keys),
        f"a month of its alarms, on {month[alarms]} metrics": prices.usd(month, alarms),
        "a month of its dashboard": prices.usd(month, dashboards),
        "a month of each metric that a function counted in": prices.usd(metric),
    }
    rows = ([what, dollars(usd)] for what, usd in bought.items())
    return table(["", "dollars"], rows)


def _assumptions_table(assumptions: Assumptions, memory_mb: Mapping[str, int]) -> str:
    rows = [
        [f"`{option(each.name)}`", f"{getattr(assumptions, each.name):,}", each.metadata["meaning"]]
        for each in fields(assumptions)
    ]
    memory = [[f"memory, {kind}", f"{mb:,}", "MB, from `template.yaml`"] for kind, mb in memory_mb.items()]
    return table(["", "", ""], [*rows, *memory], right=(1,))


def _prices_table(prices: Prices) -> str:
    rows = [
        [price.unit, f"{price.usd:.10f}".rstrip("0").ljust(4, "0"), f"{price.per:,}", f"<{price.source}>"]
        for price in prices.by_name.values()
    ]
    return table(["", "dollars", "for", ""], rows, right=(1, 2))


def option(name: str) -> str:
    """Of the command line, for an assumption."""
    return f"--{name.replace('_', '-')}"


def dollars(amount: float) -> str:
    return f"{amount:,.2f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] | None = None) -> str:
    """Markdown; all columns but the first are flush right, or those that `right` names."""
    flush = range(1, len(header)) if right is None else right
    rule = ["---:" if column in flush else "---" for column in range(len(header))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, rule, *rows))


# -- the command line -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="cost.py", description=__doc__)
    parser.add_argument("--prices", type=Path, default=PRICES, help="TOML, as benchmarks/prices.toml")
    parser.add_argument("--into", type=Path, help="a Markdown file")
    for each in fields(Assumptions):
        meaning, default = each.metadata["meaning"], each.default
        parser.add_argument(option(each.name), type=type(default), default=default, help=meaning)
    options = vars(parser.parse_args(arguments))
    prices, into = Prices.read(options.pop("prices")), options.pop("into")
    found = report(cost_calls.counted(), cost_hours.hours(), prices, Assumptions(**options))
    if into is None:
        print(found, end="")
    else:
        into.write_text(inserted(into.read_text("utf-8"), found), "utf-8")


def inserted(document: str, found: str) -> str:
    """The document with `found` between its two comments. Raises ValueError if it has none."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the file has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{found}\n{end}{after}"


if __name__ == "__main__":
    main()
