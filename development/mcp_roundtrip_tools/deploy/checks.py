"""The checks of a deployment before the build: its parameters, the stack's name and the token issuer."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from mcp_roundtrip_tools.client.http import Unreachable, json_object, request
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Environment
from mcp_roundtrip_tools.template.functions import has_settings, misspelled_settings
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.parameters import required_parameters
from mcp_roundtrip_tools.template.resources import FUNCTION
from mcp_roundtrip_tools.template.stacks import Stack
from mcp_roundtrip_tools.template.template_files import TemplateTree, hint_for, platform_version

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")


def stack_of(tree: TemplateTree, values: Mapping[str, str], name: str | None) -> Stack:
    """Return the stack of a template with these parameters, as far as it is known before a deployment."""
    return Stack(tree, values, None, stack_name=name or "")


def known_values(root: Stack) -> dict[str, str]:
    """Return the known values of parameters: the platform's, and the application's of other names.

    Other nested stacks may have parameters of the same names with another meaning.
    """
    platforms = [each for each in root.all() if platform_version(each.tree.document)]
    found = {name: value for stack in (root, *platforms) for name, value in stack.parameters().items()}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def refusals(tree: TemplateTree, environment: Environment) -> Iterator[str]:
    """Yield a sentence for each reason to refuse this deployment."""
    given, stack_name = environment.parameters, environment.option("stack_name")
    for name in (each for each in given if each not in tree.declared):
        problem = unknown_parameter(name, tree)
        yield f"{problem} {environment.file_of(name)} sets it: change or delete that line."
    for name in required_parameters(tree.declared):
        if name not in given:
            selected = "" if environment.name == DEFAULT else f" ENV={environment.name}"
            command = f'make deploy{selected} PARAMETERS="{name}=…"'
            yield f"{name} has no value. Set it with {command}"
    yield from stack_of(tree, given, stack_name).problems()
    if stack_name is None:
        yield f"The stack has no name. Set stack_name in [{environment.name}.global.parameters]."
    elif refusal := refused_name(stack_name):
        yield refusal


def notes(root: Stack) -> set[str]:
    """Return sentences about variables of functions that may be a mistake."""
    found = set[str]()
    for function in root.of_type(FUNCTION):
        with suppress(TemplateError):
            variables = dict(function.members("Environment", "Variables"))
            if has_settings(variables):  # others are no MCP servers
                found.update(misspelled_settings(variables))
    return found


def unknown_parameter(name: str, tree: TemplateTree) -> str:
    """Return a sentence for a name that the template does not declare; a nested stack may declare it."""
    options = {option.rpartition(".")[2]: option for option in tree.parameters()}
    stack, _, option = options.get(name.rpartition(".")[2], "").rpartition(".")
    if stack:
        place = f"{stack}.Properties.Parameters in template.yaml"
        return f"{option} is no parameter of template.yaml: write its line under {place}."
    return f"template.yaml has no parameter {name}; {hint_for(name, tree)}"


def refused_name(stack: str) -> str | None:
    """Return a sentence if a stack cannot have this name; otherwise None."""
    if _STACK_NAME.fullmatch(stack):
        return None
    return (
        f"The stack's name {stack!r} must consist of at most 128 letters, digits and hyphens, and start with "
        "a letter."
    )


def reserved_concurrency(root: Stack) -> dict[str, int]:
    """Return the reserved concurrency of each function that reserves some, by the function's name."""
    found = {}
    for function in root.of_type(FUNCTION):
        with suppress(TemplateError):
            if reserved := int(function.number("ReservedConcurrentExecutions", 0)):
                found[function.text("FunctionName", function.logical_id)] = reserved
    return found


TIMEOUT_S: Final = 3


def refused_issuer(values: Mapping[str, str]) -> str | None:
    """Return why no token of the issuer could be accepted, as a sentence; None if one may.

    None for other modes, and for an issuer that this computer cannot reach: AWS might.
    """
    mode, issuer = values.get("AuthMode"), values.get("TokenIssuer", "")
    if mode not in ("bearer", "jwt"):
        return None
    try:
        metadata = _document(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        named, keys = metadata["issuer"], _document(str(metadata["jwks_uri"]))["keys"]
    except (Unreachable, LookupError, ValueError):  # https://[ is no URL
        return None
    if named != issuer:
        return f"TokenIssuer must be {named}, as in the issuer's metadata, and not {issuer}."
    if mode == "jwt" and not any(map(_is_rsa, keys)):
        return (
            f"{issuer} has no RSA key, and API Gateway's JWT authorizer verifies RSA signatures only. "
            "Use AuthMode bearer."
        )
    return None


def _document(url: str) -> dict[str, Any]:
    """Return a document of the issuer; an empty one if it is no JSON object. Raises Unreachable."""
    return json_object(request("GET", url, timeout_s=TIMEOUT_S).content)


def _is_rsa(key: Any) -> bool:
    return (
        isinstance(key, dict) and key.get("kty") == "RSA" and key.get("use", "sig") == "sig" and "kid" in key
    )
