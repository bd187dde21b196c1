"""What every test run has: a Hypothesis profile, little garbage collection, an order, and an orderly end."""

import gc
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Plugins in `support` are imported by helpers as well, whichever test module comes first.
pytest.register_assert_rewrite("support")

# A termination ends the run as Ctrl-C does, through all fixtures: they stop what they started.
signal.signal(signal.SIGTERM, signal.default_int_handler)

# Shared machines are slow at times, and that is no failure. The same code has the same verdict; the option
# --hypothesis-profile=random tries other examples.
settings.register_profile(
    "fixed", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False)
settings.load_profile("fixed")

pytest_plugins = [
    "support.public_authorities",
    "support.response_validation",
    "support.skips",
]

# Collecting makes millions of objects that live until the end. They are exempt from garbage collection, since
# each test that calls gc.collect() would traverse them all (0.4 s).
gc.disable()

LONGEST_FIRST = (
    "sam/test_new_application.py",
    "clients/test_real_clients.py",
    "corpus/test_corpus.py",
    "artefact/test_growing_application.py",
    "artefact/test_deployment_history.py",
    "artefact/test_emulator.py",
    "pipeline/test_workflow.py",
    "question_ui/test_view.py",
    "question_ui/test_fields_in_the_view.py",
    "tools/console/test_news.py",
    "tools/console/test_pages.py",
    "bounds/test_worst_bodies.py",
    "tools/console/test_examples.py",
    "artefact/test_deployed.py",
    "sam/test_build.py",
    "tools/run/test_main.py",
    "tools/growth/test_new_function.py",
    "sam/test_least_privilege.py",
    "test_benchmarks.py",
    "tools/console/test_calls.py",
    "tools/console/test_experiments.py",
)
"""The files that take longest: one that is started last would run on its own."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return one more than there are cores: many tests wait, and each process collects all of them."""
    return (os.cpu_count() or 1) + 1


def pytest_sessionstart(session):
    """Send the process that reports only what it shows. A third of the messages say that a part passed."""
    for plugin in session.config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":  # of pytest-xdist, in its processes
            plugin.sendevent = partial(_send_news, plugin.sendevent)


def _send_news(send: Callable[..., None], name: str, **given: Any) -> None:
    report = given.get("data", {})
    has_passed = report.get("outcome") == "passed" and report.get("when") in ("setup", "teardown")
    if name != "logstart" and not has_passed:
        send(name, **given)


def pytest_collection_modifyitems(items):
    folder = Path(__file__).parent
    ranks = {folder / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    assert all(path.exists() for path in ranks), "LONGEST_FIRST names a file that was moved"
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend():
    """The event loop of tests with the mark `anyio`."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def folder_of_inner_sessions(tmp_path_factory):
    """Keep sessions that tests start from deleting the files of earlier ones, which takes them a minute."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("sessions"))
