"""docs/explanation/cost.md and docs/explanation/scale.md contain the output of `make cost` and `make scale`.

Both are computed from the same measured usage, with listed prices and with quotas.
"""

import pytest

import cost
import kms_usage
import scale
from markdown_tables import insert_tables
from support.project import ROOT

COST, SCALE = ROOT / "docs/explanation/cost.md", ROOT / "docs/explanation/scale.md"


@pytest.fixture(scope="module")
def usage():
    return cost.aws_usage.measure_usage()


@pytest.fixture(scope="module")
def kms_usages():
    return kms_usage.measure_kms_usage()


@pytest.fixture(scope="module")
def prices():
    return cost.Prices.read(cost.PRICES)


def test_the_tables_of_the_document_are_up_to_date(usage, prices):
    document = COST.read_text("utf-8")
    found = cost.report(usage, prices, cost.Assumptions())
    assert insert_tables(document, found, cost.COMMENTS) == document, (
        'make cost ARGUMENTS="--into docs/explanation/cost.md"'
    )


def test_the_numbers_in_the_prose_match_the_tables(usage, prices):
    before_tables, _, _ = COST.read_text("utf-8").partition(cost.COMMENTS[0])
    prose = " ".join(before_tables.split())
    assumed, [memory_mb] = cost.Assumptions(), {*usage.memory_mb.values()}
    assert f"a tool of {assumed.tool_ms} ms, functions with {memory_mb:,} MB" in prose
    assert f"one cold start in {1 / assumed.cold_share:.0f} invocations" in prose
    whole = prices.usd(cost.make_bill(usage.question, usage.memory_mb, assumed)) * cost.MILLION
    signing = prices.usd({"kms_ecc": usage.question["Sign"]}) * cost.MILLION
    assert f"${signing:.2f} of the ${whole:.2f}" in prose
    assert f"its dashboard, ${prices.usd(usage.month):.2f} a month" in prose
    watching = prices.usd(usage.month, "alarm_month", "dashboard_month")
    tutorial = (ROOT / "docs/tutorial/index.md").read_text("utf-8")
    assert f"at most ${watching:.2f} for [alarms and a dashboard]" in tutorial


def test_a_tool_adds_no_alarm_and_a_tool_with_tasks_adds_one():
    """So that the page stays true when a tool is added."""
    resources = cost.aws_usage.load(ROOT / "template.yaml")["Resources"].values()
    alarms = [each["Properties"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    with_redrive = [each for each in resources if "RedrivePolicy" in each["Properties"]]
    of_queues = [each for each in alarms if each.get("MetricName") == cost.aws_usage.OF_TOOLS_WITH_TASKS]
    assert len(of_queues) == len(with_redrive)
    assert not any("FunctionName" in str(each.get("Dimensions")) for each in alarms)


@pytest.fixture
def quotas():
    return scale.Quotas.read(scale.QUOTAS)


@pytest.fixture
def workloads(usage, kms_usages):
    return scale.workloads(usage, kms_usages, scale.Assumptions())


def breaks_first(workload, quotas):
    """Return the first quota that breaks; parameters of the template break earlier."""
    return next(name for name, _, _ in scale.carried(workload, quotas) if name.islower())


def test_the_tables_of_the_scale_page_are_up_to_date(workloads, quotas):
    document = SCALE.read_text("utf-8")
    found = scale.report(workloads, quotas)
    assert insert_tables(document, found, scale.COMMENTS) == document, (
        'make scale ARGUMENTS="--into docs/explanation/scale.md"'
    )


def test_the_prose_of_the_scale_page_names_what_breaks_first(workloads, quotas):
    short, direct, delegated, tasks = workloads
    assert breaks_first(direct, quotas) == "kms_ecc"
    for each in (short, delegated, tasks):
        assert breaks_first(each, quotas) == "lambda_requests"
    slow = scale.Assumptions(tool_ms=2_000)
    [carries] = [
        carries
        for name, _, carries in scale.carried(scale.Workload("slow", short.used, short.kms, slow), quotas)
        if name == "lambda_concurrency"
    ]
    prose = SCALE.read_text("utf-8")
    assert f"{carries:.0f} for one of two seconds" in prose


def test_a_parameter_of_the_template_breaks_before_each_quota(workloads, quotas):
    for workload in workloads:
        assert scale.carried(workload, quotas)[0][0] == "ThrottlingRate"


def test_every_quota_has_a_source_of_aws(quotas):
    sources = {name: each.source for name, each in quotas.by_name.items() if not name[0].isupper()}
    of_aws = "https://docs.aws.amazon.com/"
    assert [name for name, source in sources.items() if not source.startswith(of_aws)] == []
