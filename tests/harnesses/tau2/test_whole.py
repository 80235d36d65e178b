"""The ceiling and the floor of τ²-bench over all 278 tasks: of the installed version, and of v1.0.1 where it is there.

The tasks that pass by doing nothing are pinned by version: nothing may be changed, and nothing has to be told.
"""

from __future__ import annotations

import pytest

from envace.benchmarks.tau2 import TAU2
from tests.harnesses.tau2.driving import Outcome, checkout_or_skip, drive, needs_harness, spec

pytestmark = pytest.mark.slow
AIRLINE = {
    "26.3": (0, 1, 4, 5, 6, 10, 13, 26, 28, 31, 34, 36, 41, 43, 45, 46, 47, 48, 49),
    "1.0.1": (0, 1, 2, 4, 5, 6, 9, 10, 13, 26, 27, 28, 31, 34, 36, 38, 41, 43, 45, 46, 47, 48, 49),
}
RETAIL = {"26.3": (10, 12, 25, 50, 57, 65, 105), "1.0.1": (10, 12, 24, 25, 50, 57, 62, 65, 67, 68, 105)}
"""Of v1.0.1 with a judge that agrees to everything: what the rest of its scoring lets pass."""


@pytest.fixture(scope="module", params=["26.3", "1.0.1"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Both reference agents, in one driver process."""
    needs_harness()
    harness = None if request.param == TAU2.version else checkout_or_skip()
    specs = {kind: spec(kind, harness) for kind in ("oracle", "do-nothing")}
    code, outcomes = drive(tmp_path_factory.mktemp("whole"), specs, timeout_s=5000)
    assert code == 0 and outcomes["oracle"].report.versions["tau2"] == request.param
    return outcomes


def test_the_oracle_passes_all_278(found: dict[str, Outcome]) -> None:
    failed = {task: row.reason for task, row in found["oracle"].rows.items() if row.strict != 1.0}
    assert failed == {} and len(found["oracle"].rows) == 278
    assert found["oracle"].metrics.strict["average"] == found["oracle"].metrics.official["average"] == 100.0
    assert not found["oracle"].metrics.subset


def test_doing_nothing_passes_exactly_the_known_tasks(found: dict[str, Outcome]) -> None:
    idle = found["do-nothing"]
    version = idle.report.versions["tau2"]
    known = {f"airline/{n}" for n in AIRLINE[version]} | {f"retail/{n}" for n in RETAIL[version]}
    assert {task for task, row in idle.rows.items() if row.strict == 1.0} == known
    floor = idle.metrics.strict
    assert (floor["airline"], floor["telecom"]) == (100 * len(AIRLINE[version]) / 50, 0.0)
    assert floor["retail"] == pytest.approx(100 * len(RETAIL[version]) / 114, abs=1e-3)
