from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_roundtrip_tools.deploy.environments import Answers, Environment, read_environment, save
from mcp_roundtrip_tools.deploy.questions import Interview
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.template.template_files import read_tree
from mcp_roundtrip_tools.template.yaml_reader import parse
from support.project import ROOT

TREE = read_tree(ROOT / "template.yaml")
APPLICATION = render("orders", "python3.13", "arm64")[Path("template.yaml")]
TEMPLATES = [(ROOT / "template.yaml").read_text("utf-8"), APPLICATION]
ANSWERS = {
    "TokenIssuer": "https://issuer.example",
    "LambdaAuthorizerArn": "arn:aws:lambda:eu-west-1:123456789012:function:authorizer",
    "Region": "eu-west-1",
}


class Person:
    """Answers with `answers` by the first word of a question, otherwise with Enter."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, question: str) -> str:
        self.asked.append(question)
        return self.answers.get(question.split(maxsplit=1)[0].rstrip(":"), "")

    def interview(self, environment: Environment) -> Environment:
        return Interview(TREE, self, lambda line: None).complete(environment)


def first() -> Environment:
    """Return an environment without answers, as in a fresh clone."""
    return Environment("default", read_environment(ROOT, "default").shared, Answers())


@pytest.mark.parametrize("mode", TREE.declared["AuthMode"]["AllowedValues"])
def test_a_first_deployment_asks_at_most_four_questions_and_never_again(mode, tmp_path):
    person = Person({**ANSWERS, "AuthMode": mode})
    answered = person.interview(first())
    assert len(person.asked) <= 4
    assert answered.parameters["AuthMode"] == mode
    save(tmp_path, answered)
    again = Person({})
    again.interview(read_environment(tmp_path, "default"))
    assert again.asked == []


@pytest.mark.parametrize("template", TEMPLATES, ids=["repository", "application"])
def test_sam_deploy_guided_asks_at_most_six_parameters(template):
    """sam asks for every parameter of the template, also for those with a default."""
    declared = parse(template)["Parameters"]
    assert {"AuthMode", "TokenIssuer"} <= declared.keys()
    assert len(declared) <= 6


def test_another_mode_asks_only_for_what_it_needs():
    person = Person({**ANSWERS, "AuthMode": "none"})
    changed = person.interview(first()).with_parameters({"AuthMode": "jwt"})
    again = Person(ANSWERS)
    assert again.interview(changed).parameters["TokenIssuer"] == ANSWERS["TokenIssuer"]
    assert [question.split()[0].rstrip(":") for question in again.asked] == ["TokenIssuer"]


def test_a_refused_answer_is_asked_again_with_the_reason():
    answers = iter(["1", "", "eu-west-1", "bearer", "http://i.example", "https://i.example", ""])
    shown: list[str] = []
    Interview(TREE, lambda question: next(answers), shown.append).complete(first())
    refused = [line.split(" must ")[0] for line in shown if " must " in line]
    assert refused == ["The stack's name '1'", "TokenIssuer"]
