"""The target of a build: the Lambda runtime and the architecture that the layer's compiled packages are for.

A template may have parameters for them: the built template then accepts only the target that it was built
for, so that a deployment cannot select another one. Otherwise the template contains the values.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from mcp_roundtrip_tools.deploy.environments import Refused
from mcp_roundtrip_tools.template.yaml_reader import load

BUILT: Final = Path(".aws-sam/build/template.yaml")
RUNTIME, ARCHITECTURE = "PythonRuntime", "Architecture"

NATIVE_ARCHITECTURE: Final = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
"""The architecture of this computer."""

WRITTEN: Final = {RUNTIME: "Runtime", ARCHITECTURE: "Architectures"}
"""The property of functions that has the value, by the parameter of a template."""

Target = Mapping[str, str]
"""The values of those of the parameters RUNTIME and ARCHITECTURE that the template has."""


def target_of(declared: Mapping[str, Any], values: Mapping[str, str]) -> Target:
    """Return the target that these parameter values select."""
    return {name: values[name] for name in WRITTEN if name in declared}


def where_written(name: str) -> str:
    """Return a sentence that says how to change the target of a template without the parameter `name`."""
    return (
        f"template.yaml has no parameter {name}: change every {WRITTEN[name]} in template.yaml, as under "
        "Globals, and the layer's Compatible… and BuildArchitecture with it."
    )


def pin(template: Path, target: Target) -> None:
    """Make `target` the only target that the built template accepts."""
    if not target:
        return
    document = load(template)
    for name, value in target.items():
        document["Parameters"][name] |= {
            "Default": value,
            "AllowedValues": [value],
            "ConstraintDescription": f"must be {value}, for which this artefact was built (make build)",
        }
    template.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")


def built_target(template: Path, target: Target) -> Target | None:
    """Return the target that a built template accepts, by the names of `target`.

    None if `sam build` built it, and it accepts several. Raises Refused if there is no built template.
    """
    if not template.is_file():
        raise Refused("Nothing is built yet: run make build.")
    declared = load(template).get("Parameters") or {}
    allowed = {name: declared[name]["AllowedValues"] for name in target}
    is_pinned = all(len(values) == 1 for values in allowed.values())
    return {name: str(values[0]) for name, values in allowed.items()} if is_pinned else None
