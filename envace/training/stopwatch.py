"""How long rollouts take and how much of that they wait for a judge. Kept beside the records, never inside them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from envace.rewards.protocol import RubricJudge
from envace.training.labels import RowLabel
from envace.training.timings import JUDGE_S, ROLLOUTS_S
from envace.types import Criterion, Task, TurnRecord, Verdict

FIELD = "seconds"
"""The extra field of a training row that carries the two numbers of its rollout."""


class Stopwatch:
    """Runs from its making; `judged` wraps a judge so that the time in it is counted."""

    def __init__(self) -> None:
        self._start, self._judging = time.monotonic(), 0.0

    def judged(self, judge: RubricJudge) -> RubricJudge:
        """The same judge, timed for the one rollout of this watch."""
        return _TimedJudge(judge, self)

    def seconds(self) -> list[float]:
        """Seconds in the judge, and seconds in all."""
        return [self._judging, time.monotonic() - self._start]

    def add_judging(self, seconds: float) -> None:
        """Count time in the judge."""
        self._judging += seconds


class _TimedJudge:
    def __init__(self, judge: RubricJudge, watch: Stopwatch) -> None:
        self._judge, self._watch = judge, watch

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        """As in RubricJudge."""
        start = time.monotonic()
        try:
            return await self._judge.judge_turn(task, criteria, turns)
        finally:
            self._watch.add_judging(time.monotonic() - start)


def summed(rows: Iterable[RowLabel]) -> dict[str, float]:
    """The two numbers summed over rollouts, from the rows that carry a rollout's record."""
    found = [row.seconds for row in rows if row.record]
    return {JUDGE_S: sum(judging for judging, _ in found), ROLLOUTS_S: sum(whole for _, whole in found)}
