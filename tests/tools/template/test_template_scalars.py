import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.reader import Template
from mcp_roundtrip_tools.template.yaml_reader import parse
from support.project import edit
from support.sam_applications import write_application
from support.transformed_template import transformed_file

SCALARS = {
    "true": "true",
    "True": "true",
    "no": "false",
    "off": "false",
    "y": "y",
    "3000": "3000",
    "1_000": "1000",
    "-1": "-1",
    "1.0": "1.0",
    "1.10": "1.1",
    "1e3": "1e3",
    "010": "8",
    "08": "08",
    "0x1F": "31",
    "12:30": "750",
    "2026-07-28": "2026-07-28",
    "2026-07-28T10:00:00Z": "2026-07-28T10:00:00Z",
    '"true"': "true",
    '"010"': "010",
    "''": "",
}
"""Text in a template -> the string in a deployment."""

TEMPLATE = """
    Parameters:
      P: {{Type: String, Default: {default}, AllowedValues: [{allowed}]}}
      Others: {{Type: CommaDelimitedList, Default: 1}}
    Mappings: {{By: {{{key}: {{value: {value}}}}}}}
    Conditions:
      Equal: !Equals [!Ref P, {value}]
      EqualLists: !Equals [!Split [",", !Ref P], [{value}]]
    Resources:
      F:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          Runtime: python3.13
          CodeUri: f
          Environment:
            Variables:
              WRITTEN: {value}
              GIVEN: !Ref P
              MAPPED: !FindInMap [By, !Ref P, value]
              JOINED: !Join ["-", [{value}, !Ref P]]
              IN_TEXT: !Sub ["${{x}}", {{x: {value}}}]
              EQUAL: !If [Equal, equal, different]
              EQUAL_LISTS: !If [EqualLists, equal, different]
    """


def template(folder: Path, value: str, default: str = "", key: str = "") -> Path:
    text = TEMPLATE.format(
        value=value, default=default or value, allowed=f"{value}, other", key=key or value or "''"
    )
    return write_application(folder, text, {"f/app.py": ""})


def variables(path: Path, **parameters: str) -> Any:
    return Template(path, parameters).application().functions["F"].environment


def expected(text: str) -> dict[str, str]:
    texts = dict.fromkeys(("WRITTEN", "GIVEN", "MAPPED", "IN_TEXT"), text)
    return {**texts, "JOINED": f"{text}-{text}", "EQUAL": "equal", "EQUAL_LISTS": "equal"}


@pytest.mark.parametrize(("written", "text"), SCALARS.items())
def test_a_default_an_allowed_value_a_given_one_a_condition_and_a_variable_have_the_same_text(
    written, text, tmp_path
):
    assert variables(template(tmp_path, written)) == expected(text)
    path = template(tmp_path, written, default="other")
    assert variables(path, P=text) == expected(text)
    if text != "True":
        with pytest.raises(TemplateError, match="P must be"):
            variables(path, P="True")


def test_the_texts_are_those_of_a_deployment(tmp_path):
    """CloudFormation converts booleans and numbers of the template that sam writes as JSON does."""
    named = {f"V{number}": written for number, written in enumerate(SCALARS)}
    written = "".join(f"\n              {name}: {value}" for name, value in named.items())
    path = write_application(
        tmp_path, TEMPLATE.format(value="x", default="x", allowed="x", key="x") + written, {}
    )
    stack = yaml.safe_load(transformed_file(path))
    deployed = stack["Resources"]["F"]["Properties"]["Environment"]["Variables"]
    texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in deployed.items()}
    assert {named[name]: texts[name] for name in named} == SCALARS


@pytest.mark.parametrize("value", ["[a, b]", "{a: b}", "null"])
def test_a_default_or_an_allowed_value_that_is_no_scalar_is_refused(value, tmp_path):
    declared = f"P: {{Type: String, Default: a, AllowedValues: [a, {value}]}}"
    path = write_application(tmp_path, f"Parameters: {{{declared}}}\nResources: {{}}\n", {})
    with pytest.raises(TemplateError, match="P"):
        Template(path, {}).application()
    edit(path, "Default: a", f"Default: {value}")
    with pytest.raises(TemplateError, match="P"):
        Template(path, {}).application()


def test_a_name_is_a_string(tmp_path):
    """Accounts' numbers are usual names in mappings."""
    path = template(tmp_path, "'123456789012'", key="123456789012")
    assert variables(path)["MAPPED"] == "123456789012"
    path.write_text("Resources: {[a]: {Type: X}}\n")
    with pytest.raises(TemplateError):
        Template(path, {}).application()


def test_a_name_that_is_there_twice_is_refused_with_its_line(tmp_path):
    """Such as `Environment`, if the lines for traces are pasted into `Globals`."""
    text = "Globals:\n  Function:\n    Layers: [a]\n    Layers: [b]\nResources: {}\n"
    path = write_application(tmp_path, text, {})
    with pytest.raises(TemplateError, match=r"Layers is there twice(.|\n)*template.yaml\", line 4"):
        Template(path, {}).application()


def test_a_name_that_a_merge_key_overrides_is_there_once():
    text = "In:\n  Deeper:\n    Base: &base {A: 1}\n    Own: &own {<<: *base, A: 2}\nAll: {<<: *own}\n"
    assert parse(text)["In"]["Deeper"]["Own"] == {"A": 2}
