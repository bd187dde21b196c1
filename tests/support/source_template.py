"""template.yaml before the SAM transform."""

from pathlib import Path
from typing import Any

import yaml

from support.project import ROOT


class IntrinsicsIgnored(yaml.CSafeLoader):
    """A YAML loader that reads plain values and turns intrinsic functions into None."""


IntrinsicsIgnored.add_multi_constructor("!", lambda loader, suffix, node: None)


def read_template(path: Path | None = None) -> Any:
    """Return the template at `path`, or template.yaml, with None for each intrinsic function."""
    return yaml.load((path or ROOT / "template.yaml").read_text(), IntrinsicsIgnored)


def function_names() -> dict[str, str]:
    """Return the name of every function without the stack's name, by logical id."""
    return {
        logical_id: folder + ("_worker" if logical_id.endswith("WorkerFunction") else "")
        for logical_id, folder in functions().items()
    }


def functions() -> dict[str, str]:
    """Return the folder in functions/ of every function, by logical id."""
    return {
        name: Path(resource["Properties"]["CodeUri"]).name
        for name, resource in read_template()["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
