"""The environments: sections of samconfig.toml, over which those of samconfig.local.toml take precedence.

samconfig.toml is tracked and has what the team shares. samconfig.local.toml is not in Git and has the answers
of one person. Both have the format of sam (AWS SAM developer guide, "AWS SAM CLI configuration file"):
``[<environment>.<command>.parameters]``, where the command ``global`` stands for every command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.errors import McpRoundtripError


class Refused(McpRoundtripError):
    """Nothing was built or deployed. `problems` are sentences that say what to change."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, Any]) -> str:
    """Return TOML. A nested mapping is a table; other values are strings, numbers, booleans and lists."""
    return "\n".join(_table((), document)).strip() + "\n"


def _table(path: tuple[str, ...], members: Mapping[str, Any]) -> Iterator[str]:
    own = {name: value for name, value in members.items() if not isinstance(value, Mapping)}
    if path and own:
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, value in own.items():
        yield f"{_key(name)} = {_value(value)}"
    for name, value in members.items():
        if isinstance(value, Mapping):
            yield from _table((*path, name), value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    # JSON's strings, numbers, booleans and arrays are also TOML's. DEL must be escaped in TOML only.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


SHARED = "samconfig.toml"
LOCAL = "samconfig.local.toml"
DEFAULT = "default"
"""The environment that plain `sam deploy` uses."""

OVERRIDES = "parameter_overrides"

_HEADER = f"""\
# The answers to the questions of `make deploy`. They take precedence over {SHARED}; the format is the same.
# To return a setting to its default, delete its line. This file is not in Git.
"""
_PAIR = re.compile(r"([A-Za-z0-9]+)=(.*)", re.DOTALL)
_LONG_PAIR = re.compile(r"ParameterKey=([A-Za-z0-9]+),ParameterValue=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answers:
    """What one file says: the options of sam by command, and the values of the template's parameters."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """What both files say about an environment."""

    name: str
    shared: Answers
    local: Answers

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """The options of sam by command."""
        shared, local = self.shared.options, self.local.options
        return {each: {**shared.get(each, {}), **local.get(each, {})} for each in {**shared, **local}}

    @property
    def parameters(self) -> dict[str, str]:
        """The values of the template's parameters."""
        return {**self.shared.parameters, **self.local.parameters}

    def option(self, name: str) -> str | None:
        """Return an option of `sam deploy`, such as ``region``."""
        options = self.options
        value = {**options.get("global", {}), **options.get("deploy", {})}.get(name)
        return None if value in (None, "") else str(value)

    def file_of(self, parameter: str) -> str:
        """Return the name of the file that sets this parameter of the template."""
        return LOCAL if parameter in self.local.parameters else SHARED

    def with_options(self, **options: str) -> Environment:
        """Return the environment with these options for every command of sam, in the local file."""
        for_all = {**self.local.options.get("global", {}), **options}
        local = replace(self.local, options={**self.local.options, "global": for_all})
        return replace(self, local=local)

    def with_parameters(self, changes: Mapping[str, str | None]) -> Environment:
        """Return the environment with these parameters in the local file. None removes a parameter there."""
        values = {**self.local.parameters, **changes}
        remaining = {name: value for name, value in values.items() if value is not None}
        return replace(self, local=replace(self.local, parameters=remaining))


def read_environment(folder: Path, name: str) -> Environment:
    """Return the environment `name` of the files in `folder`. Raises Refused."""
    shared, local = _read(folder / SHARED), _read(folder / LOCAL)
    known = [each for each, sections in {**shared, **local}.items() if isinstance(sections, Mapping)]
    if name not in known:
        raise Refused(
            f"{SHARED} has no environment {name!r}; it has {', '.join(known) or 'none'}. "
            f"Select one with ENV=…, or add [{name}.global.parameters] with a stack_name."
        )
    return Environment(name, _answers(shared.get(name, {}), SHARED), _answers(local.get(name, {}), LOCAL))


def save(folder: Path, environment: Environment) -> None:
    """Write the local part of the environment. Other environments of the file are kept."""
    path = folder / LOCAL
    document = {"version": 0.1, **_read(path), environment.name: _sections(environment.local)}
    text = _HEADER + toml_text(document)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _sections(answers: Answers) -> dict[str, Any]:
    """Return the sections of an environment in a file of sam."""
    options = {command: dict(each) for command, each in answers.options.items()}
    if answers.parameters:
        options.setdefault("deploy", {})[OVERRIDES] = dict(answers.parameters)
    return {command: {"parameters": each} for command, each in options.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name} is not TOML: {error}") from None


def _answers(environment: Mapping[str, Any], file: str) -> Answers:
    options: dict[str, Mapping[str, Any]] = {}
    parameters: dict[str, str] = {}
    sections = {name: each for name, each in environment.items() if isinstance(each, Mapping)}
    for command, section in sections.items():  # others are of another program
        given = dict(section.get("parameters", {}))
        parameters |= _pairs(given.pop(OVERRIDES, {}), file)
        options[command] = given
    return Answers(options, parameters)


def _pairs(given: Any, file: str) -> dict[str, str]:
    """Read the forms that sam accepts: a table, a list of NAME=VALUE, and the text that `--guided` writes."""
    if isinstance(given, Mapping):
        lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
        return {name: ",".join(map(str, values)) for name, values in lists.items()}
    words = [word for text in ([given] if isinstance(given, str) else given) for word in shlex.split(text)]
    found = {}
    for word in words:
        match = _LONG_PAIR.fullmatch(word) or _PAIR.fullmatch(word)
        if match is None:
            raise Refused(f"{file}: {OVERRIDES} has {word!r}; it must be NAME=VALUE.")
        found[match[1]] = match[2]
    return found


INSTALLED: Final = Path(".venv-sam/bin/sam")
"""The sam that `make` installs."""


def find_sam(folder: Path, given: Path | None) -> Path:
    """Return the given sam, or the one on PATH, or the one that `make` installed. Raises Refused."""
    on_path = shutil.which("sam")
    program = folder / (given or on_path or INSTALLED)
    if not program.exists():
        raise Refused(f"{given or 'sam'} is not installed: pip install aws-sam-cli, or run make build.")
    return program


def configuration(folder: Path, environment: Environment) -> Path:
    """Return the path of sam's configuration file for this environment."""
    return folder / ".aws-sam" / f"samconfig-{environment.name}.toml"


def write_configuration(
    folder: Path,
    environment: Environment,
    values: Mapping[str, str],
    *,
    own_bucket: bool,
) -> None:
    """Write sam's configuration: the options of both files, and the values of all parameters of the template.

    CloudFormation keeps a value that is not named, and a build may need each of them. With `own_bucket`, the
    command line names a bucket for the artefact, so sam creates none.
    """
    options = {command: dict(each) for command, each in environment.options.items()}
    options.setdefault("build", {})[OVERRIDES] = dict(values)
    options.setdefault("deploy", {})
    if own_bucket:
        options["deploy"].pop("resolve_s3", None)
    sections = _sections(Answers(options, values))
    document = {"version": 0.1, environment.name: sections}
    path = configuration(folder, environment)
    path.parent.mkdir(exist_ok=True)
    path.write_text(toml_text(document), encoding="utf-8")


def run_sam(
    sam: Path, folder: Path, environment: Environment, command: str, options: Sequence[str] = ()
) -> int:
    """Run a command of sam in `folder` with the written configuration, and return its exit status."""
    given = ["--config-file", str(configuration(folder, environment)), "--config-env", environment.name]
    # sam looks for the Python of the functions' runtime on PATH. A virtual environment may be the only place.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(  # noqa: S603 - the caller chooses the program
        [sam, command, *given, *options], cwd=folder, env={**os.environ, "PATH": path}, check=False
    )
    return done.returncode
