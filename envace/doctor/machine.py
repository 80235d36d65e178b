"""The machine: cores, memory, disk. The bounds are what the tiny profile needs (docs/operations.md)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from envace.doctor.finding import Finding, ok, problem, warning

_CORES = 2
_MEMORY, _MEMORY_AT_LEAST = 6e9, 2e9  # bytes that a training on the CPU takes; below the second it cannot start
_DISK, _DISK_AT_LEAST = 3e9, 0.5e9


def machine(root: Path) -> Iterator[Finding]:
    """What there is of each, as this process may use it."""
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield cores_finding(cores)
    yield amount_finding("memory", psutil.virtual_memory().available, _MEMORY, _MEMORY_AT_LEAST, "end other programs")
    yield amount_finding("disk", shutil.disk_usage(root).free, _DISK, _DISK_AT_LEAST, f"free some space at {root}")


def cores_finding(cores: int) -> Finding:
    """Times of the documentation are those of two cores."""
    if cores < _CORES:
        return warning("cores", f"{cores}", "expect twice the times that the documentation states, or more")
    return ok("cores", f"{cores}")


def amount_finding(about: str, found: float, wanted: float, at_least: float, todo: str) -> Finding:
    """Bytes found against bytes wanted."""
    says = f"{found / 1e9:.1f} GB free"
    if found < at_least:
        return problem(about, says, f"{todo}: a run needs {wanted / 1e9:.0f} GB")
    if found < wanted:
        return warning(about, says, f"{todo}: a run may need {wanted / 1e9:.0f} GB")
    return ok(about, says)
