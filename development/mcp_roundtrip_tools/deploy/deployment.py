"""One deployment: its target, the questions, the checks, the build, and `sam deploy`.

The target of a build is the Lambda runtime and the architecture that the layer's compiled packages are for.
A template may have parameters for them: the built template then accepts only the target that it was built
for, so that a deployment cannot select another one. Otherwise the template contains the values.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from mcp_roundtrip_tools.deploy import account, checks
from mcp_roundtrip_tools.deploy.checks import refused_issuer
from mcp_roundtrip_tools.deploy.environments import (
    LOCAL,
    Environment,
    Refused,
    read_environment,
    run_sam,
    save,
    write_configuration,
)
from mcp_roundtrip_tools.deploy.questions import Interview
from mcp_roundtrip_tools.template.parameters import defaults, is_masked, refused_value
from mcp_roundtrip_tools.template.stacks import Stack
from mcp_roundtrip_tools.template.template_files import TemplateTree, check_platform, read_tree
from mcp_roundtrip_tools.template.yaml_reader import load

BUILT: Final = Path(".aws-sam/build/template.yaml")
RUNTIME, ARCHITECTURE = "PythonRuntime", "Architecture"

NATIVE_ARCHITECTURE: Final = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
"""The architecture of this computer."""

WRITTEN: Final = {RUNTIME: "Runtime", ARCHITECTURE: "Architectures"}
"""The property of functions that has the value, by the parameter of a template."""

Target = Mapping[str, str]
"""The values of those of the parameters RUNTIME and ARCHITECTURE that the template has."""


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
    """Return the target that a built template accepts; None if `sam build` left several. Raises Refused."""
    if not template.is_file():
        raise Refused("Nothing is built yet: run make build.")
    declared = load(template).get("Parameters") or {}
    allowed = {name: declared[name]["AllowedValues"] for name in target}
    is_pinned = all(len(values) == 1 for values in allowed.values())
    return {name: str(values[0]) for name, values in allowed.items()} if is_pinned else None


@dataclass(frozen=True, slots=True)
class Deployment:
    """The environment to deploy to, and the template of the project in `folder`."""

    folder: Path
    environment: Environment
    tree: TemplateTree

    @classmethod
    def of(cls, folder: Path, environment: str) -> Deployment:
        """Read the project. Raises Refused and TemplateError."""
        tree = read_tree(folder / "template.yaml")
        check_platform(tree)
        return cls(folder, read_environment(folder, environment), tree)

    def with_changes(self, changes: Mapping[str, str | None]) -> Deployment:
        """Return the deployment with these parameters changed. Raises Refused for an unknown name."""
        problems = [
            where_written(name) if name in WRITTEN else checks.unknown_parameter(name, self.tree)
            for name in changes
            if name not in self.tree.declared
        ]
        if problems:
            raise Refused(*problems)
        return replace(self, environment=self.environment.with_parameters(changes)) if changes else self

    @property
    def values(self) -> dict[str, str]:
        """The value of every parameter of the template."""
        return {**defaults(self.tree.declared), **self.environment.parameters}

    @property
    def stack(self) -> Stack:
        return checks.stack_of(self.tree, self.environment.parameters, self.environment.option("stack_name"))

    @property
    def target(self) -> Target:
        """The target that the values of the parameters select."""
        return {name: self.values[name] for name in WRITTEN if name in self.tree.declared}

    def check(self) -> None:
        """Raise Refused with everything that can be refused without the AWS account."""
        problems = list(checks.refusals(self.tree, self.environment))
        if problems:
            raise Refused(*problems)

    def build(self, program: Path) -> int:
        """Build with the sam `program`; return the exit status. Raises Refused."""
        declared = self.tree.declared
        wrong = [refused_value(name, declared[name], value) for name, value in self.target.items()]
        if problems := [*filter(None, wrong), *self.stack.problems(checks_values=False)]:
            raise Refused(*problems)
        self._configure(())
        status = run_sam(program, self.folder, self.environment, "build")
        if status == 0:
            pin(self.folder / BUILT, self.target)
        return status

    def deploy(self, program: Path, *, artefact_exists: bool, asks: bool, options: Sequence[str]) -> int:
        """Deploy; return the exit status. `asks`: a person is there. Raises Refused before a build."""
        deployment = self._completed() if asks else self
        deployment.check()
        if artefact_exists:
            deployment._check_artefact()
        deployment._check_account()
        save(deployment.folder, deployment.environment)
        if not artefact_exists and (status := deployment.build(program)):
            return status
        deployment._save_release()
        deployment._configure(options)
        deployment._show()
        confirmation = () if asks else ("--no-confirm-changeset",)
        given = (*confirmation, "--no-fail-on-empty-changeset", *options)
        return run_sam(program, self.folder, deployment.environment, "deploy", given)

    @property
    def _region(self) -> str | None:
        return self.environment.option("region") or account.configured_region(
            self.environment.option("profile")
        )

    def _completed(self) -> Deployment:
        profile = self.environment.option("profile")
        account.connect(self._region or "us-east-1", profile).check_credentials()  # before any question
        interview = Interview(
            self.tree, input, print, stack=self.folder.resolve().name, region=self._region or ""
        )
        return replace(self, environment=interview.complete(self.environment))

    def _check_artefact(self) -> None:
        built = built_target(self.folder / BUILT, self.target)
        if built is None:
            raise Refused("sam build built the artefact, for a target that it does not tell: run make build.")
        if built != self.target:
            raise Refused(
                f"The artefact was built for {_described(built)}, and {self.environment.name} has "
                f"{_described(self.target)}: run make build ENV={self.environment.name}."
            )

    def _check_account(self) -> None:
        environment = self.environment
        stack = str(environment.option("stack_name"))
        connected = self._account()
        connected.check_credentials()
        connected.check_stack(stack)
        if problem := refused_issuer(checks.known_values(self.stack)):
            raise Refused(problem)
        problems = list(connected.refused_concurrency(checks.reserved_concurrency(self.stack)))
        if problems:
            raise Refused(*problems)
        if connected.delete_failed_creation(stack):
            print(f"The first deployment of {stack} had failed: the empty stack was deleted.")

    def rollback(self, program: Path, options: Sequence[str]) -> int:
        """Deploy what ran before the last deployment; return the exit status. Raises Refused."""
        connected, stack = self._account(), str(self.environment.option("stack_name"))
        connected.check_credentials()
        connected.check_stack(stack)
        release = account.previous_release(
            self.folder, self.environment.name, account.running_release(connected, stack)
        )
        template = self.folder / ".aws-sam" / f"rollback-{self.environment.name}.yaml"
        template.write_text(release.template, encoding="utf-8")
        self._configure(options, release.parameters)
        given = ("--template-file", str(template), "--no-confirm-changeset", *options)
        return run_sam(program, self.folder, self.environment, "deploy", given)

    def endpoint(self) -> str:
        """Return the URL of the deployed endpoint. Raises Refused."""
        return account.endpoint(self._account(), str(self.environment.option("stack_name")))

    def _account(self) -> account.Account:
        return account.connect(self.environment.option("region"), self.environment.option("profile"))

    def _save_release(self) -> None:
        connected, stack = self._account(), str(self.environment.option("stack_name"))
        release = account.running_release(connected, stack)
        if release is not None:
            account.save_release(self.folder, self.environment.name, release)
        elif connected.describe(stack):
            print(f"The template of {stack} cannot be read: make rollback will not return to what runs now.")

    def _configure(self, options: Sequence[str], values: Mapping[str, str] | None = None) -> None:
        own_bucket = any(each.partition("=")[0] == "--s3-bucket" for each in options)
        given = self.values if values is None else values
        write_configuration(self.folder, self.environment, given, own_bucket=own_bucket)

    def _show(self) -> None:
        environment, usual = self.environment, defaults(self.tree.declared)
        print(f"\n{environment.name}: the stack {environment.option('stack_name')}")
        for name, value in self.values.items():
            if value != usual.get(name):
                shown = "*****" if is_masked(self.tree.declared[name]) else value
                print(f"  {name} = {shown}  ({environment.file_of(name)})")
        notes = [f"All other parameters have their defaults. {LOCAL} has your answers."]
        for note in (*notes, *sorted(checks.notes(self.stack))):
            print(f"  {note}")
        print(flush=True)


def _described(target: Target) -> str:
    return " on ".join(target.values())
