"""The template and the sources of its functions: reads them, and notices their changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_roundtrip_tools.run.edited_sources import EditedSources, SourceError
from mcp_roundtrip_tools.run.execution.requirements import Requirements
from mcp_roundtrip_tools.run.services.template_keys import TemplateKeys
from mcp_roundtrip_tools.run.source_watcher import Watcher
from mcp_roundtrip_tools.template.left_out import describe_left_out
from mcp_roundtrip_tools.template.model import Application, Function, Storage, TemplateError
from mcp_roundtrip_tools.template.reader import Template


@dataclass(frozen=True, slots=True)
class ProjectServices:
    """What a template needs to be read: its keys, the URLs of its API and of SQS, and the requirements.

    `variables` are those of every function. `declare` receives the tables and buckets. `note` receives errors
    in changed sources.
    """

    keys: TemplateKeys
    api_url: str
    sqs_url: str
    requirements: Requirements
    variables: Mapping[str, str]
    declare: Callable[[Storage], None]
    note: Callable[[str], None]


class Project:
    """The application of a template file, as its sources are now.

    `edited` are the edited copies of its code, which run instead. `error` keeps a change of the template from
    being used. Raises TemplateError at first. Not thread-safe: the caller holds a lock.
    """

    def __init__(
        self,
        template: Path,
        parameters: Mapping[str, str],
        services: ProjectServices,
        *,
        watch_interval_s: float,
    ) -> None:
        self.template = template
        self.parameters = parameters
        self.edited = EditedSources()
        self._services = services
        self._interval_s = watch_interval_s
        self.error: str | None = None
        self._changed: set[Path] = set()
        self.application = self._read(Template(template, parameters))
        self._watcher = self._watch()

    def reload(self) -> set[Path]:
        """Read the sources again if they have changed and are valid; return the files changed since then."""
        changed = self._watcher.changed()
        if not changed:
            return set()
        self._changed |= {*changed}
        try:
            self.edited.refresh(self._changed)
            self._replace(Template(self.template, self.parameters))
        except (TemplateError, SourceError) as invalid:
            self.error = str(invalid)
            self._services.note(f"{invalid}\nFunctions restart when this is corrected.")
            return set()
        if self.error is not None:
            self.error = None
            self._services.note("The error is corrected.")
        found, self._changed = self._changed, set()
        return found

    def edit(self, function: str, files: Mapping[str, str]) -> None:
        """Replace the edited files of a function. Raises SourceError, TemplateError and KeyError."""
        template = Template(self.template, self.parameters)
        self.edited.edit(function, files)
        self._replace(template)

    def close(self) -> None:
        """Remove the edited copies."""
        self.edited.close()

    def _replace(self, template: Template) -> None:
        before, self.application = self.application, self._read(template)
        for line in describe_left_out(self.application):
            if line not in describe_left_out(before):
                self._services.note(line)
        if self.application.sources != before.sources:
            self._watcher = self._watch()

    def _read(self, template: Template) -> Application:
        given = self._services
        given.keys.create(template.keys())
        found = template.application(given.keys.arns, given.api_url, given.sqs_url, given.variables)
        functions, left_out = dict[str, Function](), dict(found.left_out)
        for name, function in found.functions.items():
            try:
                functions[name] = given.requirements.install_for(function)
            except TemplateError as error:
                left_out[name] = str(error)
        if left_out and not functions:
            reasons = "\n".join(left_out.values())
            raise TemplateError(f"no function of {template.path} can run on this computer:\n{reasons}")
        given.declare(found.storage)
        return replace(found, functions=self.edited.apply_to(functions), left_out=left_out)

    def _watch(self) -> Watcher:
        return Watcher(self.application.sources, time.monotonic, interval_s=self._interval_s)
