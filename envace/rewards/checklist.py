"""From the verdicts of a turn to its score, its gate, and whether an unknown verdict could change them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from envace.errors import DataError
from envace.rewards.kind import rubric_of
from envace.types import Criterion, Task, Verdict

Dependencies = Literal["ignore", "gate"]


@dataclass(frozen=True, slots=True)
class ChecklistScore:
    """What the verdicts of one turn come to.

    `score` in [0, 1] is the weight that is satisfied for certain. `gate`: True to go on, False where a gating criterion
    is not satisfied, None where a verdict that decides it is unknown. `unknown_matters`: the score could be another
    one if the unknown verdicts were known; the rollout is then unscorable.
    """

    score: float
    satisfied: bool
    gate: bool | None
    unknown_matters: bool


def criteria_of(task: Task, turn_index: int, variant: int) -> list[Criterion]:
    """The criteria of one turn in one variant of the checklist. Raises DataError for a variant that is not there."""
    return [c for c in rubric_of(task, variant).criteria if c.turn_index == turn_index]


def score_checklist(
    criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict], dependencies: Dependencies
) -> ChecklistScore:
    """Score one turn: Σ weight · satisfied (method, section 3). A criterion without a verdict is unknown.

    With `gate`, a criterion is satisfied only if its prerequisites are, theirs included; one whose prerequisite
    certainly fails is certainly not satisfied, whatever its own verdict. Raises DataError for a prerequisite that is
    no criterion of the turn, or that needs itself.
    """
    settled = settle(criteria, verdicts, dependencies)
    gating = [settled[c.criterion_id] for c in criteria if c.is_gating]
    passed = [c.weight for c in criteria if settled[c.criterion_id] is Verdict.PASS]
    open_weight = [c.weight for c in criteria if settled[c.criterion_id] is Verdict.UNKNOWN and c.weight > 0]
    return ChecklistScore(
        score=min(math.fsum(passed), 1.0),  # weights are kept where they sum to 1 within the contract's tolerance
        satisfied=len(passed) == len(criteria),
        gate=None if Verdict.UNKNOWN in gating else Verdict.FAIL not in gating,
        unknown_matters=bool(open_weight),
    )


def settle(
    criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict], dependencies: Dependencies
) -> dict[str, Verdict]:
    """The verdicts after prerequisites: fail beats unknown, unknown beats pass. Exact, since nothing is negated."""
    by_id = {c.criterion_id: c for c in criteria}
    settled: dict[str, Verdict] = {}

    def of(criterion_id: str, needed_by: tuple[str, ...]) -> Verdict:
        if criterion_id in settled:
            return settled[criterion_id]
        if criterion_id not in by_id or criterion_id in needed_by:
            fault = "needs itself" if criterion_id in by_id else "is no criterion of its turn"
            raise DataError(f"criterion {needed_by[-1]}: its prerequisite {criterion_id} {fault}; correct the row")
        own = verdicts.get(criterion_id, Verdict.UNKNOWN)
        needed = by_id[criterion_id].prerequisite_ids if dependencies == "gate" else []
        every = [own, *(of(other, (*needed_by, criterion_id)) for other in needed)]
        worst = next((v for v in (Verdict.FAIL, Verdict.UNKNOWN) if v in every), Verdict.PASS)
        return settled.setdefault(criterion_id, worst)

    return {c.criterion_id: of(c.criterion_id, ()) for c in criteria}
