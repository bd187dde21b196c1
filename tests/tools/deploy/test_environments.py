import tomllib

import pytest

from mcp_roundtrip_tools.deploy.environments import (
    LOCAL,
    SHARED,
    Refused,
    configuration,
    read_environment,
    save,
    write_configuration,
)
from support.project import edit

TEAM = """
version = 0.1
[default.global.parameters]
stack_name = "tools"
[default.deploy.parameters.parameter_overrides]
AuthMode = "bearer"
LogLevel = "DEBUG"
[prod.global.parameters]
stack_name = "tools-prod"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / SHARED).write_text(TEAM)
    return tmp_path


def test_local_answers_take_precedence_one_by_one(folder):
    (folder / LOCAL).write_text(
        '[default.global.parameters]\nregion = "eu-west-1"\n'
        '[default.deploy.parameters.parameter_overrides]\nLogLevel = "INFO"\n'
    )
    environment = read_environment(folder, "default")
    assert environment.parameters == {"AuthMode": "bearer", "LogLevel": "INFO"}
    assert (environment.option("stack_name"), environment.option("region")) == ("tools", "eu-west-1")
    assert (environment.file_of("LogLevel"), environment.file_of("AuthMode")) == (LOCAL, SHARED)


def test_answers_are_stored_in_the_local_file_and_other_environments_stay(folder):
    (folder / LOCAL).write_text('[prod.global.parameters]\nregion = "eu-west-1"\n')
    changes = {"AuthMode": "iam", "StatePublicKeys": 'a"b=\\x@example.com'}
    save(folder, read_environment(folder, "default").with_parameters(changes))
    assert read_environment(folder, "default").parameters == {"LogLevel": "DEBUG", **changes}
    assert read_environment(folder, "prod").option("region") == "eu-west-1"
    assert (folder / SHARED).read_text() == TEAM
    save(folder, read_environment(folder, "default").with_parameters({"AuthMode": None}))
    assert read_environment(folder, "default").parameters["AuthMode"] == "bearer"


@pytest.mark.parametrize(
    "given",
    [
        '"AuthMode=\\"bearer\\" StatePublicKeys=\\"a:b==,c:d==\\" TokenIssuer=\\"\\""',
        '["AuthMode=bearer", "StatePublicKeys=a:b==,c:d==", "TokenIssuer="]',
        '{AuthMode = "bearer", StatePublicKeys = ["a:b==", "c:d=="], TokenIssuer = ""}',
        '"ParameterKey=AuthMode,ParameterValue=bearer ParameterKey=TokenIssuer,ParameterValue= '
        'ParameterKey=StatePublicKeys,ParameterValue=a:b==,c:d=="',
    ],
    ids=["text", "list", "table", "long"],
)
def test_every_form_of_parameters_that_sam_accepts_is_read(given, tmp_path):
    (tmp_path / SHARED).write_text(f"[default.deploy.parameters]\nparameter_overrides = {given}\n")
    assert read_environment(tmp_path, "default").parameters == {
        "AuthMode": "bearer",
        "StatePublicKeys": "a:b==,c:d==",
        "TokenIssuer": "",
    }


def test_members_of_other_programs_are_left_out(folder):
    edit(folder / SHARED, "[default.global", '[default]\nowner = "orders"\n[default.global')
    assert read_environment(folder, "default").option("stack_name") == "tools"


def test_a_build_gets_the_parameters_of_the_deployment(folder):
    environment = read_environment(folder, "default")
    write_configuration(folder, environment, environment.parameters, own_bucket=False)
    written = tomllib.loads(configuration(folder, environment).read_text())["default"]
    assert written["build"] == written["deploy"]
    assert written["build"]["parameters"]["parameter_overrides"] == environment.parameters


@pytest.mark.parametrize("name", ["staging", "version", "/root/.shinit"])
def test_an_unknown_environment_is_refused_with_those_that_exist(folder, name):
    with pytest.raises(Refused, match="default, prod"):
        read_environment(folder, name)


def test_a_file_that_is_not_toml_is_refused_by_name(folder):
    (folder / LOCAL).write_text("AuthMode: bearer")
    with pytest.raises(Refused, match=LOCAL):
        read_environment(folder, "default")
