"""`make storm`: lose a worker at every call, in every way and deployment; print how long tasks wait."""

import sys
import time

from storm.outcome import GOAL_S, as_table, assert_laws, run_all, slowest_claims
from storm.plan import all_cases


def main() -> int:
    started = time.monotonic()
    outcomes = run_all(all_cases())
    for outcome in outcomes:
        assert_laws(outcome)
    print(f"{len(outcomes)} tasks lost a worker and completed ({time.monotonic() - started:.0f} s).\n")
    print("Seconds of Lambda's time from the loss of a worker to the next claim, at most:\n")
    print(as_table(outcomes))
    return 0 if all(max(figures) <= GOAL_S for figures in slowest_claims(outcomes).values()) else 1


if __name__ == "__main__":
    sys.exit(main())
