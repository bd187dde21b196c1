"""The results of a run of the suite as a file, a page and a badge."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Results = Mapping[str, Any]
"""`date`, `suite`, `node`, `python` and `servers`: title, revision, excuses, the counts of each scenario."""

COUNTS: Final = ("passed", "failed", "warnings", "skipped", "excused")

_INTRODUCTION: Final = """\
# Conformance

`make conformance` writes this page. It runs the
[official conformance suite](https://github.com/modelcontextprotocol/conformance) against functions on AWS's
Lambda runtime client: a conformance server with the features that the suite calls, and the application of
`template.yaml`.
"""

_BADGE: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="235" height="20" role="img" \
aria-label="MCP conformance: {text}">
  <title>MCP conformance: {text}</title>
  <clipPath id="r"><rect width="235" height="20" rx="3"/></clipPath>
  <g clip-path="url(#r)">
    <rect width="105" height="20" fill="#444"/>
    <rect x="105" width="130" height="20" fill="{color}"/>
  </g>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
    <text x="52.5" y="14" textLength="93">MCP conformance</text>
    <text x="170.0" y="14" textLength="118">{text}</text>
  </g>
</svg>
"""


def page(results: Results, not_run: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page in Markdown. `not_run` maps revisions to scenarios to reasons."""
    servers: Sequence[Mapping[str, Any]] = results["servers"]
    sections = [
        _INTRODUCTION,
        _table(
            ("", ""),
            [
                ("Date", results["date"]),
                ("Suite", f"`{results['suite']}`"),
                ("Node.js of the suite", results["node"]),
                ("Python of the functions", results["python"]),
                ("Checks", summary(results)),
            ],
        ),
        "## Servers\n",
        _table(
            ("Server", "Protocol", "Scenarios", *(count.capitalize() for count in COUNTS)),
            [
                (
                    each["title"],
                    each["revision"],
                    len(each["scenarios"]),
                    *_totals(each["scenarios"].values()),
                )
                for each in servers
            ],
        ),
        "## Not run\n",
        _table(
            ("Protocol", "Scenarios", "Reason"),
            [
                (revision, names, reason)
                for revision, reasons in not_run.items()
                for reason, names in _by_reason(reasons)
            ],
        ),
        "## Excused\n\nThese checks fail or warn, and do not count.\n",
        _table(
            ("Server", "Scenario", "Checks", "Reason"),
            [
                (each["title"], f"`{scenario}`", names, reason)
                for each in servers
                for scenario, reasons in each["excuses"].items()
                for reason, names in _by_reason(reasons)
            ],
        ),
    ]
    return "\n".join(sections)


def badge(results: Results) -> str:
    """Return the badge in SVG, which needs no other host."""
    failed = sum(_totals(_rows(results))[1:3])
    return _BADGE.format(text=summary(results), color="#b00" if failed else "#176b2c")


def summary(results: Results) -> str:
    """Return the number of passed checks, and of the others that count."""
    passed, failed, warnings, *_ = _totals(_rows(results))
    return f"{passed} passed, {failed + warnings} failed"


def _rows(results: Results) -> list[Mapping[str, int]]:
    return [row for each in results["servers"] for row in each["scenarios"].values()]


def _totals(rows: Iterable[Mapping[str, int]]) -> list[int]:
    counted = list(rows)
    return [sum(row[count] for row in counted) for count in COUNTS]


def _by_reason(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each reason with the names that have it."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(f"`{name}`")
    return [(reason, ", ".join(found)) for reason, found in names.items()]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
