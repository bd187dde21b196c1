"""The target of a build: the Lambda runtime and the architecture that the layer's compiled packages are for.

A template may have parameters for them: the built template then accepts only the target that it was built
for, so that a deployment cannot select another one. Otherwise the template contains the values.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from mcp_roundtrip_tools.deploy.environments import Refused
from mcp_roundtrip_tools.template.intrinsics import Unresolvable, resolve
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.resources import LAYER
from mcp_roundtrip_tools.template.stacks import Stack
from mcp_roundtrip_tools.template.yaml_reader import SafeLoader

try:
    from yaml import CSafeDumper as SafeDumper  # the C implementation takes a tenth of the time
except ImportError:
    from yaml import SafeDumper  # type: ignore[assignment]

BUILT: Final = Path(".aws-sam/build/template.yaml")
RUNTIME, ARCHITECTURE = "PythonRuntime", "Architecture"

NATIVE_ARCHITECTURE: Final = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
"""The architecture of this computer."""

WRITTEN: Final = {RUNTIME: "Runtime", ARCHITECTURE: "Architectures"}
"""The property of functions that has the value, by the parameter of a template."""

INTERPRETER: Final = "interpreter"
"""The goal of a layer's makefile that fails if this computer cannot compile the layer's bytecode."""

_STOP = re.compile(r"(?:\S+:\d+: )?\*\*\* (.*?)\.?  Stop\.")
"""What make prints for $(error …)."""

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


def check_interpreter(folder: Path, stack: Stack) -> None:
    """Raise Refused if this computer cannot compile the layers for the target. Their makefiles decide."""
    for makefile, working in _layer_makefiles(folder, stack):
        if not re.search(rf"^{INTERPRETER}:", makefile.read_text(encoding="utf-8"), re.MULTILINE):
            continue
        command = ["make", "--silent", "--makefile", str(makefile.resolve()), INTERPRETER]
        done = subprocess.run(  # noqa: S603 - the makefile of this project
            command,
            cwd=working,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Refused(*_sentences(done.stderr))


def _layer_makefiles(folder: Path, stack: Stack) -> Iterator[tuple[Path, Path]]:
    """Yield the makefile of each layer that `sam build` builds with make, and the folder in which it runs."""
    for layer in (each for each in stack.resources.values() if each.kind == LAYER):
        metadata = stack.tree.document["Resources"][layer.logical_id].get("Metadata") or {}
        if metadata.get("BuildMethod") != "makefile":
            continue
        with suppress(TemplateError, Unresolvable):
            content = folder / layer.text("ContentUri")
            working = folder / str(resolve(metadata.get("WorkingDirectory", str(content)), stack.names))
            if (content / "Makefile").is_file() and working.is_dir():
                yield content / "Makefile", working


def _sentences(stderr: str) -> Iterator[str]:
    for line in stderr.splitlines():
        if stop := _STOP.search(line):
            yield f"{stop[1]}."
        elif not line.startswith("make"):
            yield line


def pin(template: Path, target: Target) -> None:
    """Make `target` the only target that the built template accepts."""
    if not target:
        return
    document = _compose(template.read_text(encoding="utf-8"))
    parameters = _member(document, "Parameters")
    for name, value in target.items():
        members = [
            pair
            for pair in _member(parameters, name).value
            if pair[0].value not in ("AllowedValues", "Default", "ConstraintDescription")
        ]
        description = f"must be {value}, for which this artefact was built (make build)"
        added = {"Default": value, "AllowedValues": [value], "ConstraintDescription": description}
        members += _compose(yaml.safe_dump(added, sort_keys=False)).value
        _member(parameters, name).value = members
    template.write_text(yaml.serialize(document, Dumper=SafeDumper, width=1000), encoding="utf-8")


def built_target(template: Path, target: Target) -> Target | None:
    """Return the target that a built template accepts, by the names of `target`.

    None if `sam build` built it, and it accepts several. Raises Refused if there is no built template.
    """
    try:
        document = _compose(template.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Refused("Nothing is built yet: run make build.") from None
    found = {}
    for name in target:
        allowed = _member(_member(_member(document, "Parameters"), name), "AllowedValues").value
        if len(allowed) != 1:
            return None
        found[name] = allowed[0].value
    return found


def _compose(text: str) -> yaml.Node:
    """Return the nodes of a document. Their tags, such as !Sub, stay as they are."""
    node = yaml.compose(text, SafeLoader)
    assert node is not None
    return node


def _member(mapping: yaml.Node, name: str) -> yaml.Node:
    for key, value in mapping.value:
        if key.value == name:
            node: yaml.Node = value
            return node
    raise Refused(f"The template has no {name}.")
