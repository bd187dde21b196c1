"""A single invocation in its own process: `python invocation_process.py app.py` handles the event on stdin.

The response is the last line of stdout. The lines before it are the log of the function.
"""

import json
import sys
from pathlib import Path

from mcp_roundtrip_testing import load_module


def main(path: str) -> None:
    app = load_module(Path(path))
    print(json.dumps(app.handler(json.load(sys.stdin), None)))


if __name__ == "__main__":
    main(sys.argv[1])
