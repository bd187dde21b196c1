"""The command ``mcp-roundtrip``: makes applications, and runs them on this computer.

- `__main__`: the subcommands, each of them the command of another package
- `new`: writes an application from the files in `application/`, which `sam init --location` also reads
- `package_source`: finds the package for the application's layer: by version, or as a wheel
"""
