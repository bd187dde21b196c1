"""Parse and dump JSON without a protocol, as a lower bound."""

import json


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def handler(event, context):
    """Parse the request, call the function and dump the result."""
    message = json.loads(event["body"])
    total = add(**message["params"]["arguments"])
    result = {"content": [{"type": "text", "text": str(total)}]}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
