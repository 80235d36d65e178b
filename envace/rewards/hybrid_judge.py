"""Code where code can decide, the language model for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from envace.rewards.llm_judge import LlmJudge
from envace.rewards.rule_judge import decide
from envace.types import Criterion, Task, TurnRecord, Verdict


class HybridJudge:
    """Asks the language model only about what `rule_judge.decide` leaves unknown."""

    def __init__(self, llm: LlmJudge) -> None:
        self._llm = llm
        self.health = llm.health

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        """As in RubricJudge."""
        ruled = {c.criterion_id: decide(task, c, turns[-1]) for c in criteria}
        decided = {key: verdict for key, verdict in ruled.items() if verdict is not Verdict.UNKNOWN}
        self.health.count(decided)  # the language model counts the others
        rest = [c for c in criteria if c.criterion_id not in decided]
        asked = await self._llm.judge_turn(task, rest, turns) if rest else {}
        return {c.criterion_id: (decided | asked)[c.criterion_id] for c in criteria}

    async def close(self) -> None:
        """Close the client."""
        await self._llm.close()
