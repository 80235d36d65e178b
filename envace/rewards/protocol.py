"""What the loop asks of a judge, and what a run asks of the judge that it built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from envace.rewards.health import JudgeHealth
from envace.types import Criterion, Task, TurnRecord, Verdict


class RubricJudge(Protocol):
    """Turns (criterion, transcript) into a verdict (method, section 3)."""

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        """One verdict for each criterion, by its id.

        A criterion passes if any act step of the turn passes it. What cannot be decided, by code or because an
        endpoint does not answer, is UNKNOWN: this never raises for an unreachable judge.

        Args:
            criteria: those of the last turn in `turns`.
            turns: the rollout so far. Those before the last are context only.
        """
        ...


class BuiltJudge(RubricJudge, Protocol):
    """A judge with its counters and its connections."""

    @property
    def health(self) -> JudgeHealth:
        """What has been asked and answered so far."""
        ...

    async def close(self) -> None:
        """Give connections back. The judge cannot be asked afterwards."""
        ...
