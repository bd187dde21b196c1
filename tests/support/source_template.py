"""The functions of template.yaml before the SAM transform."""

from pathlib import Path

from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT


def logical_ids() -> dict[str, str]:
    """Return the logical id of every function, by its name without the stack's name."""
    return {
        folder + ("_worker" if logical_id.endswith("WorkerFunction") else ""): logical_id
        for logical_id, folder in functions().items()
    }


def functions() -> dict[str, str]:
    """Return the folder in functions/ of every function, by logical id."""
    return {
        name: Path(resource["Properties"]["CodeUri"]).name
        for name, resource in load(ROOT / "template.yaml")["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
