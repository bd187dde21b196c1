"""A hook of Claude Code that plays the user: us-east-1, yes, and otherwise the second of the choices."""

import json
import sys

PREFERRED = "us-east-1"

fields = json.load(sys.stdin).get("requested_schema", {}).get("properties", {})
choices = {name: field.get("enum", [False, True]) for name, field in fields.items()}
content = {name: PREFERRED if PREFERRED in values else values[1] for name, values in choices.items()}
answer = {"hookEventName": "Elicitation", "action": "accept", "content": content}
print(json.dumps({"hookSpecificOutput": answer}))
