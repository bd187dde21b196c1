"""``mcp-roundtrip prune``: list the versions of workers; --delete deletes the unused ones.

Exit status: 1 if a version could not be deleted, 2 if the account could not be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_tools.deploy.account import connect
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Refused, read_environment
from mcp_roundtrip_tools.prune.account import Version, Workers, plan


def main(arguments: Sequence[str] | None = None, clients: Callable[[str], Any] | None = None) -> int:
    """Run the command; return its exit status. `clients` replaces boto3's clients in tests."""
    options = _parser().parse_args(arguments)
    try:
        environment = read_environment(Path.cwd(), options.env)
        stack = options.stack or environment.option("stack_name") or ""
        connected = clients or connect(environment.option("region"), environment.option("profile")).clients
        workers = Workers.of_stack(connected, stack)
        # Versions are read first: one that is published meanwhile is not in the plan.
        rows = plan(list(workers.versions()), workers.use(int(time.time())))
    except (Refused, SettingsError, BotoCoreError, ClientError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for version, reason in rows:
        decision = "unused" if reason is None else f"kept: {reason}"
        print(f"{version.function} {version.number}  {version.published}  {decision}")
    unused = [version for version, reason in rows if reason is None]
    megabytes = sum(each.code_bytes for each in unused) / 1e6
    total = f"{len(unused)} of {len(rows)} versions of {len(workers.names)} workers"
    if not options.delete:
        print(f"{total} can be deleted ({megabytes:.1f} MB): DELETE=1 deletes them.")
        return 0
    failed = [each for each in unused if not _delete(workers, each)]
    print(f"{total} were to be deleted ({megabytes:.1f} MB); {len(failed)} failed.")
    return 1 if failed else 0


def _delete(workers: Workers, version: Version) -> bool:
    try:
        workers.delete(version)
    except (BotoCoreError, ClientError) as error:
        print(f"error: {version.function} {version.number}: {error}", file=sys.stderr)
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip prune", description="List the versions of workers; delete the unused ones."
    )
    parser.add_argument("--env", default=DEFAULT, help="the environment of samconfig.toml")
    parser.add_argument("--stack", default="", help="another stack than the environment's")
    parser.add_argument("--delete", action="store_true", help="delete the versions that nothing needs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
