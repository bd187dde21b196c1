import json
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mcp_roundtrip_tools.invoke import command
from support.served_application import serve


@dataclass
class Invoke:
    """Runs the command for a template, without a `make run`. `log` has what it printed to standard error."""

    template: Path
    port: int
    capsys: pytest.CaptureFixture[str]
    log: list[str] = field(default_factory=list)

    def __call__(self, *arguments, status=0, terminal=None):
        """Return the response, of a command that ends with this exit status."""
        given = [*map(str, arguments), "--port", str(self.port), "--template", str(self.template)]
        assert command.main(given, terminal=terminal) == status
        written = self.capsys.readouterr()
        self.log += written.err.splitlines()
        [line] = written.out.splitlines()
        assert line.isprintable()
        return json.loads(line)


@pytest.fixture
def port():
    """Return a port at which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def invoke(port, template, capsys, monkeypatch):
    monkeypatch.setattr(command, "serve", serve)
    return Invoke(template, port, capsys)
