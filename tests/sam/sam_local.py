"""Print the routes and variables that `sam local` reads. sam itself stops without a container runtime.

Usage: python sam_local.py TEMPLATE ENV_VARS PARAMETERS...  ->  a JSON list with one item for each PARAMETERS,
which are JSON objects. ENV_VARS is the file of `--env-vars`. Authorizers are off (`--disable-authorizer`).
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.provider import Function
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.local.lambdafn.env_vars import EnvironmentVariables


def read(template: str, parameters: Mapping[str, str], env_vars: Mapping[str, str]) -> dict[str, Any]:
    """Return the function of each route, and the variables of each function."""
    stacks, _ = SamLocalStackProvider.get_stacks(template, parameter_overrides=dict(parameters))
    functions = SamFunctionProvider(stacks)
    routes = ApiProvider(stacks, cwd=".", disable_authorizer=True).api.routes
    return {
        "routes": {
            f"{method} {route.path}": name_of(functions, route.function_name)
            for route in routes
            for method in route.methods
        },
        "variables": {function.name: variables_of(function, env_vars) for function in functions.get_all()},
    }


def name_of(functions: SamFunctionProvider, identifier: str | None) -> str | None:
    function = functions.get(identifier) if identifier else None
    return function.name if function else None


def variables_of(function: Function, env_vars: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that samcli.commands.local passes to a function, without those of Lambda."""
    declared = (function.environment or {}).get("Variables", {})
    resolved = EnvironmentVariables(
        function.name,
        function.memory,
        function.timeout,
        function.handler,
        variables=declared,
        override_values=dict(env_vars),
    ).resolve()
    return {name: resolved[name] for name in (*declared, "AWS_SAM_LOCAL")}


def main(template: str, env_vars: str, *parameters: str) -> None:
    variables = json.loads(Path(env_vars).read_text("utf-8"))["Parameters"]
    print(json.dumps([read(template, json.loads(each), variables) for each in parameters]))


if __name__ == "__main__":
    main(*sys.argv[1:])
