"""The verifiable reward: a perfect turn scores 1, and every kind of mistake lowers it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.config import Params, RewardWeights
from envace.rewards.outcome import TurnScore, contains_fact, score_turn
from envace.types import Task, ToolCall, TurnOutcome

WEIGHTS = RewardWeights(calls=0.5, only=0.2, facts=0.3, no_call=0.6)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool_name=name, arguments=json.dumps(arguments))


A, B, C, BAD = call("a", x=1), call("b", y="ü", z=2), call("c"), call("delete")
OUTCOME = TurnOutcome(required_calls=[A, B], forbidden_tools=["delete"], required_facts=["7", "Łódź"])
QUIET = TurnOutcome(required_calls=[], forbidden_tools=["delete"], required_facts=["Łódź"])
REPLY = "There are 7 in Łódź."


def score(calls: list[ToolCall], reply: str | None = REPLY, outcome: TurnOutcome = OUTCOME) -> TurnScore:
    return score_turn(outcome, calls, reply, WEIGHTS)


def test_every_reference_of_the_sample_scores_one_and_is_satisfied(sample_tasks: list[Task], params: Params) -> None:
    for task in sample_tasks:
        assert task.outcome is not None
        for turn, outcome in zip(task.turns, task.outcome.turns, strict=True):
            made = [c for step in turn.reference_steps for c in step.tool_calls]
            reply = turn.reference_steps[-1].reply
            assert score_turn(outcome, made, reply, params.reward.weights) == TurnScore(1.0, True)


def test_every_mistake_in_a_sample_reference_lowers_its_score(sample_tasks: list[Task], params: Params) -> None:
    weights, rng = params.reward.weights, random.Random(0)
    for task in sample_tasks:
        assert task.outcome is not None
        for turn, outcome in zip(task.turns, task.outcome.turns, strict=True):
            made = [c for step in turn.reference_steps for c in step.tool_calls]
            reply = turn.reference_steps[-1].reply
            worse: list[tuple[list[ToolCall], str | None]] = [([*made, C], reply), (made, "Done."), (made, None)]
            if made:
                at = rng.randrange(len(made))
                worse.append((made[:at] + made[at + 1 :], reply))
                worse.append(([*made, made[at]], reply))
            if outcome.forbidden_tools:
                worse.append(([*made, call(outcome.forbidden_tools[0])], reply))
            for calls, said in worse:
                result = score_turn(outcome, calls, said, weights)
                assert result.score < 1 and not result.satisfied, (task.task_id, calls, said)


@pytest.mark.parametrize(
    "calls, reply",
    [
        ([A, B, C], REPLY),
        ([A, A, B], REPLY),
        ([A], REPLY),
        ([], REPLY),
        ([B, A], REPLY),
        ([A, B, BAD], REPLY),
        ([A, call("b", y="u", z=2)], REPLY),
        ([A, call("b", y="ü")], REPLY),
        ([A, B], "There are 7."),
        ([A, B], "There are 77 in Łódź."),
        ([A, B], ""),
        ([A, B], None),
    ],
)
def test_a_mistake_lowers_the_score(calls: list[ToolCall], reply: str | None) -> None:
    result = score(calls, reply)
    assert 0 <= result.score < 1 and not result.satisfied


def test_arguments_are_compared_by_value_not_by_the_order_of_their_keys() -> None:
    assert score([A, call("b", z=2, y="ü")]) == TurnScore(1.0, True)


def test_order_counts_only_where_it_is_asked_for() -> None:
    free = OUTCOME.model_copy(update={"ordered": False})
    assert score([B, A], outcome=free) == TurnScore(1.0, True)
    assert score([B, A]).score == pytest.approx(0.5 / 2 + 0.2 + 0.3)


def test_a_missing_fact_costs_its_share() -> None:
    assert score([A, B], "There are 7.").score == pytest.approx(1 - 0.3 / 2)


def test_a_turn_without_a_reply_keeps_only_its_calls() -> None:
    assert score([A, B], None).score == pytest.approx(0.5)


@pytest.mark.parametrize(
    "calls, reply, expected, satisfied",
    [
        ([], "In Łódź.", 1.0, True),
        ([], "Where?", 0.6, False),
        ([A], "In Łódź.", 0.4, False),
        ([BAD], "In Łódź.", 0.4, False),
        ([A], "Where?", 0.0, False),
        ([], None, 0.0, False),
    ],
)
def test_a_turn_in_which_no_call_is_due(
    calls: list[ToolCall], reply: str | None, expected: float, satisfied: bool
) -> None:
    result = score(calls, reply, QUIET)
    assert result.score == pytest.approx(expected) and result.satisfied is satisfied


def test_doing_nothing_is_never_rewarded_for_making_no_other_call() -> None:
    assert score([], "").score == 0


some_calls = st.lists(st.sampled_from([A, B, C, BAD]), max_size=5)
facts = st.lists(st.sampled_from(["7", "Łódź", "x"]), unique=True, max_size=3)
outcomes = st.builds(
    TurnOutcome,
    required_calls=st.lists(st.sampled_from([A, B, C]), max_size=3),
    ordered=st.booleans(),
    forbidden_tools=st.just(["delete"]),
    required_facts=facts,
)
replies = st.none() | facts.map(" ".join)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(
    lambda s: RewardWeights(calls=s[0] * s[1], only=s[0] * (1 - s[1]), facts=1 - s[0], no_call=s[2])
)


@settings(deadline=None, max_examples=500)
@given(outcomes, some_calls, replies, shares)
def test_a_score_is_between_0_and_1_and_a_satisfied_turn_has_all_of_it(
    outcome: TurnOutcome, calls: list[ToolCall], reply: str | None, weights: RewardWeights
) -> None:
    result = score_turn(outcome, calls, reply, weights)
    assert 0 <= result.score <= 1
    if result.satisfied:
        assert result.score == pytest.approx(1)


@settings(deadline=None, max_examples=300)
@given(outcomes)
def test_the_required_calls_and_facts_are_all_it_takes(outcome: TurnOutcome) -> None:
    result = score(outcome.required_calls, " ".join(outcome.required_facts), outcome)
    assert result.score == pytest.approx(1) and result.satisfied


@settings(deadline=None, max_examples=300)
@given(outcomes, some_calls, replies)
def test_saying_less_never_pays(outcome: TurnOutcome, calls: list[ToolCall], reply: str | None) -> None:
    assert score(calls, None, outcome).score <= score(calls, reply, outcome).score
    full = " ".join(["7", "Łódź", "x"])
    assert score(calls, reply, outcome).score <= score(calls, full, outcome).score


@pytest.mark.parametrize(
    "fact, reply",
    [
        ("7", "7"),
        ("7", "It is 7."),
        ("7", "7, 8 and 9"),
        ("Łódź", "In Łódź."),
        ("12.50", "It costs 12.50."),
        ("o-17", "Order o-17 is there."),
        ("Ana", "Ana,5 and Ben"),
        ("a.b", "see a.b"),
        ("5", "5.\nNext"),
    ],
)
def test_a_fact_stands_in_a_reply_literally(fact: str, reply: str) -> None:
    assert contains_fact(fact, reply)


@pytest.mark.parametrize(
    "fact, reply",
    [
        ("7", "17"),
        ("7", "70"),
        ("7", "7th"),
        ("Ana", "Anabel"),
        ("ana", "Ana"),
        ("12", "It costs 12.50."),
        ("50", "It costs 12.50."),
        ("200", "It costs 1,200."),
        ("a.b", "see axb"),
        ("40", "The balance is -40."),
        ("40", "At 9:40 in the morning."),
        ("40", "It is 40% off."),
        ("40", "About 40/7 of it."),
        ("40", "From 30–40 people."),
        ("5", "It is .5 of it."),
        ("7", ""),
    ],
)
def test_a_fact_is_no_part_of_a_longer_word_or_number(fact: str, reply: str) -> None:
    assert not contains_fact(fact, reply)
