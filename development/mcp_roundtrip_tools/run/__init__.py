"""Run a SAM template on this computer: real Lambda runtime processes, without Docker and without AWS.

`command` is ``mcp-roundtrip run``; `serve` does the same from Python. Where to look:

- `serving`: `serve`, which starts all servers (`options`); `app`: `LocalApp`, which runs the functions
- `http/`: the HTTP server on 127.0.0.1, and which requests of web pages it refuses
- `api_gateway/`: the HTTP API: routes, events in payload format 2.0, CORS
- `execution/`: runtime processes, their pools, the Runtime API, requirements.txt
- `services/`: what functions call: Lambda, KMS, SQS, DynamoDB and S3 (ministack), HTTP stand-ins
- `observation/`: the record of what happened; `terminal/`: what of it the terminal shows
- `issuer/`: signs users in
- `project`, `fresh_catalogs`: what runs when sources change

`mcp_roundtrip_tools.template` reads template.yaml, and `mcp_roundtrip_tools.console` is the page at the root.
"""
