"""The command ``mcp-roundtrip`` and those of the Makefile. Applications import `mcp_roundtrip_testing`.

`__main__` is the command ``mcp-roundtrip``. Its subcommands are in these packages and modules:

- `new`: writes an application, and replaces its platform/; `growth`: adds tools, functions and more to it
- `run`: serves template.yaml on this computer, with the `console`
- `call`: calls a tool; `smoke`: checks a deployed endpoint
- `catalog`: writes the front door's catalog; `events`: writes sample events
- `lint`: finds code that differs when a tool is replayed
- `deploy`: builds and deploys; `deployer_policy`: the policy of the role that deploys
- `prune`: deletes the versions of workers that no task needs

Commands share `template`, which reads template.yaml, and `client`, which sends MCP requests.
"""
