import pytest

from mcp_roundtrip_tools.template.model import TemplateError
from support.sam_applications import ONE_FUNCTION, write_application
from support.served_application import serve

OTHER_FORM = r"Metadata\.LocalRun: must have only"


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{StandIns: {A: other.py}}", "other.py.*is not a Python file"),
        ("{StandIns: {A: empty.py}}", "empty.py.*defines no respond"),
        *((section, OTHER_FORM) for section in ("[a]", "{Variables: [a]}", "{StandIns: a}", "{StandIn: {}}")),
    ],
)
def test_a_stand_in_that_cannot_be_served_is_named(section, problem, tmp_path):
    """test_main.py calls one, and console/test_examples.py replaces one by a variable."""
    template = f"{ONE_FUNCTION.rstrip()}\n    Metadata: {{LocalRun: {section}}}\n"
    path = write_application(tmp_path, template, {"f/app.py": "", "empty.py": ""})
    with pytest.raises(TemplateError, match=problem), serve(path):
        pass
