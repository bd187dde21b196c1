"""The load of calls on AWS, and the limits that they reach.

The load of a call is the measured number of AWS calls (see aws_usage.py and kms_usage.py) and, for
concurrency, an assumed duration. Limits are the quotas in quotas.toml and parameters of template.yaml.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import aws_usage
import cost
from aws_usage import FRONT_DOOR, TOOL, WORKER, Usage, UsageReport
from kms_usage import KmsUsage
from markdown_tables import assumption, read_dated
from mcp_roundtrip.state.jwe import EPOCH_S
from mcp_roundtrip.state.jws import renewal_time
from mcp_roundtrip_tools.template.yaml_reader import load

QUOTAS = Path(__file__).with_name("quotas.toml")

RENEWAL_S = renewal_time(0, EPOCH_S, 1) - renewal_time(0, EPOCH_S, 0)
"""The seconds over which environments spread the derivation of the next epoch key."""

SHARED = "account and Region"
RESERVED = "ReservedConcurrentExecutions"

COST = cost.Assumptions()


@dataclass(frozen=True, slots=True)
class Quota:
    """A default quota of AWS, or a parameter of the template."""

    value: float
    unit: str
    scope: str
    raised: str
    source: str


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one Region, and the date on which they were read."""

    region: str
    read_on: str
    by_name: Mapping[str, Quota]

    @classmethod
    def read(cls, path: Path) -> "Quotas":
        region, read_on, quotas = read_dated(path, Quota)
        return cls(region, read_on, {**quotas, **_parameters()})


def _parameters() -> dict[str, Quota]:
    """Return the limits of the templates, with their defaults."""
    rate = load(aws_usage.PLATFORM)["Parameters"]["ThrottlingRate"]["Default"]
    functions = [each["Properties"] for each in load(aws_usage.TEMPLATE)["Resources"].values()]
    [workers] = {each[RESERVED] for each in functions if RESERVED in each}
    page = "../reference/options.md"
    return {
        "ThrottlingRate": Quota(
            rate, "requests a second to the endpoint", "stack", "option of the platform", page
        ),
        RESERVED: Quota(
            workers, "concurrent executions of each worker", "stack", "property of the worker", page
        ),
    }


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Hold the quantities that cannot be measured here. The durations are those of cost.py."""

    tool_ms: int = assumption(COST.tool_ms, "duration of a round in the tool, without `kms:Sign`")
    front_door_ms: int = assumption(COST.front_door_ms, "the front door's own time, without waiting")
    worker_ms: int = assumption(COST.worker_ms, "duration of a worker invocation")
    sign_ms: int = assumption(10, "duration of `kms:Sign`")
    polls: int = assumption(COST.polls, "polls of a task, one a second")
    log_batches: int = assumption(1, "`PutLogEvents` requests a second of a busy execution environment")


# -- loads ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """One kind of call: its AWS usage, and its KMS requests for each hour of an execution environment."""

    title: str
    used: Usage
    kms: KmsUsage
    assumptions: Assumptions

    @cached_property
    def environments(self) -> dict[str, float]:
        """The busy execution environments of each kind of function for one call a second."""
        given = self.assumptions
        in_tool_ms = self.used[TOOL] * given.tool_ms + self.signatures * given.sign_ms
        return {
            FRONT_DOOR: (self.used[FRONT_DOOR] * given.front_door_ms + in_tool_ms) / 1000,
            TOOL: in_tool_ms / 1000,
            WORKER: self.used[WORKER] * given.worker_ms / 1000,
        }

    @property
    def concurrency(self) -> float:
        return sum(self.environments.values())

    @property
    def signatures(self) -> float:
        """The states of a call that KMS signs."""
        return self.used["Sign"] * self.kms.per_state["Sign"]

    @property
    def seals(self) -> bool:
        """Whether its environments need keys."""
        return self.used["Sign"] > 0

    def per_hour(self, operation: str) -> float:
        """Return the requests a second that environments make regardless of their calls."""
        each = self.kms.per_hour.get(operation, 0) / 3600 if self.seals else 0
        return each * self.environments[TOOL]

    @property
    def epoch_change(self) -> float:
        """The `GenerateMac` requests a second while all environments derive the next epoch key."""
        return self.environments[TOOL] / RENEWAL_S if self.seals else 0


LOADS: Mapping[str, tuple[str, Callable[[Workload], float]]] = {
    "ThrottlingRate": ("requests (`ThrottlingRate`)", lambda each: each.used["request"]),
    "api_requests": ("requests to API Gateway", lambda each: each.used["request"]),
    "edge_requests": ("requests through CloudFront", lambda each: each.used["request"]),
    "lambda_requests": ("synchronous invocations", lambda each: each.used[FRONT_DOOR] + each.used[TOOL]),
    "lambda_concurrency": ("concurrent executions", lambda each: each.concurrency),
    RESERVED: (f"workers (`{RESERVED}`)", lambda each: each.environments[WORKER]),
    "queue_batches": ("messages being processed, with a queue", lambda each: each.environments[WORKER]),
    "kms_ecc": ("`kms:Sign`", lambda each: each.signatures + each.per_hour("Sign")),
    "kms_symmetric": ("`kms:GenerateMac` before a new epoch", lambda each: each.epoch_change),
    "kms_public_key": ("`kms:GetPublicKey`", lambda each: each.per_hour("GetPublicKey")),
    "table_writes": ("write units", lambda each: each.used["write"]),
    "table_reads": ("read units", lambda each: each.used["read"]),
    "log_requests": ("`PutLogEvents`", lambda each: each.concurrency * each.assumptions.log_batches),
}
"""The title of each limit, and the load of one call a second."""


def carried(workload: Workload, quotas: Quotas) -> list[tuple[str, float, float]]:
    """Return (limit, load of one call a second, calls a second that it carries), the first to break first."""
    loads = ((name, load(workload)) for name, (_, load) in LOADS.items())
    found = [(name, load, quotas.by_name[name].value / load) for name, load in loads if load]
    return sorted(found, key=lambda each: each[2])


def regions_needed(workload: Workload, quotas: Quotas, rate: float) -> tuple[int, str]:
    """Return how many pairs of account and Region carry the rate, and the limit that decides it."""
    name, _, carries = next(
        each for each in carried(workload, quotas) if quotas.by_name[each[0]].scope == SHARED
    )
    return math.ceil(round(rate / carries, 6)), name


def workloads(
    usage: UsageReport, kms_usages: Mapping[str, KmsUsage], assumptions: Assumptions
) -> list[Workload]:
    direct, delegated = kms_usages["direct, encrypted"], kms_usages["delegated, encrypted"]
    asking = usage.plain + usage.question
    polled = usage.task + Usage({name: count * assumptions.polls for name, count in usage.poll.items()})
    return [
        Workload("Short calls", usage.plain, direct, assumptions),
        Workload("Calls with a question, `StateSigning` `direct`", asking, direct, assumptions),
        Workload("Calls with a question, `StateSigning` `delegated`", asking, delegated, assumptions),
        Workload(f"Tasks with three questions and {assumptions.polls} polls", polled, delegated, assumptions),
    ]
