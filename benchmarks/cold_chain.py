"""Measure cold calls as Lambda runs them, and compare them with an earlier revision and with other servers.

    python benchmarks/cold_chain.py [--turns N] [--only TEXT]

The figures do not include the start of the microVM, the download of the code and the network.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import cold_tables
import revisions
from cold_calls import forwarded_call, list_tools, plain_call, whole_chain
from cold_processes import ColdLambda, Sample, cold_lambda
from cold_tables import CHAIN, CHAIN_OF_TEMPLATE, FORWARDED, LISTED, ColdFigures, Row
from cpu_limits import MB_OF_ONE_VCPU, cpu_limits
from import_times import own_import_ms
from measure import AWSLABS, HERE, JSON_ONLY, MCP, OURS, BenchmarkError
from revisions import Deployment, RevisionUnavailable
from tables import targets_table

REVISION = "71cca3bfad243720d26a13fd2b04ed1b0f11b6e1"
"""The last revision before cold calls were measured."""
CATALOG_OF_REVISION = "mcp_roundtrip.local.catalog"

TURNS = 5
SIZES_MB = (512, 1024, MB_OF_ONE_VCPU)


def measure_cold_calls(turns: int = TURNS, only: str = "") -> ColdFigures:
    """Measure the rows whose title contains `only`. Raise BenchmarkError."""
    with (
        tempfile.TemporaryDirectory() as name,
        cpu_limits(folder := Path(name)) as limits,
        cold_lambda(limits) as lambda_,
    ):
        deployed = _deploy(folder)
        rows = _revision_rows(lambda_, deployed)
        own_import, peers = _own_import_row(deployed), _peer_row(lambda_, deployed[-1], folder)
        for turn in range(turns):
            for row in (*rows, own_import, peers):
                if only in row.title:
                    row.take(turn)
        return ColdFigures(limits.title, turns, [row for row in rows if row.samples], own_import, peers)


def _deploy(folder: Path) -> tuple[Deployment, ...]:
    """Deploy the earlier revision, unless git does not have it, and the working tree."""
    now = revisions.deploy_now(folder)
    try:
        return revisions.deploy_revision(REVISION, CATALOG_OF_REVISION, folder), now
    except RevisionUnavailable as error:
        print(f"cold calls are not compared with {REVISION[:7]}: {error}", file=sys.stderr)
        return (now,)


def _revision_rows(lambda_: ColdLambda, deployed: Sequence[Deployment]) -> list[Row]:
    def row(title: str, call: Callable[..., Sample], *sizes_mb: int) -> Row:
        return Row(title, {each.title: partial(call, lambda_, each, *sizes_mb) for each in deployed})

    rows = [row(CHAIN.format(mb), whole_chain, mb, mb) for mb in SIZES_MB if lambda_.limits.supports(mb)]
    if lambda_.limits.has_quotas:
        own_sizes = {
            each.title: partial(whole_chain, lambda_, each, each.front_door_mb, each.tool_mb)
            for each in deployed
        }
        rows.append(Row(CHAIN_OF_TEMPLATE, own_sizes))
    return [*rows, row(FORWARDED, forwarded_call), row(LISTED, list_tools)]


def _own_import_row(deployed: Sequence[Deployment]) -> Row:
    def sample(path: tuple[Path, ...]) -> Sample:
        return Sample({"import": own_import_ms(path)}, 0)

    return Row("import of mcp_roundtrip", {each.title: partial(sample, each.path) for each in deployed})


def _peer_row(lambda_: ColdLambda, now: Deployment, folder: Path) -> Row:
    shutil.copytree(HERE / "implementations", folder / "peers" / "implementations")
    revisions.compile_bytecode(folder / "peers")
    peers = revisions.installed((HERE / "requirements.txt").read_text(encoding="utf-8"))
    paths = {JSON_ONLY: now.path[-1:], OURS: now.path, MCP: (peers,), AWSLABS: (peers,)}
    return Row(
        "plain tool",
        {
            each.title: partial(plain_call, lambda_, each, folder / "peers", (*path, now.path[-1]))
            for each, path in paths.items()
        },
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="samples of each figure (default: %(default)s)"
    )
    parser.add_argument("--only", default="", help="measure only rows whose title contains this text")
    given = parser.parse_args()
    try:
        figures = measure_cold_calls(given.turns, given.only)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    print(*cold_tables.cold_tables(figures), targets_table(cold_tables.cold_targets(figures)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
