"""A hook of Claude Code that plays the user: it chooses the last value of a list, and 4301 as a number."""

import json
import sys

fields = json.load(sys.stdin).get("requested_schema", {}).get("properties", {})
content = {name: field["enum"][-1] if "enum" in field else 4301 for name, field in fields.items()}
answer = {"hookEventName": "Elicitation", "action": "accept", "content": content}
print(json.dumps({"hookSpecificOutput": answer}))
