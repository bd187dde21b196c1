import re
from pathlib import Path

from mcp_roundtrip_tools.lint.checking import check_text
from mcp_roundtrip_tools.lint.rules import RULES
from support.documents import code_blocks, read_document

PAGE = "docs/reference/lint.md"
IMPORTS = """
import asyncio, time, uuid, boto3
from pydantic import BaseModel
from mcp_roundtrip import AsyncContext, Context, ElicitationCancelled, ElicitationDeclined, Server
"""
CORPUS = Path(__file__).parent / "corpus"
_SNIPPET = re.compile(r"^# (wrong|right)(?: (MRT\d+))?: (.+)$", re.MULTILINE)


DOCSTRING = "MRT013"
"""Not reported by the snippets of other rules, which leave out docstrings."""


def rules_of(code: str, shown: str) -> list[str]:
    """Return the rules that report a snippet of the rule `shown`."""
    found = (finding.rule for finding in check_text(Path("app.py"), IMPORTS + code))
    return [rule for rule in found if shown == DOCSTRING or rule != DOCSTRING]


def snippets(path: Path) -> list[tuple[str, list[str], str, str]]:
    """Return the snippets of a file of the corpus: a title, the rules that report it, the code, its rule."""
    parts = _SNIPPET.split(path.read_text("utf-8"))[1:]
    found = []
    for verdict, rule, title, code in zip(*[iter(parts)] * 4, strict=True):
        found.append((f"{verdict}: {title}", [rule] if verdict == "wrong" else [], code, path.stem))
    return found


ALL = [each for path in sorted(CORPUS.glob("*.txt")) for each in snippets(path)]


def test_the_snippets_of_the_corpus_have_the_expected_findings():
    found = [(title, sorted(set(rules_of(code, shown)))) for title, _, code, shown in ALL]
    assert found == [(title, expected) for title, expected, _, _ in ALL]


def test_every_rule_has_wrong_and_right_snippets():
    reported = {rule for _, rules, _, _ in ALL for rule in rules}
    assert reported == {rule.id for rule in RULES}, CORPUS
    assert {path.stem for path in CORPUS.glob("*.txt")} == {rule.id for rule in RULES}


def test_the_page_shows_each_rule_with_a_wrong_and_a_right_example():
    headings = re.findall(r"^## (MRT\d+): (.+)$", read_document(PAGE), re.MULTILINE)
    assert headings == [(rule.id, rule.title) for rule in RULES], PAGE
    suppressed, *examples = code_blocks(PAGE, "python")
    assert not rules_of(suppressed, RULES[0].id)
    for rule, wrong, right in zip(RULES, examples[::2], examples[1::2], strict=True):
        assert set(rules_of(wrong, rule.id)) == {rule.id}
        assert not rules_of(right, rule.id)


def test_a_finding_names_the_place_and_the_remedy():
    code = "from mcp_roundtrip import Context\nimport time\n\n\ndef ask(ctx: Context) -> None:\n"
    code += '    ctx.elicit("k", str(time.time()), bool)\n'
    [finding] = check_text(Path("functions/x/app.py"), code)
    assert str(finding).startswith("functions/x/app.py:6:25: MRT001 time.time() ")
    assert 'ctx.now("…")' in finding.message
    code = code.replace("time", "boto3").replace("boto3.boto3()", 'boto3.client("sqs").send_message()')
    [finding] = check_text(Path("app.py"), code)
    assert finding.message.startswith("boto3.client('sqs').send_message(…) ")
    code = "from typing import Literal\nfrom mcp_roundtrip import Context\ndef ask(ctx: Context) -> None:\n"
    [finding] = check_text(Path("app.py"), code + '    ctx.elicit("k", "?", list[Literal[1, 2]])\n')
    assert "Literal['1', …]" in finding.message, "it is a list of choices already"
