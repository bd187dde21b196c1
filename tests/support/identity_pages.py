"""The pages of docs/guides/identity: the commands that deploy, and the first token that each page shows."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from typing import Any

import yaml

from mcp_roundtrip.deployment.settings import Settings, load_settings
from mcp_roundtrip_tools.template.reader import Template
from support.project import ROOT
from support.served_application import with_options

FOLDER = ROOT / "docs/guides/identity"
PROVIDERS = sorted(path.stem for path in FOLDER.glob("*.md"))

AGE_S = 60
"""The age of tokens in the tests."""


@dataclass(frozen=True)
class Token:
    """The header and the claims of a JWT, with times as documented."""

    header: dict[str, Any]
    claims: dict[str, Any]

    def issued_at(self, now: float) -> dict[str, Any]:
        """Return the claims as if the token had been issued a minute before `now`."""
        by = int(now) - AGE_S - self.claims["iat"]
        times = {"iat", "nbf", "exp", "auth_time"} & self.claims.keys()
        return {**self.claims, **{name: self.claims[name] + by for name in times}}


@dataclass(frozen=True)
class Page:
    """A page. `deployments` has the parameters and options at each command, the recommended one first."""

    text: str
    endpoint: str
    deployments: list[dict[str, str]]
    token: Token

    @property
    def reasons(self) -> set[str]:
        """The reasons in the log that the table of errors names."""
        return set(re.findall(r"`(token_\w+)`", self.text.partition("\n## Errors\n")[2])) - {"token_use"}


@cache
def page(provider: str) -> Page:
    text = (FOLDER / f"{provider}.md").read_text("utf-8")
    first_token = text.partition("\n## The first token\n")[2].partition("\n## ")[0]
    header, claims = (json.loads(found) for found in re.findall(r"```json\n(.*?)```", first_token, re.DOTALL))
    [endpoint] = set(re.findall(r"https://[a-z0-9.-]+/mcp(?=[\s`\",])", text))
    return Page(text, endpoint, list(_deployments(text)), Token(header, claims))


def _deployments(text: str) -> Iterator[dict[str, str]]:
    """Yield the parameters and options at each command that deploys: what was set before stays."""
    given = dict[str, str]()
    blocks = re.compile(r'```yaml\n(.*?)```|make deploy PARAMETERS=("[^"]+")', re.DOTALL)
    for options, command in blocks.findall(text):
        if options:
            given |= yaml.safe_load(dedent(options))
        else:
            given |= dict(each.split("=", 1) for each in shlex.split(shlex.split(command)[0]))
            yield dict(given)


@cache
def first_settings(provider: str) -> Settings:
    """Return the settings of the front door in the page's first deployment."""
    found = page(provider)
    return settings(found.deployments[0], found.endpoint)


def settings(parameters: dict[str, str], endpoint: str) -> Settings:
    """Return the settings of the front door in a deployment with these parameters. Raises TemplateError."""
    given = with_options({**parameters, "EndpointUri": endpoint})
    application = Template(ROOT / "template.yaml", given).application()
    return load_settings(next(iter(application.functions.values())).environment)
