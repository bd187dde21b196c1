"""The target of a build: the Lambda runtime and the architecture that the layer's compiled packages are for.

The built template accepts only the target that it was built for. A deployment cannot select another one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from mcp_roundtrip_tools.deploy.errors import Refused

try:  # the C implementation takes a tenth of the time
    from yaml import CSafeDumper as Dumper
    from yaml import CSafeLoader as Loader
except ImportError:
    from yaml import SafeDumper as Dumper  # type: ignore[assignment]
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

LAYER = Path("layers/mcp_roundtrip")
BUILT = Path(".aws-sam/build/template.yaml")
RUNTIME, ARCHITECTURE = "PythonRuntime", "Architecture"


@dataclass(frozen=True, slots=True)
class Target:
    """A target, such as python3.13 and arm64."""

    runtime: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.runtime} on {self.architecture}"

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the template that select it."""
        return {RUNTIME: self.runtime, ARCHITECTURE: self.architecture}


def target_of(values: Mapping[str, str]) -> Target:
    """Return the target that these parameter values select."""
    return Target(values[RUNTIME], values[ARCHITECTURE])


def check_interpreter(folder: Path, target: Target) -> None:
    """Raise Refused if this computer cannot compile the layer for `target`. The layer's makefile decides."""
    working = folder / LAYER / "targets" / f"{target.runtime}-{target.architecture}"
    command = ["make", "--silent", "--makefile", "../../Makefile", "interpreter"]
    done = subprocess.run(  # noqa: S603 - the makefile of this project
        command,
        cwd=working,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(*(line for line in done.stderr.splitlines() if not line.startswith("make")))


def pin(template: Path, target: Target) -> None:
    """Make `target` the only target that the built template accepts."""
    document = _compose(template.read_text(encoding="utf-8"))
    parameters = _member(document, "Parameters")
    for name, value in target.parameters.items():
        members = [
            pair
            for pair in _member(parameters, name).value
            if pair[0].value not in ("AllowedValues", "Default", "ConstraintDescription")
        ]
        description = f"must be {value}, for which this artefact was built (make build)"
        added = {"Default": value, "AllowedValues": [value], "ConstraintDescription": description}
        members += _compose(yaml.safe_dump(added, sort_keys=False)).value
        _member(parameters, name).value = members
    template.write_text(yaml.serialize(document, Dumper=Dumper, width=1000), encoding="utf-8")


def built_target(template: Path) -> Target | None:
    """Return the target that a built template accepts; None if `sam build` built it, and it accepts several.

    Raises Refused if there is no built template.
    """
    try:
        document = _compose(template.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Refused("Nothing is built yet: run make build.") from None
    parameters = _member(document, "Parameters")
    found = [
        [each.value for each in _member(_member(parameters, name), "AllowedValues").value]
        for name in (RUNTIME, ARCHITECTURE)
    ]
    return Target(found[0][0], found[1][0]) if all(len(each) == 1 for each in found) else None


def _compose(text: str) -> yaml.Node:
    """Return the nodes of a document. Their tags, such as !Sub, stay as they are."""
    node = yaml.compose(text, Loader)
    assert node is not None
    return node


def _member(mapping: yaml.Node, name: str) -> yaml.Node:
    for key, value in mapping.value:
        if key.value == name:
            node: yaml.Node = value
            return node
    raise Refused(f"The template has no {name}.")
