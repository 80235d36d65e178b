"""The harness, in its two lines of versions: the PyPI package (v0.2.x), or a checkout of v1.0.1. Never both in one run.

They differ in how an agent is registered, in how a conversation is built, and in scoring: v0.2.x scores a conversation
that broke as 0, v1.x leaves it out; v1.x lets a model judge part of retail.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from envace.benchmarks.protocol import Harness, Spec
from envace.errors import BenchmarkError
from harnesses.tau2.pins import check

SPLIT = "base"
SCRIPTED = "scripted"
AGREEING = "scripted, agrees to everything"


class Line(ABC):
    """One line of versions. `broken_score`: the harness's mark of a conversation that broke, null if it drops it."""

    broken_score: float | None
    broken_reason: str
    """The termination reason that the harness gives such a conversation."""
    models: dict[str, str | None]

    def __init__(self, spec: Spec, digests: dict[str, str]) -> None:
        self.spec, self.digests = spec, digests

    def tasks(self, domain: str) -> list[Any]:
        """The tasks of the base split."""
        from tau2.registry import registry

        return registry.get_tasks_loader(domain)(SPLIT)

    def judged(self, task: Any) -> bool:
        """Whether a model has a say in the score of this task."""
        return False

    @abstractmethod
    def simulate(self, domain: str, task: Any, seed: int) -> Any:
        """One conversation, scored by the harness."""


def import_harness(harness: Harness) -> dict[str, str]:
    """Import the named harness into this process and return the digests of its code and data. Raises BenchmarkError
    where it is another version, or not as it was released.
    """
    if harness.kind == "checkout":
        root = Path(harness.checkout or "")
        if not (root / "src/tau2").is_dir():
            raise BenchmarkError(f"{harness.checkout or 'no path'}: no checkout of tau2-bench (it has no src/tau2)")
        found = check(harness.version, root / "src/tau2", root / "data")
        os.environ["TAU2_DATA_DIR"] = str(root / "data")  # read on import
        sys.path.insert(0, str(root / "src"))
        import tau2.runner.simulation  # type: ignore[import-not-found]
    else:
        import tau2

        package = Path(str(tau2.__file__)).parent
        found = check(harness.version, package, package / "data")
        import tau2.run
    return found


def line_of(spec: Spec, digests: dict[str, str]) -> Line:
    """The line of versions that was imported, with the spec's agent and user registered. Once a process."""
    if spec.harness.kind == "checkout":
        from harnesses.tau2.checkout import CheckoutLine

        return CheckoutLine(spec, digests)
    from harnesses.tau2.pypi import PypiLine

    return PypiLine(spec, digests)
