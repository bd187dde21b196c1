"""A stand-in for Amazon SES: prints each e-mail where `make run` runs.

Source: Amazon SES API v2 Reference, SendEmail.
"""

from __future__ import annotations

import json

from mcp_roundtrip_local.http.messages import Request, Response


def respond(request: Request) -> Response:
    """Answer SendEmail with simple content."""
    if (request.method, request.target) != ("POST", "/v2/email/outbound-emails"):
        return Response(404, (("x-amzn-errortype", "NotFoundException"),), b"{}")
    email = json.loads(request.body)
    content = email["Content"]["Simple"]
    recipients = ", ".join(email["Destination"]["ToAddresses"])
    subject, text = content["Subject"]["Data"], content["Body"]["Text"]["Data"].rstrip()
    print(f"[e-mail] To: {recipients}\n[e-mail] Subject: {subject}\n[e-mail] {text}", flush=True)
    return Response(200, (("content-type", "application/json"),), b'{"MessageId": "local"}')
