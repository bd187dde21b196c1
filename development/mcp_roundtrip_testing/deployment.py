"""The settings that a deployment of an application lacks, from the template above the application's file."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from mcp_roundtrip.deployment.missing_settings import find_unset_settings, missing_settings
from mcp_roundtrip.deployment.settings import load_settings

__tracebackhide__ = True  # pytest shows the line of the test

TEMPLATE: Final = "template.yaml"

_ABOUT_WORKERS: Final = frozenset({"task_worker", "task_queue"})
"""Settings that a function or its worker does not need, if the other one has them."""


class SettingMissing(UserWarning):
    """In the deployment that the template describes, a tool can do less than its code says."""


def unset_settings(app: Path) -> frozenset[str]:
    """Return the settings without a value in the function whose code is this file (`find_unset_settings`).

    They are those of the nearest template.yaml in the folders above. Without one, with a template that has no
    function with this code, without PyYAML (extra ``local``), and with settings that need the values of
    required parameters, nothing is missing. Raises TemplateError if the template cannot be deployed.
    """
    file = app.resolve()
    template = next((path for folder in file.parents if (path := folder / TEMPLATE).is_file()), None)
    if template is None:
        return frozenset()
    return _unset_by_file(template, template.stat().st_mtime_ns).get(file, frozenset())


@lru_cache(8)
def _unset_by_file(template: Path, _mtime_ns: int) -> Mapping[Path, frozenset[str]]:
    """Return the settings without a value by the file of the handler.

    A function and its worker have one file. The file lacks what one of them lacks.
    """
    try:
        from mcp_roundtrip_tools.template.model import TemplateError
        from mcp_roundtrip_tools.template.parameters import placeholder_parameters
        from mcp_roundtrip_tools.template.reader import Template
    except ModuleNotFoundError:
        return {}
    placeholders = placeholder_parameters(template)
    read = Template(template, placeholders, checks_values=False)
    key_arns = {key.name: f"arn:aws:kms:::key/{key.name}" for key in read.keys()}  # noqa: SIM118 - no dict
    try:
        application = read.application(key_arns, "http://127.0.0.1", "http://127.0.0.1")
    except TemplateError as error:
        # A setting may refuse a value that stands for one that only a deployment has.
        if any(name == value and f"{name}=" in str(error) for name, value in placeholders.items()):
            return {}
        raise
    found: dict[Path, frozenset[str]] = {}
    for function in application.functions.values():
        if any(name.startswith("MCP_") for name in function.environment):
            unset = find_unset_settings(load_settings(function.environment))
            file = (function.code / function.module).resolve()
            other = found.get(file, unset)
            found[file] = (unset | other) - (_ABOUT_WORKERS - (unset & other))
    return found


def check_settings(needs: Mapping[str, Sequence[str]], unset: Collection[str]) -> None:
    """Compare the features of a server with its deployment, as its first request does.

    Raises SettingsError if a feature cannot work, and warns if it can do less than it may do.
    """
    for missing in missing_settings(needs, unset):
        if missing.is_error:
            raise missing.error
        warnings.warn(str(missing.error), SettingMissing, stacklevel=2)
