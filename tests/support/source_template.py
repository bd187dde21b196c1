"""template.yaml as it is written, before any transform."""

from pathlib import Path
from typing import Any

import yaml

from support.project import ROOT


class IntrinsicsIgnored(yaml.SafeLoader):
    """Reads a template's plain values; !Ref and its like become None."""


IntrinsicsIgnored.add_multi_constructor("!", lambda loader, suffix, node: None)


def read_template(path: Path = ROOT / "template.yaml") -> Any:
    """Return the template at `path`, with None for each intrinsic function."""
    return yaml.load(path.read_text(), IntrinsicsIgnored)


def functions() -> dict[str, str]:
    """The folder in functions/ of every function, by logical id."""
    return {
        name: Path(resource["Properties"]["CodeUri"]).name
        for name, resource in read_template()["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
