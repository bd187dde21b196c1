"""Runs GitHub workflows on this computer: every `run:` of a job, in a workspace of its own.

Actions of others are stubs: they do to the workspace and the variables what the real ones do. Expressions are
evaluated strictly: an unknown name is an error, except members of `vars`, `secrets` and `inputs`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.interpreters import run
from support.project import ROOT

WORKFLOWS = ROOT / ".github/workflows"
OPEN_CONTEXTS = frozenset({"vars", "secrets", "inputs"})
"""Contexts whose missing members are empty."""

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORD = re.compile(r"^[a-z_]+(\.[A-Za-z_-]+)+$")

Contexts = Mapping[str, Mapping[str, Any]]


@dataclass
class Step:
    """A step that ran. `outcome` is success, failure or skipped; `output` is that of a script."""

    name: str
    outcome: str
    output: str = ""


@dataclass
class Job:
    """A job in its workspace. `variables` are those of the runner, to which actions add."""

    workspace: Path
    contexts: Contexts
    variables: dict[str, str]
    actions: Mapping[str, Callable[[Job, Mapping[str, str]], None]]
    subject: str = ""
    """The `sub` of the token that GitHub issues for the job."""
    steps: list[Step] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return all(each.outcome != "failure" for each in self.steps)

    @property
    def failure(self) -> str | None:
        """The name and the end of the output of the first step that failed; None if none did."""
        failed = [each for each in self.steps if each.outcome == "failure"]
        return f"{failed[0].name}:\n{failed[0].output[-3000:]}" if failed else None

    def outcome(self, name: str) -> str:
        [found] = [each for each in self.steps if each.name == name]
        return found.outcome

    def run(self, steps: list[Mapping[str, Any]], inputs: Mapping[str, Any] | None = None) -> None:
        """Run steps of a job, or of a composite action with these inputs."""
        by_id: dict[str, dict[str, str]] = {}
        given = self.contexts if inputs is None else {**self.contexts, "inputs": inputs}
        for step in steps:
            contexts = {**given, "steps": by_id}
            before = len(self.steps)
            if not self._is_due(str(step.get("if", "success()")), contexts):
                self.steps.append(Step(step["name"], "skipped"))
            elif "run" in step:
                self.steps.append(self._script(step, contexts))
            else:
                self._action(step, contexts)
            failed = any(each.outcome == "failure" for each in self.steps[before:])
            if "id" in step:
                by_id[step["id"]] = {"outcome": "failure" if failed else self.steps[-1].outcome}

    def _is_due(self, condition: str, contexts: Contexts) -> bool:
        text = _EXPRESSION.sub(r"\1", condition)
        due = True
        has_status = False
        for part in (each.strip() for each in text.split("&&")):
            match part:
                case "success()":
                    due, has_status = due and self.succeeded, True
                case "failure()":
                    due, has_status = due and not self.succeeded, True
                case "!cancelled()":
                    has_status = True
                case _:
                    left, _, right = part.partition("==")
                    due = due and evaluate(left.strip(), contexts) == right.strip().strip("'")
        return due and (has_status or self.succeeded)

    def _script(self, step: Mapping[str, Any], contexts: Contexts) -> Step:
        assert "${{" not in step["run"], (
            "a script must not contain an expression, whose value would run as code"
        )
        given = {name: str(substitute(value, contexts)) for name, value in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        variables = {**self.variables, **given}
        done = run(*command, cwd=self.workspace, env=variables, stdin=subprocess.DEVNULL)
        return Step(step["name"], "failure" if done.returncode else "success", done.stdout + done.stderr)

    def _action(self, step: Mapping[str, Any], contexts: Contexts) -> None:
        uses = step["uses"]
        given = {name: str(substitute(value, contexts)) for name, value in step.get("with", {}).items()}
        if uses.startswith("./"):
            action = yaml.safe_load((ROOT / uses / "action.yml").read_text("utf-8"))
            assert given.keys() <= action["inputs"].keys()
            required = {name for name, each in action["inputs"].items() if each["required"]}
            assert required <= {name for name, value in given.items() if value}
            self.run(action["runs"]["steps"], given)
            return
        name, _, commit = uses.partition("@")
        assert re.fullmatch(r"[0-9a-f]{40}", commit), uses
        self.actions[name](self, given)
        self.steps.append(Step(step["name"], "success"))


def evaluate(expression: str, contexts: Contexts) -> Any:
    """Return the value of a name such as `vars.AWS_REGION`. Raises AssertionError for an unknown one."""
    assert _WORD.fullmatch(expression), f"the runner cannot evaluate {expression!r}"
    context, *members = expression.split(".")
    value: Any = contexts[context]
    for member in members:
        assert member in value or context in OPEN_CONTEXTS, f"{expression} is unknown"
        value = value.get(member, "")
    return value


def substitute(value: Any, contexts: Contexts) -> Any:
    """Return a text with its expressions replaced."""
    return _EXPRESSION.sub(lambda found: str(evaluate(found[1].strip(), contexts)), str(value))


def read_workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))
    return found
