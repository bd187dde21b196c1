"""A process that seals and opens tokens with a KMS key: `state_process.py <endpoint> <key ARN>`.

Reads one JSON line for each request, {"seal": payload, "round": n, "since": t} or {"open": token}, and
answers each with one line.
"""

import json
import secrets
import sys
import time

from mcp_roundtrip.aws.kms import KmsPublicKeys, KmsSigner
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.codec import RequestStateCodec
from support.kms import client
from support.tokens import BINDING

endpoint, arn = sys.argv[1:]
kms = client(endpoint)
keys = KmsPublicKeys(kms, [arn], time.time)
codec = RequestStateCodec(KmsSigner(kms, arn, keys), keys, Limits(), time.time, lambda: secrets.token_hex(16))

for line in sys.stdin:
    request = json.loads(line)
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
