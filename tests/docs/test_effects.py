"""Code that readers copy repeats no effect: its steps pass an idempotency key, or may run again."""

import ast
import re
from collections.abc import Iterator

from support.documents import blocks_of, read_document
from support.project import ROOT

DOCUMENTS = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
MODULES = sorted(
    path
    for folder in ("functions", "development/mcp_roundtrip_tools/new/application")
    for path in ROOT.glob(f"{folder}/**/app.py")
)

READS = {
    "databases.prices",
    "temperature",
    "fetch",
    "is_issued",
    "load",
    "price_of",
    "rfc_editor.fetch",
    "weather",
}
CALCULATES = {"int"}
CHANGES_NOTHING_THE_SECOND_TIME = {
    "approvals.use",  # its arguments have the key
    "compile_report",  # overwrites
    "databases.activate",
    "databases.delete",
    "files.delete",
    "files.move",
    "files.rename",
    "shrink",  # overwrites
    "tables.delete",
    "update",  # sets fields
    "upload",  # the page says that a repeated round uploads again
}
MAY_RUN_AGAIN = READS | CALCULATES | CHANGES_NOTHING_THE_SECOND_TIME
"""The functions of steps that need no key."""


SHOWN_AS_WRONG = re.compile(r"^Wrong:\n\n```python\n.*?^```\n", re.DOTALL | re.MULTILINE)


def steps_without_key(code: str) -> Iterator[str]:
    """Yield the functions of steps that may repeat an effect."""
    module = ast.parse(code)
    keys = {
        target.id
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and has_key(node.value, set())
        for target in node.targets
        for target in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            once = any(keyword.arg == "at_most_once" for keyword in node.keywords)
            if not once and not any(has_key(argument, keys) for argument in node.args):
                yield ast.unparse(node.args[1])


def has_key(node: ast.AST, keys: set[str]) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr == "idempotency_key")
        or (isinstance(each, ast.Name) and each.id in keys)
        for each in ast.walk(node)
    )


def shown_code() -> dict[str, str]:
    shown = {
        f"{page}, block {number}": block
        for page in DOCUMENTS
        for number, block in enumerate(blocks_of(SHOWN_AS_WRONG.sub("", read_document(page)), "python"))
    }
    return shown | {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in MODULES}


def test_each_step_passes_a_key_or_may_run_again():
    codes = {place: code for place, code in shown_code().items() if ".step(" in code}
    assert len(codes) > 10
    found = {place: {*steps_without_key(code)} - {*MAY_RUN_AGAIN} for place, code in codes.items()}
    assert {place: names for place, names in found.items() if names} == {}
