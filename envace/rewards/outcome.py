"""The verifiable reward, decided by code: required calls, no others, literal facts in the reply (method, section 3)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from envace.config import RewardWeights
from envace.types import ToolCall, TurnOutcome


@dataclass(frozen=True, slots=True)
class TurnScore:
    """Score of one turn in [0, 1], and whether everything in it was right."""

    score: float
    satisfied: bool


def score_turn(outcome: TurnOutcome, calls: list[ToolCall], reply: str | None, weights: RewardWeights) -> TurnScore:
    """Score what a turn did against what it should do.

    Args:
        calls: every call made in the turn, in order, refused ones included.
        reply: the reply that ended the turn; None where the rollout stopped before one.
    """
    made = [c.canonical for c in calls]
    wanted = [c.canonical for c in outcome.required_calls]
    facts = _share_of_facts(outcome.required_facts, reply)
    forbidden = any(c.tool_name in outcome.forbidden_tools for c in calls)
    if not wanted:
        if reply is None:
            return TurnScore(0.0, False)
        score = weights.no_call * (not made) + (1 - weights.no_call) * facts
        return TurnScore(score, not made and facts == 1)
    hits = _hits_in_order(wanted, made) if outcome.ordered else _hits(wanted, made)
    only = reply is not None and not forbidden and not (Counter(made) - Counter(wanted))
    score = weights.calls * hits / len(wanted) + weights.only * (only and hits > 0) + weights.facts * facts
    return TurnScore(score, hits == len(wanted) and only and facts == 1)


def contains_fact(fact: str, reply: str) -> bool:
    """Whether `fact` stands in `reply` literally, not as a part of a longer word or of another number.

    Another number is one with a sign, a decimal part, a percent sign, or a time, date, fraction or range around it.
    """
    before = r"(?<!\w)(?<![-–+−.])(?<!\d[,:/])" if fact[:1].isdigit() else r"(?<!\w)"
    after = r"(?!\w)(?![.,:/]\d|[-–]\d| ?%)" if fact[-1:].isdigit() else r"(?!\w)"
    return re.search(before + re.escape(fact) + after, reply) is not None


def _share_of_facts(facts: list[str], reply: str | None) -> float:
    if reply is None:
        return 0.0
    return sum(contains_fact(f, reply) for f in facts) / len(facts) if facts else 1.0


def _hits_in_order(wanted: list[str], made: list[str]) -> int:
    hits, start = 0, 0
    for want in wanted:
        if want in made[start:]:
            hits, start = hits + 1, made.index(want, start) + 1
    return hits


def _hits(wanted: list[str], made: list[str]) -> int:
    return sum((Counter(wanted) & Counter(made)).values())
