"""The stacks of an application: its template and the nested ones. A name is resolved when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from mcp_roundtrip_tools.template.functions import unsupported_target
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds
from mcp_roundtrip_tools.template.local_names import (
    IMPLICIT_HTTP_API,
    IMPLICIT_REST_API,
    LocalServices,
    attribute_of,
    generated_reference,
    nested_stack_name,
    reference_to,
)
from mcp_roundtrip_tools.template.model import ACCOUNT, STACK_NAME, LeftOut, TemplateError, hint
from mcp_roundtrip_tools.template.parameters import (
    broken_rules,
    default_value,
    is_list,
    pseudo_parameters,
    refused_value,
    split_list,
)
from mcp_roundtrip_tools.template.resources import FUNCTION, NESTED, TemplateResource, read_resources
from mcp_roundtrip_tools.template.template_files import TemplateTree


class Values(dict[str, Any]):
    """Values by name, or why there is none, computed when they are first read. `compute` raises KeyError."""

    def __init__(self, compute: Callable[[str], Any]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, name: str) -> Any:
        self[name] = Unresolvable(f"circular dependency: {name} depends on itself")
        try:
            self[name] = self._compute(name)
        except TemplateError as error:
            self[name] = Unresolvable(str(error))
        except BaseException:
            del self[name]
            raise
        return self[name]


class Wrong(Unresolvable):
    """A parameter has no value, and no deployment accepts that."""


class Stack:
    """The stack of one template. `resource` is that of a nested stack in its parent.

    `given` are values of its parameters, and of those of nested stacks as `Platform.NAME`, which replace what
    the parent passes. Without `services`, resources have no names: only a deployment knows them.
    """

    def __init__(
        self,
        tree: TemplateTree,
        given: Mapping[str, str],
        services: LocalServices | None,
        resource: TemplateResource | None = None,
        stack_name: str = STACK_NAME,
    ) -> None:
        self.tree = tree
        self.name = "" if resource is None else resource.name
        self._given = given
        self._services = services
        self._resource = resource
        if services is not None:
            self._pseudo = pseudo_parameters(stack_name if resource is None else nested_stack_name(resource))
        else:
            self._pseudo = {"AWS::StackName": stack_name} if resource is None and stack_name else {}
        sections = (tree.document.get(each) or {} for each in ("Mappings", "Conditions"))
        self.names = TemplateNames(Values(self._reference), Values(self._attribute), *sections)

    @cached_property
    def _read(self) -> tuple[dict[str, TemplateResource], dict[str, str]]:
        return read_resources(self.tree.document, self.names, self.tree.path.parent, self.name)

    @property
    def resources(self) -> dict[str, TemplateResource]:
        """The resources of this template that exist under its conditions, by logical id."""
        return self._read[0]

    @cached_property
    def nested(self) -> dict[str, Stack]:
        """The nested stacks whose templates are files, by logical id."""
        found = {}
        for resource in self.nested_resources():
            if (tree := self.tree.nested.get(resource.logical_id)) is not None:
                start = f"{resource.logical_id}."
                given = {
                    k.removeprefix(start): value for k, value in self._given.items() if k.startswith(start)
                }
                found[resource.logical_id] = Stack(tree, given, self._services, resource)
        return found

    def nested_resources(self) -> Iterator[TemplateResource]:
        yield from (each for each in self.resources.values() if each.kind in NESTED)

    def all(self) -> Iterator[Stack]:
        """Yield the stack and all stacks in it."""
        yield self
        for each in self.nested.values():
            yield from each.all()

    def of_type(self, *kinds: str) -> Iterator[TemplateResource]:
        """Yield the resources of these types in all stacks, one type after the other."""
        for kind in kinds:
            for stack in self.all():
                yield from (each for each in stack.resources.values() if each.kind == kind)

    def globals_of(self, kind: str) -> Iterator[TemplateResource]:
        """Yield the properties that the Globals of each template give to all resources of a kind."""
        for stack in self.all():
            written = (stack.tree.document.get("Globals") or {}).get(kind) or {}
            yield stack._section(f"Globals.{kind}", written)

    def _section(self, name: str, members: Mapping[str, Any]) -> TemplateResource:
        """Return a section of the template, whose members are resolved like properties."""
        return TemplateResource(name, "", members, self.names, self.tree.path.parent, self.name)

    def problem_of(self, name: str) -> str | None:
        """Return why the condition of a resource cannot be evaluated; None if it can."""
        found = (stack._read[1].get(name) for stack in self.all())
        return next((problem for problem in found if problem), None)

    def left_out(self) -> LeftOut:
        """Return what is left out whatever its properties are, to which readers add."""
        found = LeftOut()
        for stack in self.all():
            for each in stack.resources.values():
                if each.kind == "AWS::Lambda::Function":
                    found.targets[each.physical_name] = f"{each.name}: only {FUNCTION} is run"
            functions = {each.name for each in stack.resources.values() if each.kind == FUNCTION}
            found.notes += [problem for name, problem in stack._read[1].items() if name not in functions]
            for nested in stack.nested_resources():
                if nested.logical_id not in stack.nested:
                    reason = f"{nested.name}: a nested stack is run if its template is a file"
                    found.targets[nested.physical_name] = reason
        return found

    def parameters(self) -> dict[str, str | Unresolvable]:
        """Return the texts of the parameters, or why they have none."""
        return {name: self._parameter(name) for name in self.tree.declared}

    def problems(self, *, checks_values: bool = True) -> Iterator[str]:
        """Yield a sentence for each wrong, missing or unknown parameter, broken rule and invalid resource."""
        prefix, declared, place = f"{self.name}." if self.name else "", self.tree.declared, self._place
        for name in (each for each in self._passed if each not in declared):
            yield f"{place}.{name}: {self.tree.label} has no such parameter; {hint(name, [*declared])}"
        wrong = []
        for name, text in self.parameters().items():
            if isinstance(text, Wrong):
                wrong.append(str(text))
            elif checks_values and not isinstance(text, Unresolvable):
                is_local = self._services is not None
                wrong += filter(None, [refused_value(prefix + name, declared[name], text, is_local=is_local)])
        yield from wrong
        if wrong:
            return  # rules and nested stacks need valid values
        yield from (f"{text}." for text in broken_rules(self.tree.document, self.names))
        for resource in self.resources.values():
            if problem := unsupported_target(resource, self.resources):
                yield problem
        for each in self.nested.values():
            yield from each.problems(checks_values=checks_values)

    @property
    def _place(self) -> str:
        """The member of the parent's template that has the parameters, for messages."""
        return f"{self.name}.Parameters"

    def output(self, name: str) -> Any:
        """Return an output, or why it has no value. Raises Unresolvable if there is none."""
        outputs = self.tree.document.get("Outputs") or {}
        if name not in outputs:
            raise Unresolvable(f"the nested stack {self.name} has no output {name}; {hint(name, [*outputs])}")
        output, condition = self._section(f"Outputs.{name}", outputs[name]), outputs[name].get("Condition")
        if condition is not None and not holds(condition, self.names):
            raise Unresolvable(f"{output.name} does not exist under these conditions")
        return output.text("Value")

    @cached_property
    def _passed(self) -> dict[str, Any]:
        """The parameters that the parent passes, unresolved."""
        return {} if self._resource is None else dict(self._resource.members("Parameters"))

    def _parameter(self, name: str) -> str | Unresolvable:
        """Return a parameter as text: given, passed by the parent, or the default. Raises TemplateError."""
        parameter, resource = self.tree.declared[name], self._resource
        if name in self._given:
            return self._given[name]
        value = None
        try:
            if resource is not None:
                value = resource.resolve(f"Parameters.{name}", self._passed.get(name))
        except TemplateError as error:
            return Unresolvable(str(error))
        if isinstance(value, list):
            return Wrong(f"{self._place}.{name}: must be a string: join the list with !Join")
        if resource is not None and value is not None:
            return resource.as_text(f"Parameters.{name}", value)
        if resource is not None and "Default" not in parameter:
            return Wrong(f"{self._place}: {self.tree.label} needs a value of {name}")
        return default_value(f"{self.name}.{name}" if self.name else name, parameter)

    def _reference(self, name: str) -> Any:
        """Return the value of a name. Raises KeyError and TemplateError."""
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self.tree.declared:
            text = self._parameter(name)
            is_items = isinstance(text, str) and is_list(self.tree.declared[name])
            return split_list(str(text)) if is_items else text
        if self._services is None:
            raise KeyError(name)
        if name in self.resources:
            return reference_to(self.resources[name], self._services)
        if name in (IMPLICIT_HTTP_API, IMPLICIT_REST_API):
            return name
        for function in (each for each in self.resources.values() if each.kind == FUNCTION):
            if (found := generated_reference(function, name)) is not None:
                return found
        raise KeyError(name)

    def _attribute(self, path: str) -> Any:
        """Return an attribute of a resource. Raises KeyError, Unresolvable and TemplateError."""
        name, _, attribute = path.partition(".")
        if name in self.nested and attribute.startswith("Outputs."):
            return self.nested[name].output(attribute.removeprefix("Outputs."))
        if self._services is None:
            raise KeyError(path)
        if name in self.resources:
            return attribute_of(self.resources[name], attribute, self._services)
        if path == f"{IMPLICIT_HTTP_API}.ApiEndpoint":
            return self._services.api_url
        if attribute == "Arn" and self.names.values[name] == name:  # the role that SAM generates
            return f"arn:aws:iam::{ACCOUNT}:role/{name}"
        raise KeyError(path)
