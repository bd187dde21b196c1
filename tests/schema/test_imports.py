"""Cold starts: the imports of modules that read and write values."""

from pathlib import Path

import pytest

import mcp_roundtrip
from support.interpreters import run_program

PACKAGE = Path(mcp_roundtrip.__file__).parent
MODULES = [
    *("arguments.argument_types", "arguments.raw_arguments", "arguments.mcp_header"),
    *("content.structured_output", "content.blocks", "engine.step_values"),
]
HEAVY = [
    "asyncio",
    "concurrent.futures",
    "email",
    "http",
    "importlib.metadata",  # pydantic looks for plugins when it builds its first validator
    "jsonschema_rs",
    "pydantic.root_model",
    "referencing",
    "ssl",
]

# The package's __init__ imports engine and server. A bare parent package avoids that.
PROGRAM = """
import sys, types
parent = types.ModuleType("mcp_roundtrip")
parent.__path__ = [{package!r}]
sys.modules["mcp_roundtrip"] = parent
import mcp_roundtrip.{module}
print([name for name in {heavy!r} if name in sys.modules])
"""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_at_most_pydantic_and_builds_no_validator(module):
    program = PROGRAM.format(package=str(PACKAGE), module=module, heavy=HEAVY)
    done = run_program(program)
    assert done.stdout.strip() == "[]"
