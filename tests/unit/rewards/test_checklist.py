"""From verdicts to a score: weights, prerequisites, gates, and when an unknown verdict matters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.config import Params
from envace.errors import DataError
from envace.rewards.checklist import ChecklistScore, Dependencies, criteria_of, score_checklist
from envace.rewards.kind import reward_kind
from envace.types import Criterion, Outcome, Rubric, Task, Turn, Verdict
from tests.unit.rewards.fakes import criterion, task

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def made(*verdicts: Verdict) -> dict[str, Verdict]:
    return {f"t0.c{number}": verdict for number, verdict in enumerate(verdicts)}


def test_the_score_is_the_weight_that_passed() -> None:
    criteria = [criterion(0, weight=0.25), criterion(1, weight=0.75)]
    assert score_checklist(criteria, made(PASS, FAIL), "gate") == ChecklistScore(0.25, False, True, False)
    assert score_checklist(criteria, made(PASS, PASS), "gate") == ChecklistScore(1.0, True, True, False)
    assert score_checklist(criteria, made(FAIL, FAIL), "ignore") == ChecklistScore(0.0, False, True, False)


def test_a_failed_gating_criterion_closes_the_gate_and_an_unknown_one_leaves_it_open() -> None:
    criteria = [criterion(0, is_gating=True), criterion(1)]
    assert score_checklist(criteria, made(PASS, FAIL), "gate").gate is True
    assert score_checklist(criteria, made(FAIL, PASS), "gate").gate is False
    assert score_checklist(criteria, made(UNKNOWN, PASS), "gate").gate is None


def test_an_unknown_gating_verdict_counts_as_unknown_even_beside_a_failed_one() -> None:
    criteria = [criterion(0, is_gating=True), criterion(1, is_gating=True)]
    assert score_checklist(criteria, made(FAIL, UNKNOWN), "gate") == ChecklistScore(0.0, False, None, True)


def test_a_criterion_counts_only_with_its_prerequisites_unless_they_are_ignored() -> None:
    criteria = [criterion(0, target="tool_result"), criterion(1, prerequisite_ids=["t0.c0"], is_gating=True)]
    assert score_checklist(criteria, made(FAIL, PASS), "gate") == ChecklistScore(0.0, False, False, False)
    assert score_checklist(criteria, made(FAIL, PASS), "ignore") == ChecklistScore(0.5, False, True, False)


def test_prerequisites_of_prerequisites_count_too() -> None:
    criteria = [criterion(0), criterion(1, prerequisite_ids=["t0.c0"]), criterion(2, prerequisite_ids=["t0.c1"])]
    assert score_checklist(criteria, made(FAIL, PASS, PASS), "gate").score == 0.0


def test_an_unknown_verdict_that_cannot_change_the_score_does_not_matter() -> None:
    criteria = [criterion(0), criterion(1, prerequisite_ids=["t0.c0"], is_gating=True)]
    assert score_checklist(criteria, made(FAIL, UNKNOWN), "gate") == ChecklistScore(0.0, False, False, False)
    assert score_checklist(criteria, made(FAIL, UNKNOWN), "ignore").unknown_matters
    weightless = [criterion(0, weight=1.0), criterion(1, weight=0.0)]
    assert not score_checklist(weightless, made(PASS, UNKNOWN), "gate").unknown_matters


def test_a_criterion_without_a_verdict_is_unknown() -> None:
    assert score_checklist([criterion(0)], {}, "gate") == ChecklistScore(0.0, False, True, True)


@pytest.mark.parametrize("needed", [["t0.c0"], ["t1.c0"], ["t0.c1"]])
def test_a_prerequisite_that_is_not_there_or_needs_itself_is_named(needed: list[str]) -> None:
    criteria = [criterion(0, prerequisite_ids=needed), criterion(1, prerequisite_ids=["t0.c0"])]
    with pytest.raises(DataError, match="prerequisite"):
        score_checklist(criteria, made(PASS, PASS), "gate")


def test_weights_that_sum_to_a_little_more_than_one_never_score_above_one() -> None:
    criteria = [criterion(n, weight=0.3335) for n in range(3)]
    assert score_checklist(criteria, made(PASS, PASS, PASS), "gate").score == 1.0


@st.composite
def judged(draw: st.DrawFn) -> tuple[list[Criterion], dict[str, Verdict]]:
    """Up to five criteria, each needing some of those before it, with any verdicts."""
    criteria: list[Criterion] = []
    for number in range(draw(st.integers(1, 5))):
        needed = draw(st.sets(st.sampled_from([c.criterion_id for c in criteria]))) if criteria else set()
        gating, weight = draw(st.booleans()), draw(st.sampled_from([0.0, 0.1, 0.2]))
        criteria.append(criterion(number, prerequisite_ids=sorted(needed), is_gating=gating, weight=weight))
    return criteria, made(*(draw(st.sampled_from(list(Verdict))) for _ in criteria))


def completions(verdicts: Mapping[str, Verdict]) -> list[dict[str, Verdict]]:
    """All ways in which the unknown verdicts could have come out."""
    unknown = [key for key, verdict in verdicts.items() if verdict is UNKNOWN]
    ways = itertools.product([PASS, FAIL], repeat=len(unknown))
    return [dict(verdicts) | dict(zip(unknown, way, strict=True)) for way in ways]


@given(judged(), st.sampled_from(["gate", "ignore"]))
def test_an_unknown_matters_exactly_where_it_could_change_the_score(
    given_: tuple[Sequence[Criterion], dict[str, Verdict]], dependencies: Dependencies
) -> None:
    criteria, verdicts = given_
    score = score_checklist(criteria, verdicts, dependencies)
    outcomes = [score_checklist(criteria, known, dependencies) for known in completions(verdicts)]
    assert score.unknown_matters == (len({o.score for o in outcomes}) > 1)
    assert score.score == min(o.score for o in outcomes)
    if score.gate is not None:
        assert {o.gate for o in outcomes} == {score.gate}
    assert not any(o.unknown_matters or o.gate is None for o in outcomes)


@given(judged())
def test_prerequisites_never_raise_a_score(given_: tuple[Sequence[Criterion], dict[str, Verdict]]) -> None:
    criteria, verdicts = given_
    assert score_checklist(criteria, verdicts, "gate").score <= score_checklist(criteria, verdicts, "ignore").score


def with_kind(params: Params, kind: str, variant: int = 0) -> Any:
    return params.reward.model_copy(update={"kind": kind, "variant": variant})


def test_the_kind_of_reward_is_what_the_task_carries(params: Params) -> None:
    outcome = Outcome(turns=[])
    both, checklist, bare = task([criterion()], outcome=outcome), task([criterion()]), task()
    assert reward_kind(with_kind(params, "auto"), both) == "verifiable"
    assert reward_kind(with_kind(params, "checklist"), both) == "checklist"
    assert reward_kind(with_kind(params, "auto"), checklist) == "checklist"
    assert reward_kind(with_kind(params, "verifiable"), task(outcome=outcome)) == "verifiable"
    for kind, without in (("verifiable", checklist), ("auto", bare), ("checklist", task(outcome=outcome))):
        with pytest.raises(DataError, match="task t: "):
            reward_kind(with_kind(params, kind), without)


def test_a_missing_variant_or_a_turn_without_criteria_is_named(params: Params) -> None:
    with pytest.raises(DataError, match=r"no checklist of variant 3 .*variant 0"):
        reward_kind(with_kind(params, "auto", 3), task([criterion()]))
    turns = [Turn(turn_index=i, user_message="", reference_steps=[]) for i in range(2)]
    with pytest.raises(DataError, match="no criterion for turn 1"):
        reward_kind(with_kind(params, "auto"), task([criterion()], turns))


def test_criteria_are_those_of_the_turn_in_the_variant() -> None:
    later = criterion(5, criterion_id="t1.c0", turn_index=1)
    rubrics = [Rubric(variant_index=v, criteria=[criterion(v), later]) for v in range(2)]
    two: Task = task(rubrics=rubrics)
    assert [c.criterion_id for c in criteria_of(two, 0, 1)] == ["t0.c1"]
    assert criteria_of(two, 1, 0) == [later]
