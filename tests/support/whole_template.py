"""template.yaml with the resources of its nested stacks."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from mcp_roundtrip_tools.new_tool.short_yaml import section
from mcp_roundtrip_tools.template.applications import APPLICATION, with_nested_stacks
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT

TEMPLATE = ROOT / "template.yaml"


@cache
def whole_template() -> Path:
    """Return template.yaml; with nested stacks, a copy that has their resources instead."""
    document = load(TEMPLATE)
    whole = with_nested_stacks(document, ROOT)
    if whole == document:
        return TEMPLATE
    own = {name: each for name, each in whole["Resources"].items() if each["Type"] != APPLICATION}
    folder = tempfile.mkdtemp(prefix="whole-template-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    written = Path(folder) / TEMPLATE.name
    written.write_text(
        "\n".join(
            section(name, value) if isinstance(value, dict) else f'{name}: "{value}"\n'
            for name, value in {**whole, "Resources": own}.items()
        )
    )
    return written
