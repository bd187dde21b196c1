from collections import Counter

import pytest

import task_simulation as simulation
from support.project import ROOT

FEW, MANY = 100, 400


@pytest.fixture(scope="module")
def results():
    return [simulation.simulate(tasks) for tasks in (FEW, MANY)]


def test_everything_that_is_counted_grows_in_proportion_to_the_tasks(results):
    few, many = results
    assert {name: MANY // FEW * count for name, count in few.counts.items()} == many.counts


def test_no_partition_becomes_hot(results):
    few, many = results
    assert few.busiest == many.busiest <= 20, "DynamoDB takes 1,000 writes in a second"


def test_each_task_gets_one_worker_for_each_reason_to_run_it(results):
    """A task runs when it is created, answered, woken, and after each lost worker; nothing runs it twice."""
    reasons = Counter(invocation=len(simulation.KINDS))
    for kind in simulation.KINDS:
        reasons["wake-up"] += (kind.tool == "sleeps") + (kind.renewals is not None)  # by its replacement
        reasons["lost worker"] += kind.renewals is not None
        reasons["retry"] += kind.renewals is not None and kind.is_repeated
        reasons["renewal"] += kind.renewals or 0
        is_redispatched = kind.renewals is not None and not kind.is_repeated
        reasons["invocation"] += kind.tool in ("asks", "sleeps") or is_redispatched
    per_group = {name: results[1].counts[name] * len(simulation.KINDS) // MANY for name in reasons}
    assert per_group == reasons


def test_the_scale_page_has_the_busiest_second_of_a_partition(results):
    document = (ROOT / "docs/explanation/scale.md").read_text("utf-8")
    busiest = f"busiest second of any partition has {results[1].busiest} of"
    assert busiest in " ".join(document.split())
