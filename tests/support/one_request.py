"""One invocation in a process of its own: `python one_request.py app.py` answers the event on stdin.

The response is the last line of stdout; what stands before it is the function's log.
"""

import importlib.util
import json
import sys


def main(path: str) -> None:
    spec = importlib.util.spec_from_file_location("app", path)
    assert spec is not None
    assert spec.loader is not None
    app = importlib.util.module_from_spec(spec)
    sys.modules["app"] = app
    spec.loader.exec_module(app)
    print(json.dumps(app.handler(json.load(sys.stdin), None)))


if __name__ == "__main__":
    main(sys.argv[1])
