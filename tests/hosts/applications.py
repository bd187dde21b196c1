"""AI applications from npm, and how each is configured to use a server and a model on this computer."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripted_model import MODEL

from support.client_pins import pinned_versions
from support.project import ROOT

ENVIRONMENT = ".cache/hosts"
PACKAGES = ROOT / ENVIRONMENT / "node_modules"
SERVER = "examples"
PROMPT = "Go."


@dataclass(frozen=True)
class Start:
    """A command and its variables. It runs in an empty folder, with that as its home."""

    command: Sequence[str]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Application:
    """`prepare(home, endpoint, model)` writes the configuration and returns how to start the application.

    Without a terminal, an application that `declines` does so with every question that it could show in one.
    """

    name: str
    package: str
    prepare: Callable[[Path, str, str], Start]
    declines: bool = False

    @property
    def version(self) -> str:
        """The version that is pinned in the Makefile."""
        return pinned_versions(ENVIRONMENT)[self.package]


def claude_code(home: Path, endpoint: str, model: str) -> Start:
    """Without a terminal, Claude Code answers questions through a hook only."""
    servers = {"mcpServers": {SERVER: {"type": "http", "url": endpoint}}}
    hook = {"type": "command", "command": f"python3 {Path(__file__).with_name('elicitation_hook.py')}"}
    settings = {"hooks": {"Elicitation": [{"hooks": [hook]}]}}
    [program] = PACKAGES.glob("@anthropic-ai/claude-code-*/claude")
    options = ("--strict-mcp-config", "--mcp-config", _write(home / "mcp.json", servers))
    allowed = ("--allowedTools", f"mcp__{SERVER}", "--settings", json.dumps(settings))
    variables = {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }
    return Start([str(program), "--print", PROMPT, *options, *allowed], variables)


def codex(home: Path, endpoint: str, model: str) -> Start:
    configuration = f"""
model = "{MODEL}"
model_provider = "local"
approval_policy = "never"
[model_providers.local]
name = "local"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
[mcp_servers.{SERVER}]
url = "{endpoint}"
required = true
startup_timeout_sec = 60
"""
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(configuration, encoding="utf-8")
    [program] = (path for path in PACKAGES.glob("@openai/codex-*/vendor/*/**/codex") if path.is_file())
    options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return Start([str(program), "exec", *options, PROMPT], {"CODEX_HOME": str(folder), "MODEL_KEY": "none"})


def codex_2026_07_28(home: Path, endpoint: str, model: str) -> Start:
    start = codex(home, endpoint, model)
    return Start([*start.command, "--enable", "mcp_2026_07_28"], start.variables)


def copilot_cli(home: Path, endpoint: str, model: str) -> Start:
    servers = {"mcpServers": {SERVER: {"type": "http", "url": endpoint}}}
    [program] = PACKAGES.glob("@github/copilot-*/copilot")
    options = ("--allow-all-tools", "--additional-mcp-config", json.dumps(servers))
    variables = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
        "COPILOT_MODEL": MODEL,
    }
    return Start([str(program), "--prompt", PROMPT, *options], variables)


def gemini_cli(home: Path, endpoint: str, model: str) -> Start:
    settings = {
        "mcpServers": {SERVER: {"httpUrl": endpoint, "trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _write(home / ".gemini/settings.json", settings)
    program = PACKAGES / "@google/gemini-cli/bundle/gemini.js"
    variables = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model}
    return Start(["node", str(program), "--skip-trust", "--yolo", "--prompt", PROMPT], variables)


def opencode(home: Path, endpoint: str, model: str) -> Start:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{model}/v1", "apiKey": "none"},
        "models": {MODEL: {"name": MODEL, "tool_call": True}},
    }
    configuration = {
        "model": f"local/{MODEL}",
        "small_model": f"local/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"local": provider},
        "mcp": {SERVER: {"type": "remote", "url": endpoint, "oauth": False}},
    }
    _write(home / "opencode.json", configuration)
    program = PACKAGES / "opencode-linux-x64/bin/opencode"
    return Start([str(program), "run", PROMPT], {"OPENCODE_DISABLE_MODELS_FETCH": "1"})


APPLICATIONS = (
    Application("Claude Code", "@anthropic-ai/claude-code", claude_code),
    Application("Codex", "@openai/codex", codex),
    Application("Codex with mcp_2026_07_28", "@openai/codex", codex_2026_07_28, declines=True),
    Application("Copilot CLI", "@github/copilot", copilot_cli, declines=True),
    Application("Gemini CLI", "@google/gemini-cli", gemini_cli),
    Application("opencode", "opencode-ai", opencode),
)


def environment(start: Start, home: Path) -> dict[str, str]:
    """Return all variables of an application: nothing of this user's configuration reaches it."""
    proxies = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **proxies, **start.variables}


def _write(path: Path, document: Any) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)
