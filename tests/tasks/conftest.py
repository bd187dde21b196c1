"""What the tests of tasks share."""

from support.task_tools import no_step_ran  # noqa: F401 - a fixture of each test
