"""A built function in a process of its own: `artefact_process.py FOLDER HANDLER LAYER RESPONSES`.

The folders of the function and of the layer come first on the import path, as on Lambda; boto3 comes from
this interpreter, as it does from the Lambda runtime. Events are lines on stdin, responses lines on the file
descriptor RESPONSES, since stdout is the log.
"""

import json
import os
import sys


def main(folder: str, handler: str, layer: str, responses: str) -> None:
    sys.path[:0] = [folder, os.path.join(layer, "python")]
    import cryptography
    import pydantic

    import app  # type: ignore[import-not-found]  # of the built function, found on the path set just now
    import mcp_roundtrip

    for module in (mcp_roundtrip, pydantic, cryptography):
        assert (module.__file__ or "").startswith(layer), f"{module.__file__} is not the layer's"
    with os.fdopen(int(responses), "w") as pipe:
        for line in sys.stdin:
            pipe.write(json.dumps(getattr(app, handler)(json.loads(line), None)) + "\n")
            pipe.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
