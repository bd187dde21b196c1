"""docs/cost.md contains the output of `make cost`, which is measured usage times listed prices."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def cost():
    """Import the script, and hide its modules from other tests afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import cost

        yield cost
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture(scope="module")
def usage(cost):
    return cost.aws_usage.measure_usage()


@pytest.fixture(scope="module")
def kms_usages(cost):
    return cost.kms_usage.measure_kms_usage()


@pytest.fixture(scope="module")
def prices(cost):
    return cost.Prices.read(cost.PRICES)


def test_the_tables_of_the_document_are_up_to_date(cost, usage, kms_usages, prices):
    document = (ROOT / "docs/cost.md").read_text("utf-8")
    found = cost.report(usage, kms_usages, prices, cost.Assumptions())
    assert cost.insert_tables(document, found) == document, 'make cost ARGUMENTS="--into docs/cost.md"'


def test_the_numbers_in_the_prose_match_the_tables(cost, usage, prices):
    before_tables, _, _ = (ROOT / "docs/cost.md").read_text("utf-8").partition(cost.BEGIN)
    prose = " ".join(before_tables.split())
    whole = prices.usd(cost.make_bill(usage.question, usage.memory_mb, cost.Assumptions())) * cost.MILLION
    signing = prices.usd({"kms_ecc": usage.question["Sign"]}) * cost.MILLION
    assert f"${signing:.2f} of the ${whole:.2f}" in prose
    assert f"its dashboard, ${prices.usd(usage.month):.2f} a month" in prose
    assert f"${prices.usd({'metric_month': 1}):.2f} in a month" in prose


def test_a_call_without_questions_calls_neither_kms_nor_dynamodb(usage):
    assert usage.plain == {"request": 1, "front door": 1, "tool": 1}


def test_a_question_costs_a_request_and_a_signature(usage):
    assert usage.question == {"request": 1, "front door": 1, "tool": 1, "Sign": 1}


def test_a_poll_dispatches_no_worker_and_reads_one_item(usage):
    assert usage.poll == {"request": 1, "front door": 1, "read": 1}


def test_only_directly_signed_states_cost_a_kms_call_each(kms_usages):
    assert {title: each.per_state["Sign"] for title, each in kms_usages.items()} == {
        "direct, signed": 1,
        "direct, encrypted": 1,
        "delegated, signed": 0,
        "delegated, encrypted": 0,
    }
    assert all(sum(each.per_hour.values()) < 10 for each in kms_usages.values())


def test_a_bill_grows_with_each_relevant_assumption(cost, usage, prices):
    def usd(**changed):
        return prices.usd(cost.make_bill(usage.task, usage.memory_mb, cost.Assumptions(**changed)))

    names = ["tool_ms", "front_door_ms", "worker_ms", "cold_share", "init_ms", "log_bytes"]
    for name in [*names, "access_log_bytes", "retention_hours"]:
        assert usd(**{name: 2 * getattr(cost.Assumptions(), name)}) > usd()


def test_a_bill_is_proportional_to_its_prices(cost, usage, prices, tmp_path):
    twice = tmp_path / "prices.toml"
    lines = cost.PRICES.read_text("utf-8").splitlines()
    doubled = [f"usd = {2 * float(line[6:])!r}" if line.startswith("usd = ") else line for line in lines]
    twice.write_text("\n".join(doubled).replace("e-05", "E-05"), "utf-8")
    bill = cost.make_bill(usage.task, usage.memory_mb, cost.Assumptions())
    assert cost.Prices.read(twice).usd(bill) == pytest.approx(2 * prices.usd(bill))


def test_a_file_without_the_comments_is_not_changed(cost):
    with pytest.raises(ValueError, match="make cost"):
        cost.insert_tables("# Cost\n", "| |")
