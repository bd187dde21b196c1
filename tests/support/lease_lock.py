"""The lock of a lease, under which the owner of a task writes."""

import sys
from types import FrameType

from mcp_roundtrip.tasks.lease import Lease

LOCKED = {Lease.renew.__code__, Lease.write_as_owner.__code__}
"""The methods that call the store under the lock."""


def holds_lease_lock() -> bool:
    """Return whether the calling code runs under the lock, which the heartbeat needs, too."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code not in LOCKED:
        frame = frame.f_back
    return frame is not None
