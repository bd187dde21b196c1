"""``python -m mcp_roundtrip_tools.deployer_policy TEMPLATE…``: write the pipeline's policies.

The arguments are template.yaml after the SAM transform, and its nested templates.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp_roundtrip_tools.deployer_policy.deployer_policy import UnknownType, update
from mcp_roundtrip_tools.template.yaml_reader import load

PIPELINE = Path("platform/pipeline/template.yaml")


def main(arguments: list[str]) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    templates = [load(Path(each)) for each in arguments]
    try:
        changed = update(PIPELINE, templates)
    except (UnknownType, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{PIPELINE} {'has new policies' if changed else 'is up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
