"""One token in this fresh process: `state_cold.py ours|sdk PIPE`, the material on stdin.

With a token in the material it is opened, otherwise one is minted. As in `probe.py`, only what the
interpreter has anyway is imported before the clock starts. Neither contender is charged for the other: the
SDK's codec gets its claims ready-made, since building them would import this project.
"""

import marshal
import os
import sys
from time import perf_counter


def ours(binding, payload, token, **_):
    from mcp_roundtrip import wiring
    from mcp_roundtrip.state.claims import Binding

    states = wiring.ports().state_codec()
    if token is None:
        return states.seal(Binding(**binding), payload, round=1, first_issued_at=None)
    return states.open(Binding(**binding), token).payload


def sdk(secret, claims, token, **_):
    import json

    from mcp.server.request_state import AESGCMRequestStateCodec, compact_json

    codec = AESGCMRequestStateCodec([secret])
    if token is None:
        return codec.seal(compact_json(claims).encode())
    return json.loads(codec.unseal(token))["st"]


def main(contender, pipe):
    material = marshal.load(sys.stdin.buffer)
    started = perf_counter()
    result = contender(**material)
    figures = {"ms": (perf_counter() - started) * 1000, "result": result}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


if __name__ == "__main__":
    main({"ours": ours, "sdk": sdk}[sys.argv[1]], int(sys.argv[2]))
