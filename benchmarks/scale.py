"""Print what one account and Region carries, as the Markdown tables of docs/explanation/scale.md.

`--into FILE` writes the tables between the two `make scale` comments of a file instead of printing them.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import aws_usage
import kms_usage
from markdown_tables import markdown_table, parse_command, write_tables
from scale_loads import (
    LOADS,
    QUOTAS,
    Assumptions,
    Quotas,
    Workload,
    carried,
    regions_needed,
    workloads,
)

COMMENTS = "<!-- make scale -->\n", "<!-- end of make scale -->\n"

RATES = (1_000, 10_000, 100_000)
"""Calls a second."""

LARGEST = 1_000_000
"""Quotas that carry more calls a second are left out."""


# -- tables ---------------------------------------------------------------------------------------------


def report(found: Sequence[Workload], quotas: Quotas) -> str:
    """Return all tables as Markdown."""
    return "\n".join(
        [
            f"### Calls a second that a quota carries ({quotas.region}, read on {quotas.read_on})\n",
            _limits_table(found, quotas),
            "### Accounts and Regions, at default quotas\n",
            _regions_table(found, quotas),
        ]
    )


def _limits_table(found: Sequence[Workload], quotas: Quotas) -> str:
    carries = [{name: calls for name, _, calls in carried(each, quotas)} for each in found]
    used = [name for name in LOADS if any(each.get(name, math.inf) <= LARGEST for each in carries)]
    rows = [
        [
            LOADS[name][0],
            number(quotas.by_name[name].value),
            quotas.by_name[name].raised,
            *(number(each[name]) if name in each else "" for each in carries),
        ]
        for name in used
    ]
    right = (1, *range(3, 3 + len(found)))
    return markdown_table(["a second", "limit", "raised", *(each.title for each in found)], rows, right=right)


def _regions_table(found: Sequence[Workload], quotas: Quotas) -> str:
    rows = []
    for workload in found:
        needed = [regions_needed(workload, quotas, rate) for rate in RATES]
        rows.append([workload.title, *(f"{count:,}" for count, _ in needed), LOADS[needed[-1][1]][0]])
    return markdown_table(["", *_rate_headers(), "decided by"], rows, right=range(1, 1 + len(RATES)))


def _rate_headers() -> list[str]:
    return [f"at {rate:,}" for rate in RATES]


def number(value: float) -> str:
    """Return a number with two significant digits below 100, and as a whole number above."""
    if value > LARGEST:
        return "> 1 million"
    if value >= 100 or value == int(value):
        return f"{round(value):,}"
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:.2g}" if value >= 0.01 else "< 0.01"


# -- the command line -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scale.py", description=__doc__)
    parser.add_argument("--quotas", type=Path, default=QUOTAS, help="a TOML file like benchmarks/quotas.toml")
    assumptions, options = parse_command(parser, Assumptions, arguments)
    found = workloads(aws_usage.measure_usage(), kms_usage.measure_kms_usage(), assumptions)
    write_tables(report(found, Quotas.read(options["quotas"])), options["into"], COMMENTS)


if __name__ == "__main__":
    main()
