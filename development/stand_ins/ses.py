"""A stand-in for Amazon SES: prints each e-mail in the output of `make run`, between lines.

Source: Amazon SES API v2 Reference, SendEmail.
"""

from __future__ import annotations

import json

from mcp_roundtrip_testing.serving import Request, Response

LINE = "-" * 72


def respond(request: Request) -> Response:
    """Answer SendEmail with simple content."""
    if (request.method, request.target) != ("POST", "/v2/email/outbound-emails"):
        return Response(404, (("x-amzn-errortype", "NotFoundException"),), b"{}")
    email = json.loads(request.body)
    content = email["Content"]["Simple"]
    recipients = ", ".join(email["Destination"]["ToAddresses"])
    text = content["Body"]["Text"]["Data"].rstrip()
    print(f"\n{LINE}\nE-mail to {recipients}: {content['Subject']['Data']}\n\n  {text}\n{LINE}\n", flush=True)
    return Response(200, (("content-type", "application/json"),), b'{"MessageId": "local"}')
