"""Read functions, and find one by how people name it (SAM developer guide, "AWS::Serverless::Function")."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.deployment.settings import PREFIX, SHARED, VARIABLES, load_settings, read_variables
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_tools.template.local_names import name_of_function
from mcp_roundtrip_tools.template.model import (
    RUNTIMES,
    Application,
    Function,
    LeftOut,
    TemplateError,
    function_name,
    short_name,
)
from mcp_roundtrip_tools.template.resources import FUNCTION, TemplateResource

_SETTINGS: Final = (SHARED, *VARIABLES)

_OWN_LAYER: Final = {"Ref": "RoundtripLayer"}
"""layer/Makefile builds the resource of this name. A parameter of the name is the layer of another stack."""


@dataclass(frozen=True, slots=True)
class FunctionReader:
    """Reads functions, with the variables `given` in place of the template's. `layers` are folders by ARN."""

    layers: Mapping[str, Path]
    api_url: str
    given: Mapping[str, str]
    left_out: LeftOut

    def read(self, resource: TemplateResource) -> Function | None:
        """Return a function; None if it is left out."""
        try:
            function = self._function(resource)
        except TemplateError as error:
            self.left_out.targets[name_of_function(resource)] = str(error)
            return None
        for note in misspelled_settings([*function.environment, *self.given]):
            self._note(note)
        return replace(function, environment=_with_audience(function.environment, self.api_url))

    def _function(self, resource: TemplateResource) -> Function:
        _check_kind(resource)
        logging = resource.get_known("LoggingConfig")
        event_invoke_config = resource.part("EventInvokeConfig", resource.get_known("EventInvokeConfig"))
        return Function(
            name=resource.text("FunctionName", resource.physical_name),
            handler=resource.text("Handler"),
            code=resource.folder_of("CodeUri"),
            environment=self._environment(resource),
            timeout_s=resource.number("Timeout", 3),
            memory_mb=int(resource.number("MemorySize", 128)),
            alias=resource.text("AutoPublishAlias", "") or None,
            layers=tuple(self._layer_folders(resource)),
            log_format=str(logging.get("LogFormat", "")),
            log_level=str(logging.get("ApplicationLogLevel", "")),
            dead_letter=resource.get_known("DeadLetterQueue").get("TargetArn"),
            max_retries=int(event_invoke_config.number("MaximumRetryAttempts", 2)),
            logical_id=resource.name,
            runtime=resource.text("Runtime", ""),
        )

    def _layer_folders(self, resource: TemplateResource) -> Iterator[Path]:
        written = resource.properties.get("Layers")
        for item in written if isinstance(written, list) else [written]:
            try:
                arns = resource.resolve("Layers", item)
            except TemplateError as error:
                name = item.get("Ref") if isinstance(item, dict) else None
                self._note_layer(f"The layer {name} is not here" if name else str(error))
                continue
            for arn in arns if isinstance(arns, list) else [arns] if arns is not None else []:
                if arn in self.layers:
                    yield self.layers[arn]
                else:
                    self._note_layer(f"The layer {arn} is not here")

    def _note_layer(self, reason: str) -> None:
        self._note(f"{reason}: its functions can import what is installed in this Python environment")

    def _note(self, note: str) -> None:
        if note not in self.left_out.notes:  # the functions share layers, and variables of Globals
            self.left_out.notes.append(note)

    def _environment(self, resource: TemplateResource) -> Mapping[str, str]:
        values: dict[str, str] = {}
        problems: list[tuple[str, str]] = []
        for name, node in resource.members("Environment", "Variables"):
            try:
                value = resource.resolve(f"Environment.{name}", node)
                if value is not None:
                    values[name] = resource.as_text(f"Environment.{name}", value)
            except TemplateError as error:
                if name in self.given:
                    values[name] = self.given[name]
                else:
                    problems.append((name, str(error)))
        if problems:
            reasons = "; ".join(reason for _, reason in problems)
            names = [f"{name}=…" for name, _ in problems]
            options = " ".join(f"--env {name}" for name in names)
            raise TemplateError(f'{reasons}. Set {options}, or make run VARIABLES="{" ".join(names)}"')
        return values


def misspelled_settings(variables: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each name that is nearly a setting's. Others with MCP_ may be the author's."""
    for name in variables:
        if name.startswith(PREFIX) and name not in _SETTINGS:
            for meant in get_close_matches(name, _SETTINGS, 1, cutoff=0.85):
                yield f"{name} is no setting of the layer; did you mean {meant}?"


def _check_kind(resource: TemplateResource) -> None:
    """Raise TemplateError for a function that no process of Python can be."""
    if resource.get("PackageType", "Zip") != "Zip":
        raise TemplateError(f"{resource.name}.PackageType: container images are not run")
    runtime = resource.get("Runtime", "python")
    if not str(runtime).startswith("python"):
        raise TemplateError(f"{resource.name}.Runtime: {runtime} is not Python")
    if "InlineCode" in resource.properties:
        raise TemplateError(f"{resource.name}.InlineCode: only code in a folder (CodeUri) is run")


def unsupported_target(resource: TemplateResource, resources: Mapping[str, TemplateResource]) -> str | None:
    """Return a sentence if a server with the layer has a target for which none is built; otherwise None."""
    if resource.kind != FUNCTION:
        return None
    try:
        runtime, variables = resource.text("Runtime", ""), dict(resource.members("Environment", "Variables"))
    except TemplateError:  # the function is left out with the reason
        return None
    layers = resource.properties.get("Layers")
    has_layer = _OWN_LAYER in (layers if isinstance(layers, list) else [layers])
    if not has_layer or not has_settings(variables):  # other functions may have settings, those of Globals
        return None
    if not runtime.startswith("python"):
        return None
    if runtime not in RUNTIMES:
        return (
            f"{resource.name}.Runtime: must be {', '.join(RUNTIMES[:-1])} or {RUNTIMES[-1]}, not {runtime}."
        )
    layer = resources.get(_OWN_LAYER["Ref"])
    return None if layer is None else _other_target(resource, layer)


def _other_target(function: TemplateResource, layer: TemplateResource) -> str | None:
    """Return a sentence if the layer is built for another target than the function's."""
    for member, of_layer, default in (
        ("Runtime", "CompatibleRuntimes", None),
        ("Architectures", "CompatibleArchitectures", "x86_64"),
    ):
        with suppress(TemplateError):  # a value that only a deployment knows
            own, built = _first(function.get(member, default)), _first(layer.get(of_layer))
            if built is not None and own != built:
                target = f"must be {built}, for which {layer.name} is built, not {own}"
                return f"{function.name}.{member}: {target}."
    return None


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _with_audience(environment: Mapping[str, str], api_url: str) -> Mapping[str, str]:
    """Add the audience if the layer would derive it: no host on this computer is one that AWS assigns."""
    if not has_settings(environment):
        return environment
    settings = read_variables(environment)
    derives = not settings.get("MCP_AUDIENCE") and not settings.get("MCP_TASK_TABLE")
    return {**environment, "MCP_AUDIENCE": api_url} if derives else environment


def check_settings(function: Function) -> None:
    """Raise TemplateError if the layer would reject the function's settings at the first request."""
    if not has_settings(function.environment):
        return
    try:
        load_settings(function.environment)
    except SettingsError as error:
        raise TemplateError(f"{function.name}: {error}") from None


def has_settings(environment: Mapping[str, Any]) -> bool:
    """Return whether a function with these variables is an MCP server. Others may have an MCP_SERVER_URL."""
    return not environment.keys().isdisjoint(_SETTINGS)


def find_function(application: Application, reference: str | None) -> Function:
    """Return the function of a logical id, name, ARN or folder, or the only server. Raises TemplateError."""
    functions = application.functions
    if reference is None:
        with_settings = (each for each in functions.values() if has_settings(each.environment))
        servers = [each for each in with_settings if not each.handler.endswith(".worker")]
        if len(servers) == 1:
            return servers[0]
        example = short_name(servers[0].name) if servers else "…"
        raise TemplateError(
            f"name a function of the template: {_list(functions)}. With make, write FUNCTION={example}"
        )
    name, parts = function_name(reference), Path(reference).parts
    in_folder = [each for each in functions.values() if parts and each.code.parts[-len(parts) :] == parts]
    meanings = (
        [each for each in functions.values() if name in (each.logical_id, each.name, short_name(each.name))],
        # A worker is in the folder of its tool, whose name the folder has.
        [each for each in in_folder if each.code.name == short_name(each.name)],
        in_folder,
    )
    for found in filter(None, meanings):  # the most exact one first
        if len(found) == 1:
            return found[0]
        ids = ", ".join(each.logical_id for each in found)
        raise TemplateError(f"{reference} is the folder of several functions: name one of {ids}")
    for left_out, reason in application.left_out.items():
        if name in (left_out, short_name(left_out)):
            raise TemplateError(f"{left_out} does not run here: {reason}")
    raise TemplateError(f"the template has no function {reference}; it has {_list(functions)}")


def _list(functions: Mapping[str, Function]) -> str:
    names = {each.logical_id: short_name(each.name) for each in functions.values()}
    return ", ".join(own if own == name else f"{own} ({name})" for own, name in names.items())
