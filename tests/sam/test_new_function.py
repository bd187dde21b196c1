"""Functions that `make new-function` added, and a tool of `make new-tool`, under this project's own tests.

tests/tools/growth compares what they add with the examples.
"""

import shutil
import sys

from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from support.project import ROOT, TASK_TOOL, TOOL, copy_project
from support.sam_build import SAM, run

CHECKS = (
    *("sam/test_template.py", "sam/test_edge.py", "sam/test_edge_routes.py", "tools/catalog/test_catalog.py"),
    *(f"functions/test_{each}.py" for each in (TOOL, TASK_TOOL)),
)
"""The tests of the tools, and tests of a project that compare its tools. Each other test is of the package,
lints, or takes long.

sam/test_least_privilege.py takes half a minute; it records the calls of added tools, too.
"""

SLOW = "lint_clean"


def test_the_tests_of_the_project_pass_without_another_change(tmp_path):
    project = copy_project(tmp_path)
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, project / folder, dirs_exist_ok=True)
    write(plan_function(project, TOOL))
    write(plan_function(project, TASK_TOOL, tasks=True))
    write(plan_tool(project, f"{TOOL}_2", TOOL))
    tests = [f"tests/{each}" for each in CHECKS]
    options = ("-p", "no:cacheprovider", "-k", f"not ({SLOW})")
    done = run(sys.executable, "-m", "pytest", *options, *tests, cwd=project, SAM=str(SAM))
    assert done.returncode == 0, done.stdout
