"""On which act steps of a turn a criterion is judged, the most promising first."""

from __future__ import annotations

from envace.types import Criterion, StepRecord, TurnRecord


def steps_to_judge(criterion: Criterion, turn: TurnRecord) -> list[int]:
    """Indices of the steps to ask about, in the order to ask.

    A step passes or fails by the part that the criterion looks at, so a step without that part needs no judge: it
    fails. Where no step of the turn has the part, the last step alone is asked, since the criterion may be about its
    absence. A criterion about the reply is asked of the last reply first; others of the first step first. A turn
    without any step has nothing to judge.
    """
    steps = range(len(turn.steps))
    having = [index for index in steps if _has_part(criterion, turn.steps[index])] or list(steps[-1:])
    return having[::-1] if criterion.target == "reply" else having


def _has_part(criterion: Criterion, step: StepRecord) -> bool:
    match criterion.target:
        case "tool_call":
            return bool(step.calls)
        case "tool_result":
            return bool(step.observations)
        case "reasoning":
            return bool(step.reasoning.strip())
        case "reply":
            return bool(step.reply.strip())
        case "user":
            return True
