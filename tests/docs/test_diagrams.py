import re
from pathlib import Path

from support import skips
from support.project import ROOT

pytest_plugins = ["support.browser"]

PROGRAM = Path(__file__).with_name("diagrams.mjs")
MERMAID = ROOT / ".cache/mermaid/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DIAGRAMS = {
    f"{page.relative_to(ROOT)}: {title}": text
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for text in FENCE.findall(page.read_text("utf-8"))
    for title in re.findall(r"accTitle: (.+)", text) or ["no title"]
}


def test_the_pages_draw_a_call_a_task_and_a_deployment():
    titles = {name.partition(": ")[2] for name in DIAGRAMS}
    assert titles >= {"One call over three rounds", "The life of a task", "What is deployed"}
    assert [name for name, text in DIAGRAMS.items() if "accDescr: " not in text] == []


def test_every_diagram_is_drawn(run_in_browser, tmp_path):
    """Run with --basetemp to look at the images."""
    if not MERMAID.exists():
        skips.skip(skips.NODE, "mermaid")
    given = {"mermaid": str(MERMAID), "diagrams": list(DIAGRAMS.values()), "images": str(tmp_path)}
    for name, drawn in zip(DIAGRAMS, run_in_browser(PROGRAM, given), strict=True):
        assert "error" not in drawn, (name, drawn)
        assert drawn["title"] == name.partition(": ")[2]
        assert drawn["texts"].strip(), name
        assert 200 < drawn["width"] <= 1000, (name, drawn["width"])
        assert 100 < drawn["height"] < 1600, (name, drawn["height"])
