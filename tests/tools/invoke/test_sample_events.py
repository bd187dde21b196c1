import json

import pytest

from mcp_roundtrip_tools.invoke.command import main
from support.project import ROOT
from support.sample_events import DONE, EVENTS, STABLE, Outcome, function_of, outcome
from support.served_application import serve
from tools.invoke.conftest import Invoke

TEMPLATE = ROOT / "template.yaml"


@pytest.fixture(scope="module")
def app():
    with serve(TEMPLATE, parameters={"AuthMode": "none"}, log=None) as app:
        yield app


def port_of(app):
    return app.url("").rpartition(":")[2]


def files():
    """Return the events of this project. Those in live/ are made on demand."""
    found = (path.relative_to(EVENTS) for path in EVENTS.glob("*/**/*.json"))
    return sorted(path.as_posix() for path in found if path.parts[0] != "live")


@pytest.mark.parametrize("file", files())
def test_each_event_has_its_outcome(file, app, capsys):
    given = [function_of(file), "--event", str(EVENTS / file), "--port", port_of(app)]
    assert main([*given, "--template", str(TEMPLATE)]) == 0
    written = capsys.readouterr()
    response = json.loads(written.out.splitlines()[-1])  # the stand-ins of the run print in this process
    # A new tool's test has the outcomes of its events.
    assert outcome(response) == STABLE.get(file, outcome(response))
    log = written.err.splitlines()
    assert log[0] == f"Invoking local_{function_of(file)} in make run at port {port_of(app)}"


def test_the_run_accepts_the_state_of_its_round(app, tmp_path, capsys):
    invoke, call = Invoke(TEMPLATE, int(port_of(app)), capsys), EVENTS / "weather/call.json"
    saved = tmp_path / "response.json"
    saved.write_text(json.dumps(invoke("weather", "-e", call)))
    answers = json.dumps({"place": "Hyderabad, Telangana, India"})
    done = invoke("weather", "-e", call, "--round", saved, "--answers", answers)
    assert outcome(done) == Outcome(200, DONE)


def test_a_run_of_another_application_is_not_asked(app, tmp_path, capsys):
    event = str(EVENTS / "weather/call.json")
    missing = tmp_path / "template.yaml"
    assert main(["weather", "-e", event, "--port", port_of(app), "--template", str(missing)]) == 2
    assert "template.yaml" in capsys.readouterr().err
