"""Sets the reward of a rollout: by code from its outcome, or by a judge from its checklist (method, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from envace.config import RewardParams
from envace.errors import DataError
from envace.rewards.checklist import ChecklistScore, criteria_of, score_checklist
from envace.rewards.health import judge_work
from envace.rewards.kind import reward_kind
from envace.rewards.outcome import score_turn
from envace.rewards.protocol import RubricJudge
from envace.rollout.limits import Stop
from envace.rollout.settings import RolloutSettings
from envace.types import Rollout, StopReason, Task, TurnRecord


class Scorer(Protocol):
    """Told when a turn ends, and when the rollout does."""

    async def end_turn(self, turns: Sequence[TurnRecord]) -> None:
        """The last of `turns` has its reply. Raises Stop where the rollout must not go on."""
        ...

    async def finish(self, rollout: Rollout, reason: StopReason) -> None:
        """Set the turns' scores, the reward and the success of a rollout that ended for `reason`."""
        ...


def scorer_of(task: Task, settings: RolloutSettings) -> Scorer:
    """The scorer that the settings ask for. Raises DataError for a task that they cannot score."""
    if settings.reward is None:
        return _NoScorer()
    if reward_kind(settings.reward, task) == "verifiable":
        return _OutcomeScorer(task, settings.reward)
    if settings.judge is None:
        raise DataError(
            f"task {task.task_id}: scored by its checklist, but no judge was given; build one from reward.judge"
        )
    return _ChecklistScorer(task, settings.reward, settings.judge)


def can_score(params: RewardParams, task: Task) -> bool:
    """Whether the task carries what `reward.kind` scores by."""
    try:
        reward_kind(params, task)
    except DataError:
        return False
    return True


def _set_reward(rollout: Rollout, reason: StopReason, task: Task) -> None:
    """The mean score over all turns of the task: a turn that was not reached counts 0."""
    rollout.reward = sum(turn.score for turn in rollout.turns) / len(task.turns)
    rollout.success = reason is StopReason.COMPLETED and all(turn.satisfied for turn in rollout.turns)


class _NoScorer:
    """Leaves the reward None."""

    async def end_turn(self, turns: Sequence[TurnRecord]) -> None:
        return

    async def finish(self, rollout: Rollout, reason: StopReason) -> None:
        return


class _OutcomeScorer:
    """By code, once the rollout has ended."""

    def __init__(self, task: Task, params: RewardParams) -> None:
        self._task, self._params = task, params

    async def end_turn(self, turns: Sequence[TurnRecord]) -> None:
        return

    async def finish(self, rollout: Rollout, reason: StopReason) -> None:
        outcome = self._task.outcome
        assert outcome is not None
        if not reason.scorable:
            return
        for turn in rollout.turns:
            result = score_turn(outcome.turns[turn.turn_index], turn.calls, turn.reply, self._params.weights)
            turn.score, turn.satisfied = result.score, result.satisfied
        _set_reward(rollout, reason, self._task)


class _ChecklistScorer:
    """By the judge, a turn at a time; a turn that the policy broke off is judged by what it had done until then."""

    def __init__(self, task: Task, params: RewardParams, judge: RubricJudge) -> None:
        self._task, self._params, self._judge = task, params, judge
        self._scores: list[ChecklistScore] = []
        for turn in task.turns:  # a checklist that cannot be scored is told before anything is sampled
            score_checklist(criteria_of(task, turn.turn_index, params.variant), {}, params.dependencies)

    async def end_turn(self, turns: Sequence[TurnRecord]) -> None:
        score = await self._judge_last(turns)
        if score.gate is None:
            raise Stop(StopReason.JUDGE_UNAVAILABLE)
        if not score.gate:
            raise Stop(StopReason.GATE_FAILED)

    async def finish(self, rollout: Rollout, reason: StopReason) -> None:
        if not reason.scorable:
            return
        if len(self._scores) < len(rollout.turns):
            await self._judge_last(rollout.turns)
        if any(score.unknown_matters for score in self._scores):
            return  # unscorable: the reward stays None, never 0
        _set_reward(rollout, reason, self._task)

    async def _judge_last(self, turns: Sequence[TurnRecord]) -> ChecklistScore:
        turn = turns[-1]
        criteria = criteria_of(self._task, turn.turn_index, self._params.variant)
        with judge_work() as work:
            turn.verdicts = await self._judge.judge_turn(self._task, criteria, turns)
        turn.unknown_causes = {criterion: cause.value for criterion, cause in work.causes.items()}
        turn.judge_work = work.figures()
        score = score_checklist(criteria, turn.verdicts, self._params.dependencies)
        turn.score, turn.satisfied = score.score, score.satisfied
        self._scores.append(score)
        return score
