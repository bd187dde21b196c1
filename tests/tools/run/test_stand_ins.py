import pytest

from mcp_roundtrip_tools.template.model import TemplateError
from support.sam_applications import ONE_FUNCTION, write_application
from support.served_application import serve

OTHER_FORM = r"Metadata\.LocalRun: .*StandIns and Variables"


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{StandIns: {A: other.py}}", "other.py.*Python file"),
        ("{StandIns: {A: empty.py}}", "empty.py.*respond"),
        *((section, OTHER_FORM) for section in ("[a]", "{Variables: [a]}", "{StandIns: a}", "{StandIn: {}}")),
    ],
)
def test_a_stand_in_that_cannot_be_served_is_named(section, problem, tmp_path):
    """test_main.py calls one."""
    template = f"{ONE_FUNCTION.rstrip()}\n    Metadata: {{LocalRun: {section}}}\n"
    path = write_application(tmp_path, template, {"f/app.py": "", "empty.py": ""})
    with pytest.raises(TemplateError, match=problem), serve(path):
        pass


def test_a_variable_that_is_given_overrides_the_stand_in(tmp_path):
    section = "{StandIns: {PRICES_URL: prices.py}, Variables: {CURRENCY: EUR}}"
    template = f"""{ONE_FUNCTION}
    Metadata: {{LocalRun: {section}}}
    Globals:
      Function: {{Environment: {{Variables: {{PRICES_URL: "", CURRENCY: ""}}}}}}
    """
    sources = {
        "prices.py": "def respond(request): ...",
        "f/app.py": """
            import os

            def handler(event, context):
                return [os.environ["PRICES_URL"], os.environ["CURRENCY"]]
            """,
    }
    given = {"PRICES_URL": "https://prices.example", "CURRENCY": "USD"}
    with serve(write_application(tmp_path, template, sources), variables=given) as app:
        assert app.invoke("F", {}) == [*given.values()]
