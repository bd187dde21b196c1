import re
from itertools import product

import pytest

from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.option_values import ANOTHER
from support.project import ROOT
from support.transformed_template import AUTH_MODES, PLATFORM, transformed

WITH_INFLUENCE = (
    "EndpointUri",
    "DomainName",
    "StateKeyArn",
    "StateEncryption",
    "StateEncryptionKeyArn",
    "AuditLog",
    "AlarmTopicArn",
    "DataKeyArn",
)
"""The options that influence an output, besides AuthMode."""


@pytest.mark.parametrize("auth_mode", AUTH_MODES)
def test_every_output_exists_under_every_combination_of_options(auth_mode):
    """No condition of the application can ask for them."""
    template = load(PLATFORM)
    for chosen in product((False, True), repeat=len(WITH_INFLUENCE)):
        options = {name: ANOTHER[name] for name, set_it in zip(WITH_INFLUENCE, chosen, strict=True) if set_it}
        given = {"Application": "tools", "AuthMode": auth_mode, **AUTH_MODES[auth_mode], **options}
        parameters = cloudformation.parameters_of(template, **given)
        existing = {
            name
            for name, each in template["Resources"].items()
            if "Condition" not in each or cloudformation.condition(each["Condition"], template, parameters)
        }
        found = cloudformation.outputs(template, parameters)
        assert found.keys() == template["Outputs"].keys(), given
        for name, value in found.items():
            assert value, (name, given)
            needed = {each.partition(".")[0] for each in re.findall(r"\$\{(?!AWS::)([^}]+)\}", value)}
            assert needed <= existing, (name, given)


def test_only_these_options_influence_outputs():
    source = load(PLATFORM)
    conditions = source["Conditions"]

    def names(value: object) -> set[str]:
        text = str(value)
        used = {name for name in conditions if f"'{name}'" in text}
        return {name for name in source["Parameters"] if f"'{name}'" in text} | {
            name for each in used for name in names(conditions[each])
        }

    values = [each["Value"] for name, each in source["Outputs"].items() if name != "Settings"]
    assert names(values) - {"Application"} <= {*WITH_INFLUENCE, "AuthMode"}


def test_the_application_uses_only_outputs_that_exist():
    declared = load(PLATFORM)["Outputs"].keys()
    used = set(re.findall(r"Platform(?:\.|', ')Outputs\.(\w+)", str(transformed())))
    assert used <= declared
    assert {"Settings", "SettingsVersion", "LogGroup", "FunctionPolicy"} <= used


def test_the_endpoint_changes_to_another_function_after_the_permission_to_invoke_it():
    resources = load(ROOT / "platform/endpoint.yaml")["Resources"]
    permission, integration = resources["Permission"], resources["Integration"]
    assert permission["Properties"]["FunctionName"] == integration["Properties"]["IntegrationUri"]
    assert integration["DependsOn"] == "Permission"


def test_nested_templates_use_the_name_of_the_application_and_not_their_own():
    for path in (ROOT / "platform").glob("*.yaml"):
        assert "AWS::StackName" not in path.read_text("utf-8"), path
