import pytest

from mcp_roundtrip_tools.template.model import TemplateError
from support.served_application import serve

TEMPLATE = """
    Metadata:
      LocalRun:
        StandIns: {PRICES_URL: services/prices.py}
        Variables: {CURRENCY: EUR, OWN: stand-in}
    Resources:
      Api: {Type: AWS::Serverless::HttpApi}
      F:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          CodeUri: f
          Environment: {Variables: {PRICES_URL: https://prices.example, OWN: template}}
    """

SOURCES = {
    "services/prices.py": """
        from mcp_roundtrip_tools.run.http.messages import Response

        def respond(request):
            return Response(200, body=request.target.encode())
        """,
    "f/app.py": """
        import os
        from urllib.request import urlopen

        def handler(event, context):
            with urlopen(os.environ["PRICES_URL"] + "/lamp") as response:
                return [response.read().decode(), os.environ["CURRENCY"], os.environ["OWN"]]
        """,
}


def test_functions_call_the_stand_in_that_the_template_names(template):
    with serve(template) as app:
        assert app.invoke("F", {}) == ["/lamp", "EUR", "stand-in"]


def test_a_variable_that_is_given_overrides_the_stand_in(template):
    with serve(template, variables={"CURRENCY": "USD"}) as app:
        assert app.invoke("F", {})[1] == "USD"


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [("services/other.py", "", "is not a Python file"), ("services/prices.py", "", "defines no respond")],
)
def test_a_stand_in_that_cannot_be_served_is_named(template, file, source, message):
    (template.parent / "services/prices.py").write_text(source)
    template.write_text(template.read_text().replace("services/prices.py", file))
    with pytest.raises(TemplateError, match=f"{file}.*{message}"), serve(template):
        pass


@pytest.mark.parametrize("section", ["[a]", "{Variables: [a]}", "{StandIns: a}", "{StandIn: {A: b.py}}"])
def test_a_section_of_another_form_is_refused(section, template):
    template.write_text(f"Metadata: {{LocalRun: {section}}}\nResources: {{}}\n")
    with pytest.raises(TemplateError, match=r"Metadata\.LocalRun: must have only"), serve(template):
        pass
