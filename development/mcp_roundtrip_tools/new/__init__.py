"""Write a new application: `mcp-roundtrip new`.

- `__main__`: the command, which writes the files in `application/`; `sam init --location` also reads them
- `package_source`: finds the package for the application's layer: by version, or as a wheel
- `platform_files`: the files of platform/, and their checksums
"""
