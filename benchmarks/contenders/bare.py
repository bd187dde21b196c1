"""No protocol at all: the floor that JSON sets."""

import json


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def handler(event, context):
    """Parse, call, dump."""
    message = json.loads(event["body"])
    total = add(**message["params"]["arguments"])
    result = {"content": [{"type": "text", "text": str(total)}]}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
