"""Declared capabilities, and missing ones."""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.capabilities import (
    breaks_on_state_only_rounds,
    capability_path,
    declarable_path,
    declares,
    missing_capabilities,
    needs_elicitation_ids,
    shows_apps,
    shows_forms_in_apps,
)


@pytest.mark.parametrize(
    ("capabilities", "name", "declared"),
    [
        ({}, "sampling", False),
        ({"sampling": {}}, "sampling.tools", False),
        ({"sampling": {"tools": {}}}, "sampling.tools", True),
        ({"elicitation": {}}, "elicitation.form", True),
        ({"elicitation": {}}, "elicitation.url", False),
        ({"elicitation": {"url": {}}}, "elicitation.url", True),
        ({"elicitation": {"url": {}}}, "elicitation.form", False),
        ({"extensions": {"com.example/approval": {}}}, "extensions.com.example/approval", True),
        ({"extensions": {}}, "extensions.com.example/approval", False),
        ({"sampling": "yes"}, "sampling.tools", False),
        ({"elicitation": {"form": False}}, "elicitation.form", False),
    ],
)
def test_a_capability_counts_as_declared_as_in_the_table(
    capabilities: dict[str, Any], name: str, declared: bool
) -> None:
    assert declares(capabilities, capability_path(name)) is declared


@pytest.mark.parametrize("name", ["a", "a/b/c", "1a/b", "a-/b", ".a/b", "a b/c", "a/-b", "a/b-"])
def test_an_extension_has_a_prefix_as_in_the_names_of_meta(name: str) -> None:
    assert declarable_path("find", "extensions.com.example/a_b") == ("extensions", "com.example/a_b")
    assert declarable_path("find", "experimental.x") == ("experimental", "x")
    with pytest.raises(DefinitionError, match=r"^find: clients have no capability"):
        declarable_path("find", f"extensions.{name}")


@pytest.mark.parametrize(
    ("settings", "shown"),
    [({"mimeTypes": ["text/html;profile=mcp-app"]}, True), ({"mimeTypes": ["text/html"]}, False), ({}, True)],
)
def test_a_client_shows_apps_of_the_types_that_it_names(settings: dict[str, Any], shown: bool) -> None:
    assert shows_apps({"extensions": {"io.modelcontextprotocol/ui": settings}}) is shown
    alternatives: list[dict[str, Any]] = [{}, {"elicitation": {}}]
    for forms in alternatives:
        for other in alternatives:
            capabilities = {"extensions": {"io.modelcontextprotocol/ui": settings | other}, **forms}
            assert shows_forms_in_apps(capabilities) is bool(shown and forms and other)


def test_exactly_the_missing_capabilities_are_named() -> None:
    wanted = [("elicitation", "form"), ("sampling", "tools"), ("sampling",), ("roots",)]
    assert missing_capabilities({"elicitation": {}, "sampling": {}}, wanted) == {
        "sampling": {"tools": {}},
        "roots": {},
    }
    assert missing_capabilities({"elicitation": {}}, wanted[:1]) == {}


@pytest.mark.parametrize(
    "info",
    [
        None,
        {},
        {"name": "Anthropic/ClaudeAI2", "version": "1.0.0"},
    ],
)
@pytest.mark.parametrize(
    ("has_fault", "name"),
    [(breaks_on_state_only_rounds, "Anthropic/ClaudeAI"), (needs_elicitation_ids, "copilot-cli")],
)
def test_only_clients_with_a_known_fault_have_it_in_every_version(
    has_fault: Callable[[Any], bool], name: str, info: Any
) -> None:
    assert not has_fault(info)
    for version in ("1.0.0", "2.5", "", None, 7):
        assert has_fault({"name": name, "version": version})
