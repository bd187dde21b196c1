"""Start Python under the CPU limit that Lambda gives a function: its memory / 1769 MB of a vCPU.

Source: AWS Lambda developer guide, "Configure Lambda function memory": a function has one vCPU at 1,769 MB.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MB_OF_ONE_VCPU = 1769

PERIOD_US = 20_000
"""The period in which a quota is granted. Measurements on Lambda found 20 ms."""

_CGROUPS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (
        "cgroup v1",
        "/sys/fs/cgroup/cpu",
        {"cpu.shares": "262144", "cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}"},
    ),
    ("cgroup v2", "/sys/fs/cgroup", {"cpu.weight": "10000", "cpu.max": "{quota} {period}"}),
)
"""Title, folder, and the files of a group with their contents, in the order in which they are written. The
weight is the highest, so that other load takes little of the quota."""

_REMOVALS, _REMOVAL_PAUSE_S = 100, 0.01


class CpuLimits:
    """Writes scripts that start the interpreter under a limit. `title` says which limits there are.

    Without cgroups, processes run on one CPU, which is the limit of a function with MB_OF_ONE_VCPU.
    """

    def __init__(self, title: str, folder: Path, cgroups: Path | None, quota: Mapping[str, str]) -> None:
        self.title = title
        self._folder = folder
        self._cgroups = cgroups
        self._quota = quota
        self._groups: set[Path] = set()

    @property
    def has_quotas(self) -> bool:
        return self._cgroups is not None

    def supports(self, memory_mb: int) -> bool:
        """Return whether a process can get the CPU time of a function with this memory."""
        return self.has_quotas or memory_mb == MB_OF_ONE_VCPU

    def interpreter(self, role: str, memory_mb: int) -> str:
        """Return the path of a script that runs Python. Processes with the same `role` share one quota."""
        if self._cgroups is None:
            command = f"exec {shlex.join([*_one_cpu(), *interpreter_command()])}"
        else:
            group = self._cgroups / f"mcp-roundtrip-bench-{os.getpid()}-{role}"
            self._write_quota(group, memory_mb)
            command = f"echo $$ > {group}/cgroup.procs && exec {shlex.join(interpreter_command())}"
        script = self._folder / f"{role}-{memory_mb}"
        if not script.exists():
            script.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        return str(script)

    def _write_quota(self, group: Path, memory_mb: int) -> None:
        group.mkdir(exist_ok=True)
        self._groups.add(group)
        quota = PERIOD_US * memory_mb // MB_OF_ONE_VCPU
        for name, text in self._quota.items():
            (group / name).write_text(text.format(period=PERIOD_US, quota=quota), encoding="ascii")

    def close(self) -> None:
        """Remove the groups. Their processes must have been stopped."""
        for group in self._groups:
            for _ in range(_REMOVALS):
                try:
                    group.rmdir()
                    break
                except OSError:  # the kernel has not yet removed its last process
                    time.sleep(_REMOVAL_PAUSE_S)


def interpreter_command() -> list[str]:
    """Return the command of the interpreter itself, without the packages of a virtual environment."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [str(Path(sys.base_prefix, "bin", f"python{version}")), "-s"]


def _one_cpu() -> list[str]:
    taskset = shutil.which("taskset")
    return [taskset, "--cpu-list", str(max(os.sched_getaffinity(0)))] if taskset else []


@contextmanager
def cpu_limits(folder: Path) -> Iterator[CpuLimits]:
    """Yield the limits that this computer allows; remove their groups. Scripts are written to `folder`."""
    limits = _cgroup_limits(folder) or _cpu_limit(folder)
    try:
        yield limits
    finally:
        limits.close()


def _cgroup_limits(folder: Path) -> CpuLimits | None:
    for title, root, quota in _CGROUPS:
        limits = CpuLimits(f"CPU quota by {title}", folder, Path(root), quota)
        try:
            probe = limits.interpreter("probe", MB_OF_ONE_VCPU)
            subprocess.run([probe, "-c", ""], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):  # not mounted, read-only, or not permitted
            limits.close()
        else:
            return limits
    return None


def _cpu_limit(folder: Path) -> CpuLimits:
    title = "one CPU by taskset, no quotas" if _one_cpu() else "no CPU limit: taskset is not installed"
    return CpuLimits(title, folder, None, {})
