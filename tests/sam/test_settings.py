import json
import re
from collections.abc import Iterator

import pytest

from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.cloudformation import Refused
from support.option_values import ANOTHER
from support.transformed_template import (
    AUTH_MODES,
    FOLDERS,
    MAX_STACK_NAME,
    OPTIONS_PAGE,
    PLATFORM,
    declared_parameters,
    documented_block,
    parameters,
    properties,
    settings,
    with_values,
)

every_function = pytest.mark.parametrize("function", sorted(FOLDERS))


TEMPLATE = load(PLATFORM)


def text_of(**given: str) -> str:
    values = {"Application": "${AWS::StackName}", "AuthMode": "none", **given}
    declared = cloudformation.parameters_of(TEMPLATE, **values)
    text: str = cloudformation.evaluate({"Fn::GetAtt": ["Settings", "Value"]}, TEMPLATE, declared)
    return text


def ways() -> Iterator[dict[str, str]]:
    """Yield each AuthMode with each option, and with all at once."""
    for mode, needed in AUTH_MODES.items():
        given = {"AuthMode": mode, **needed}
        yield given
        more = {name: value for name, value in ANOTHER.items() if name not in given}
        yield from ({**given, name: value} for name, value in more.items())
        yield {**given, **more}


@every_function
def test_every_function_has_the_settings_in_one_variable(function):
    environment = properties(function)["Environment"]["Variables"]
    assert environment["MCP_SETTINGS"] == text_of()


def test_every_setting_is_one_line_that_the_layer_accepts_in_every_mode_and_option():
    for given in ways():
        text = text_of(**given)
        names = [line.partition("=")[0] for line in text.split("\n")]
        assert len(names) == len(set(names)), given
        assert all(re.fullmatch("MCP_[A-Z_]+", name) for name in names), given
        assert load_settings({"MCP_SETTINGS": with_values(text)}).auth_mode == given["AuthMode"], given


def test_several_audiences_are_one_line():
    given = {"AuthMode": "bearer", "TokenIssuer": "https://issuer.example", "TokenAudience": "one, other"}
    assert settings(text_of(**given))["MCP_TOKEN_AUDIENCE"] == "one,other"


@every_function
def test_the_layer_accepts_the_variables_of_every_function_with_every_option(function):
    for given in ({}, ANOTHER):
        variables = properties(function, **given)["Environment"]["Variables"]
        loaded = load_settings({name: with_values(value) for name, value in variables.items()})
        assert loaded.issuer == "s" * MAX_STACK_NAME


def test_the_layer_reads_the_values_of_options():
    given = {**ANOTHER, "AuthMode": "bearer", "StateEncryption": "enabled"}
    loaded = load_settings({"MCP_SETTINGS": with_values(text_of(**given))})
    assert loaded.token_issuer == given["TokenIssuer"]
    assert ",".join(sorted(loaded.allowed_origins)) == given["AllowedOrigins"]
    assert loaded.max_open_tasks == int(given["MaxOpenTasks"])
    assert loaded.state_key_arn == given["StateKeyArn"]
    assert loaded.audience == given["EndpointUri"]


OF_THE_TEMPLATE = {"Application", "Values", "PythonRuntime", "Architecture"}
"""Parameters whose values CloudFormation or the template chooses."""


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\n\n"])
def test_no_value_can_add_a_line(separator):
    """CloudFormation escapes nothing, so a value with a line break would be settings of its own."""
    declared = declared_parameters()
    for name in sorted(ANOTHER.keys() - OF_THE_TEMPLATE):
        if declared[name]["Type"] != "Number":
            given = {name: f"{ANOTHER[name]}{separator}MCP_AUTH_MODE=none"}
            with pytest.raises(Refused):
                pytest.fail(f"{name} is accepted: {parameters(**given)}")


MAX_ENVIRONMENT = 4_096
MAX_PARAMETER = 4_096
"""Characters of a parameter of SSM in the standard tier, and of a parameter of a nested stack."""

PATTERNS = {
    "AllowedOrigins": "https://{}",
    "EndpointUri": "https://{}",
    "RevokedCertificates": "{}",
    "ScopePrefix": "api://{}",
    "ServerCard": "com.example/{}",
    "StatePublicKeys": "mrk-1234abcd12ab34cd56ef1234567890ab:{}==",
    "TokenAudience": "api://{}",
    "TokenIssuer": "https://{}",
    "TokenJwksUri": "https://{}",
    "TrustedStateEncryptionKeyArns": "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/mrk-{}",
    "TrustedStateKeyArns": "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/mrk-{}",
}
"""How a value of an option looks. {} is filled up to the documented length."""


def documented_maxima() -> dict[str, tuple[int, int]]:
    """Return how many values of how many characters docs/reference/options.md allows for an option."""
    section = OPTIONS_PAGE.read_text("utf-8").partition("\n## Sizes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+`) \| (\d+) values? of (\d+) characters \|$", section, re.MULTILINE)
    return {
        name: (int(values), int(characters))
        for names, values, characters in rows
        for name in re.findall(r"`(\w+)`", names)
    }


def at_their_maximum() -> dict[str, str]:
    """Return each documented option at its maximum, and the others as long as they can be."""
    found = {
        "AuthMode": "bearer",
        "AuditLog": "principal",
        "StateSigning": "delegated",
        "TokenAlgorithms": "RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA",
        "TokenType": "at+jwt",
    }
    for name, (values, characters) in documented_maxima().items():
        prefix = len(PATTERNS[name].format(""))
        found[name] = ",".join([PATTERNS[name].format("a" * (characters - prefix))] * values)
    return found


def test_every_list_has_a_documented_maximum():
    lists = {name for name, each in declared_parameters().items() if each["Type"] == "CommaDelimitedList"}
    assert lists - {"TokenAlgorithms", "Values"} <= documented_maxima().keys() == PATTERNS.keys()


@every_function
@pytest.mark.parametrize("given", [{}, at_their_maximum()], ids=["defaults", "maxima"])
def test_the_environment_of_a_function_fits_with_every_option_at_its_maximum(function, given):
    traced = documented_block("Traces")["Environment"]["Variables"]
    own = properties(function, **given)["Environment"]["Variables"]
    variables = {name: with_values(value) for name, value in {**own, **traced}.items()}
    assert "${" not in str(variables)
    # Lambda measures the variables as JSON.
    left = MAX_ENVIRONMENT - len(json.dumps(variables, separators=(",", ":")))
    assert left >= (150 if given else 2_000)


def test_the_settings_fit_into_a_parameter_of_ssm():
    assert 2_500 < len(with_values(text_of(**at_their_maximum()))) <= MAX_PARAMETER
