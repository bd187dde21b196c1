"""The questions of a first deployment, at most four in a new application. The answers are stored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mcp_roundtrip_tools.deploy.checks import refused_name
from mcp_roundtrip_tools.deploy.environments import Environment
from mcp_roundtrip_tools.template.parameters import refused_value, required_parameters
from mcp_roundtrip_tools.template.template_files import TemplateTree
from mcp_roundtrip_tools.template.yaml_reader import scalar_text

USE_ISSUER = ("bearer", "jwt", "lambda")
"""The values of AuthMode that use TokenIssuer."""

Prompt = Callable[[str], str]
Check = Callable[[str], str | None]
"""Returns a sentence if an answer is refused."""


@dataclass(frozen=True, slots=True)
class Interview:
    """Asks for the missing values of an environment. `stack` and `region` are suggested."""

    tree: TemplateTree
    prompt: Prompt
    show: Callable[[str], None]
    stack: str = ""
    region: str = ""

    def complete(self, environment: Environment) -> Environment:
        """Return the environment with the answers to all questions that it does not answer."""
        environment = self._ask_for_options(environment)
        while (name := next(self._missing(environment.parameters), None)) is not None:
            environment = environment.with_parameters({name: self._ask_parameter(name)})
        return environment

    def _ask_for_options(self, environment: Environment) -> Environment:
        if "AuthMode" not in environment.parameters or environment.option("stack_name") is None:
            name = self._ask(
                "Name of the stack",
                environment.option("stack_name") or f"{self.stack}-{environment.name}",
                refused_name,
            )
            environment = environment.with_options(stack_name=name)
        if environment.option("region") is None:
            region = self._ask("Region", self.region, lambda given: None if given else "Name a Region.")
            environment = environment.with_options(region=region)
        return environment

    def _missing(self, values: Mapping[str, str]) -> Iterator[str]:
        issuer = ("TokenIssuer",) if values.get("AuthMode") in USE_ISSUER else ()
        names = (*required_parameters(self.tree.declared), *issuer)
        return (name for name in names if name in self.tree.declared and name not in values)

    def _ask_parameter(self, name: str) -> str:
        parameter = self.tree.declared[name]
        self.show(f"\n{' '.join(str(parameter.get('Description', '')).split())}")
        choices = [scalar_text(each) for each in parameter.get("AllowedValues", ())]
        label = f"{name} ({', '.join(choices)})" if choices else name
        return self._ask(
            label,
            scalar_text(parameter.get("Default", "")),
            lambda given: refused_value(name, parameter, given),
        )

    def _ask(self, label: str, default: str, check: Check) -> str:
        while True:
            answer = self.prompt(f"{label}{f' [{default}]' if default else ''}: ").strip() or default
            problem = check(answer)
            if problem is None:
                return answer
            self.show(problem)
