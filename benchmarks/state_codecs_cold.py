"""Time the first token of a process: `state_codecs_cold.py roundtrip|sdk PIPE`, the arguments on stdin.

A token in the arguments is opened; without one, a token is minted. As in `invocations.py`, the imports are
part of the measurement. The SDK's codec gets its claims ready-made, because building them would import this
project.
"""

import marshal
import os
import sys
from time import perf_counter


def roundtrip(binding, payload, token, **_):
    from mcp_roundtrip.deployment import wiring
    from mcp_roundtrip.state.claims import Binding

    codec = wiring.ports().state_codec()
    if token is None:
        return codec.seal(Binding(**binding), payload, round=1, first_issued_at=None)
    return codec.open(Binding(**binding), token).payload


def sdk(secret, claims, token, **_):
    import json

    from mcp.server.request_state import AESGCMRequestStateCodec, compact_json

    codec = AESGCMRequestStateCodec([secret])
    if token is None:
        return codec.seal(compact_json(claims).encode())
    return json.loads(codec.unseal(token))["st"]


def main(run_codec, pipe):
    material = marshal.load(sys.stdin.buffer)
    started = perf_counter()
    result = run_codec(**material)
    figures = {"ms": (perf_counter() - started) * 1000, "result": result}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


if __name__ == "__main__":
    main({"roundtrip": roundtrip, "sdk": sdk}[sys.argv[1]], int(sys.argv[2]))
