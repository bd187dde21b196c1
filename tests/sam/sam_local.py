"""Print the variables that `sam local` passes to containers. sam itself stops without a container runtime.

Usage: python sam_local.py TEMPLATE ENV_VARS PARAMETERS  ->  JSON, logical id -> the function's variables.
ENV_VARS is the file of `--env-vars`, and PARAMETERS a JSON object.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samcli.lib.providers.provider import Function
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.local.lambdafn.env_vars import EnvironmentVariables


def variables_of(function: Function, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables that samcli.commands.local passes to a function."""
    variables: dict[str, Any] = EnvironmentVariables(
        function.name,
        function.memory,
        function.timeout,
        function.handler,
        variables=(function.environment or {}).get("Variables", {}),
        override_values=dict(overrides),
    ).resolve()
    return variables


def main(template: str, env_vars: str, parameters: str) -> None:
    overrides = json.loads(Path(env_vars).read_text("utf-8"))
    stacks, _ = SamLocalStackProvider.get_stacks(template, parameter_overrides=json.loads(parameters))
    functions = SamFunctionProvider(stacks).get_all()
    print(json.dumps({each.name: variables_of(each, overrides.get(each.name, {})) for each in functions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
