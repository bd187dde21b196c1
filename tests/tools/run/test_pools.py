from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.execution.pools import Pools, affected_functions
from mcp_roundtrip_tools.template.model import Function

LAYER = Path("/layer")
ONE = Function("One", "app.handler", Path("/one"), (LAYER,), {}, 3, 128)
TWO = Function("Two", "app.handler", Path("/two"), (), {}, 3, 128)
BOTH = {"One": ONE, "Two": TWO}


class Launched:
    """A process that counts how often it was stopped."""

    def __init__(self, function: Function) -> None:
        self.code = function.code
        self.alive = True

    def invoke(
        self,
        payload: bytes,
        *,
        function_arn: str,
        request_id: str | None = None,
        client_context: str | None = None,
    ) -> InvocationResult:
        return InvocationResult(str(self.code).encode())

    def stop(self) -> None:
        self.alive = False


def test_a_changed_file_affects_the_functions_that_use_it() -> None:
    for path, names in (
        ("/one/app.py", ["One"]),
        ("/layer/x/y.py", ["One"]),
        ("/oneself/app.py", []),
        ("/two", ["Two"]),
    ):
        assert affected_functions(BOTH, BOTH, [Path(path)]) == names


def test_a_new_or_different_definition_affects_its_function() -> None:
    assert affected_functions({"One": ONE}, BOTH, []) == ["Two"]
    assert affected_functions(BOTH, {**BOTH, "Two": replace(TWO, timeout_s=4)}, []) == ["Two"]


def test_a_function_keeps_its_process_until_it_is_retired_or_has_other_code() -> None:
    launched: list[Launched] = []

    def launch(function: Function) -> Launched:
        launched.append(Launched(function))
        return launched[-1]

    pools = Pools(launch, fresh=False)
    for code in ("/one", "/one", "/copy"):
        assert pools.pool_for(ONE, Path(code)).invoke(b"", function_arn="").payload == code.encode()
    assert [each.alive for each in launched] == [False, True]
    pools.retire(["One", "Unknown"])
    assert [each.alive for each in launched] == [False, False]
    pools.pool_for(TWO, TWO.code).invoke(b"", function_arn="")
    pools.close()
    assert [each.alive for each in launched] == [False, False, False]
