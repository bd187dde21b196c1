"""The errors about a tool's use of its context. Each message says what to write instead.

Imported where one is raised, so that correct code does not load it.
"""

from __future__ import annotations

from typing import Any

from mcp_roundtrip.arguments.signature import function_name, type_name
from mcp_roundtrip.errors import DefinitionError, UsageError


def _type(value: Any) -> str:
    return type(value).__name__


# -- steps ----------------------------------------------------------------------------------------------


def invalid_step(key: str, how: object) -> UsageError:
    """Return the error about the step `key`; the text continues "step 'key'"."""
    return UsageError(f"step {key!r} {how}")


def not_callable(key: str, value: Any) -> UsageError:
    return invalid_step(
        key,
        f"takes a function, not {_type(value)}; pass the function and its arguments without calling it, "
        f"as in `ctx.step({key!r}, function, argument)`",
    )


def async_function_in_sync_step(key: str, function: Any) -> UsageError:
    return invalid_step(
        key,
        f"calls {function_name(function)}, which is async, in a tool that is not; write `async def` for the "
        "tool, with `ctx: AsyncContext`, and await the step, or pass a function that is not async",
    )


def at_most_once_with_retry(key: str) -> UsageError:
    return invalid_step(key, "has both at_most_once and retry; remove one of them")


def at_most_once_outside_task(key: str) -> UsageError:
    return invalid_step(key, "has at_most_once outside a task; call ctx.run_as_task() before the step")


def unannotated_result(key: str, value: Any) -> UsageError:
    return invalid_step(
        key,
        f"returned {_type(value)}, and its function has no return annotation to read it back; "
        f"write `-> {_type(value)}`, or `-> Any` for plain JSON data",
    )


def deep_result(key: str, levels: int) -> UsageError:
    return invalid_step(key, f"returned a value nested deeper than {levels} levels; return a flatter one")


def inside_function(kind: str, key: str) -> UsageError:
    if kind == "question":
        return UsageError(
            f"question {key!r}: done= uses the context; call the context before the question, and let done "
            "use the result"
        )
    return invalid_step(
        key,
        "uses the context inside its function; call the context before or after the step, and pass what the "
        "function needs as arguments",
    )


# -- tasks ----------------------------------------------------------------------------------------------


def task_in_branch(prefix: str) -> UsageError:
    return UsageError(
        f"run_as_task is called in the branch {prefix.rstrip('/')!r}; call it before the branches begin"
    )


def task_lifetime(ttl_ms: Any) -> UsageError:
    return UsageError(
        f"run_as_task: ttl_ms={ttl_ms!r:.100} is not a lifetime; pass whole milliseconds, at least 1"
    )


def task_not_offered() -> UsageError:
    return UsageError(
        'run_as_task is called in a tool without task=; write @server.tool(task="optional"), or "required"'
    )


def sleep_outside_task(key: str) -> UsageError:
    return UsageError(f"sleep {key!r} is called outside a task; call ctx.run_as_task() before it")


def sleep_duration(key: str, duration_ms: Any, most: int) -> UsageError:
    return UsageError(
        f"sleep {key!r}: {duration_ms!r:.100} is not a duration; pass milliseconds from 0 to {most}"
    )


# -- questions ------------------------------------------------------------------------------------------


def not_a_question(value: Any) -> UsageError:
    return UsageError(
        f"ask takes questions, not {_type(value)}; pass Elicit(key, message, model), ElicitUrl(...), "
        "Sample(...) or ListRoots()"
    )


def namespaced_request_in_task(key: str) -> UsageError:
    return UsageError(
        f"namespaced request {key!r} is made in a task, which cannot send it; call it before "
        "ctx.run_as_task()"
    )


def namespaced_requests_off(key: str) -> UsageError:
    return UsageError(
        f"namespaced request {key!r} is made by a server that does not allow them; write "
        "Server(..., namespaced_requests=True)"
    )


def namespaced_request_name(key: str, name: Any) -> DefinitionError:
    return DefinitionError(
        f"namespaced request {key!r}: {name!r:.200} is not a name in your own domain; write one such as "
        "'com.example/approval'"
    )


def message_type(key: str, message: Any) -> DefinitionError:
    return DefinitionError(f"question {key!r}: the message is {_type(message)}; pass a str")


def form_model(key: str, error: DefinitionError) -> DefinitionError:
    return DefinitionError(f"question {key!r}: {error}")


def default_type(key: str, default: Any, model: Any) -> DefinitionError:
    return DefinitionError(
        f"question {key!r}: default= is {_type(default)}, and the answer is {type_name(model)}; pass a "
        "value of that type, or None"
    )


def elicitation_url(key: str, given: Any) -> DefinitionError:
    return DefinitionError(
        f"question {key!r}: {given!r:.200} is not an absolute URL; write one such as 'https://example.com/pay'"
    )


def sampling_params(key: str, problem: str) -> DefinitionError:
    return DefinitionError(
        f"question {key!r}: {problem}; write CreateMessageRequestParams of the MCP schema, in camelCase"
    )


def done_type(key: str, done: Any) -> DefinitionError:
    return DefinitionError(
        f"question {key!r}: done= is {_type(done)}; pass a function without parameters, such as "
        "`done=lambda: is_paid(order)`"
    )


def done_is_async(key: str) -> UsageError:
    return UsageError(
        f"question {key!r}: done= is async in a tool that is not; write `def` for done, or `async def` for "
        "the tool"
    )


def poll_interval(key: str, interval_ms: Any, least: int) -> DefinitionError:
    return DefinitionError(
        f"question {key!r}: poll_interval_ms={interval_ms!r:.100} is not an int of at least {least}; pass "
        "one, or None to call done() once in each round"
    )


# -- notifications --------------------------------------------------------------------------------------


def log_level(given: Any, levels: tuple[str, ...]) -> UsageError:
    return UsageError(f"log: {given!r:.100} is not a log level; use one of {', '.join(levels)}")


def log_data(data: Any) -> UsageError:
    return UsageError(f"log: JSON cannot hold this {_type(data)}; pass text, numbers, lists or dicts")


def progress_number(value: Any) -> UsageError:
    return UsageError(f"progress: {value!r:.100} is not a finite number; pass an int or a float")
