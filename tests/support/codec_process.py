"""A process that seals and opens tokens with KMS keys.

`codec_process.py <endpoint> <now> direct|delegated <key ARN> [<MAC key ARN>]` reads one JSON line for each
request, {"seal": payload, "round": n, "since": t} or {"open": token}, and writes one line for each. Its
clock is fixed at <now>.
"""

import json
import sys

from mcp_roundtrip.errors import StateRejected
from support.kms_clients import Deployment, client
from support.tokens import BINDING

endpoint, now, signing, key, *mac_keys = sys.argv[1:]
codec = Deployment([key], mac_keys, signing == "delegated").environment(client(endpoint), lambda: float(now))

for line in sys.stdin:
    request = json.loads(line)
    answer: object
    try:
        if "seal" in request:
            answer = codec.seal(
                BINDING, request["seal"], round=request["round"], first_issued_at=request["since"]
            )
        else:
            state = codec.open(BINDING, request["open"])
            answer = {"payload": state.payload, "round": state.round, "since": state.first_issued_at}
    except StateRejected as refused:
        answer = {"refused": refused.reason}
    print(json.dumps(answer), flush=True)
